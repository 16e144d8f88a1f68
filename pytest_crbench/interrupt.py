"""SIGTERM as an orderly end: pytest skips every teardown on it otherwise (pytest#5243)."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def terminate_as_interrupt() -> Callable[[], None]:
    """Treat SIGTERM like Ctrl-C in this process from now on; returns what undoes that."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.getsignal(signal.SIGTERM)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)

    def restore() -> None:
        signal.signal(signal.SIGTERM, before)

    return restore
