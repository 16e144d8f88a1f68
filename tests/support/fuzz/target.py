"""One parser under fuzzing: what it is given, and what must hold whatever that is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pytest_crbench.core.errors import CrbenchError, StageError

from .source import Maker, Source

#: Seconds of CPU time that one input may take. A parser that needs more hangs, for all we know.
LIMIT = 2.0
#: Characters of an error's message: it is read in a terminal, and kept beside each verdict.
_LONGEST_MESSAGE = 12_000
#: Bytes that one input is made of.
_ENTROPY = 600


@dataclass(frozen=True)
class Target:
    """A parser of foreign input.

    ``make`` makes one input from bytes. ``check`` gets it and a folder, feeds the parser, and raises for what
    must not be: an exception that is not documented, or a property that does not hold. ``cost`` is what an
    input takes, in units of the cheapest targets: dear ones (they run git) get fewer inputs.
    """

    name: str
    make: Maker
    check: Callable[[Any, Path], None]
    cost: int = 1


@dataclass
class Tally:
    """What became of the inputs of one target."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_input: str = ""
    failure: str = ""
    failing_input: str = ""
    _refused: int = field(default=0, repr=False)

    def took(self, value: Any, seconds: float) -> None:
        """Count one input."""
        self.inputs += 1
        self.seconds += seconds
        if seconds > self.slowest:
            self.slowest, self.slowest_input = seconds, shown(value)


class _Hang(BaseException):
    """Raised from a timer; no ``except Exception`` of a parser may hold it up."""


@contextmanager
def refused(*allowed: type[Exception]) -> Iterator[None]:
    """Let the documented errors pass, if their messages are fit to be read by people."""
    try:
        yield
    except allowed as error:
        _readable(error)


def _readable(error: Exception) -> None:
    text, name = str(error), type(error).__name__
    assert text.strip(), f"{name} says nothing"
    assert len(text) <= _LONGEST_MESSAGE, f"{name} says {len(text)} characters"
    text.encode()  # a lone surrogate ends whoever prints it
    if isinstance(error, StageError):
        assert error.reason, f"{error!r} has no reason"
    if isinstance(error, CrbenchError):
        assert not set(text) & set("\0\x1b\u202e"), f"{text!r} would steer a terminal"


@contextmanager
def bounded(seconds: float = LIMIT) -> Iterator[None]:
    """Raise AssertionError where the block uses more CPU time than it may."""

    def late(_signal: int, _frame: object) -> None:
        raise _Hang

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except _Hang:
        raise AssertionError(f"it took more than {seconds} s of CPU time") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def feed(
    target: Target,
    count: int,
    seed: int,
    folder: Path,
    *,
    shrink: bool = True,
    watch: Callable[[Any], None] = lambda _: None,
) -> Tally:
    """Give a target ``count`` inputs; the first failure is shrunk and told in the tally.

    ``watch`` sees each input before it is used.
    """
    tally = Tally(target.name)

    @hypothesis.seed(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.binary(min_size=40, max_size=_ENTROPY))
    def one(data: bytes) -> None:
        value = target.make(Source(data))
        watch(value)
        began = time.process_time()
        try:
            with bounded():
                target.check(value, folder)
        except BaseException:
            tally.failing_input = shown(value)  # the last to fail is the smallest
            raise
        tally.took(value, time.process_time() - began)

    try:
        one()
    except Exception as error:  # told in the tally, with the input that made it
        import traceback

        tally.failure = "".join(traceback.format_exception(error)[-12:])
    return tally


def shown(value: Any, limit: int = 2000) -> str:
    """Show an input as Python; long ones are cut."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
