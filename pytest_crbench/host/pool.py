"""Calls that run side by side, and do not hold up the end of a program."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Value = TypeVar("Value")


class Pool:
    """Up to ``width`` calls at a time, for use with ``with``; what has not begun when that ends is cancelled.

    Unlike `concurrent.futures.ThreadPoolExecutor`: an interrupt does not wait for the calls under way, nor
    does the interpreter's end. An endpoint that hangs would keep both for minutes.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._made: list[Future[Any]] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.cancel()
        for _ in self._threads:
            self._waiting.put(None)
        if error is None or isinstance(error, Exception):
            for thread in self._threads:
                thread.join()

    def submit(self, call: Callable[..., Value], *arguments: Any) -> Future[Value]:
        """Call ``call(*arguments)`` in a thread as soon as one is free."""
        made: Future[Value] = Future()
        self._made.append(made)
        self._waiting.put((made, lambda: call(*arguments)))
        if len(self._threads) < self.width:
            thread = threading.Thread(target=self._work, name="crbench-pool", daemon=True)
            self._threads.append(thread)
            thread.start()
        return made

    def cancel(self) -> None:
        """Begin no further call; those under way go on."""
        for future in self._made:
            future.cancel()

    def _work(self) -> None:
        while (one := self._waiting.get()) is not None:
            future, call = one
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
