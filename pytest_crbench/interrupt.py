"""Signals that end a run: an orderly end for each, and time to clean up after the first."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    Handler = Callable[[int, FrameType | None], None]

#: What ends a program by default and skips every teardown of pytest's (pytest#5243).
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


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
