"""Signals that end a run: an orderly end for each, and time to clean up after the first."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from .processes import is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], None]

#: What ends a program by default and skips every teardown of pytest's (pytest#5243).
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
#: Seconds between two looks at whether the process that we work for is there.
_LOOK = 0.1


def terminate_as_interrupt() -> Callable[[], None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C in this process from now on; returns what undoes that."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    return _install(interrupt, _ENDINGS)


def shield(say: Callable[[str], None]) -> Callable[[], None]:
    """Let a clean-up be interrupted only by the second signal from now on; returns what undoes that.

    The first one is answered with a line through ``say``: people press Ctrl-C twice.
    """
    came: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            raise KeyboardInterrupt
        say("cleaning up, this ends by itself; once more to leave everything where it is")

    return _install(hold, (signal.SIGINT, *_ENDINGS))


def must_be_there(owner: str) -> None:
    """Refuse to begin what nobody would take any more.

    Args:
        owner: the process that we work for, as `host.processes.own_token` names it; "" for nobody.

    Raises:
        KeyboardInterrupt: if it has ended.
    """
    if owner and is_gone(owner):
        raise KeyboardInterrupt("the process that this one works for has ended")


def interrupt_without(owner: str) -> Callable[[], None]:
    """Interrupt this process as soon as ``owner`` has ended; returns what undoes that.

    Only after `terminate_as_interrupt`, and in the main thread: elsewhere nothing could be interrupted.
    """
    if not owner or threading.current_thread() is not threading.main_thread():
        return lambda: None
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK):
            if is_gone(owner):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=watch, name="owner-watch", daemon=True).start()
    return over.set


def _install(handler: Handler, numbers: Iterable[signal.Signals]) -> Callable[[], None]:
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    # A signal that our parent had us ignore (nohup) stays ignored.
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)

    def restore() -> None:
        for number, old in before.items():
            signal.signal(number, old)

    return restore
