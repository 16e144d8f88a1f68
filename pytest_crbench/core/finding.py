"""What a look at the machine found: one fact, whether a run can live with it, and what to do if not."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Level(StrEnum):
    """How bad it is: fine; a run works, but not as well as it could; a run that needs it cannot work."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One check: its name, what was found, and one sentence of advice (empty only where all is well)."""

    name: str
    level: Level
    found: str
    advice: str = ""

    def at_most(self, level: Level) -> Finding:
        """The same with a missing thing made a warning: nothing that is wanted needs it."""
        return replace(self, level=level) if self.level is Level.MISSING else self


def ok(name: str, found: str) -> Finding:
    """All is well."""
    return Finding(name, Level.OK, found)


def warning(name: str, found: str, advice: str) -> Finding:
    """A run works, but not as well as it could."""
    return Finding(name, Level.WARNING, found, advice)


def missing(name: str, found: str, advice: str) -> Finding:
    """A run that needs it cannot work."""
    return Finding(name, Level.MISSING, found, advice)


@dataclass(frozen=True)
class Probe:
    """A look at one thing; ``limit`` is in seconds, ``late`` the advice where that is not enough."""

    name: str
    look: Callable[[], Sequence[Finding]]
    limit: float
    late: str


@dataclass(frozen=True)
class Look:
    """What one probe gave; ``given_up`` if it still ran at its limit."""

    probe: Probe
    found: tuple[Finding, ...]
    given_up: bool = False


def examine(probes: Sequence[Probe]) -> Iterator[Look]:
    """Look at all things at once, and give what was found in the order of ``probes``, as soon as it is there.

    A look that outlasts its limit is given up (its thread ends with the process: a name lookup cannot be
    interrupted), so all of it takes no longer than the longest limit.
    """
    began = time.monotonic()
    for running in [_Running(probe) for probe in probes]:
        yield running.result(began + running.probe.limit)


class _Running:
    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._found: tuple[Finding, ...] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = tuple(self.probe.look())
        except Exception as error:
            # Told as a finding: one look that fails takes none of the others with it.
            said = f"the check failed: {type(error).__name__}: {error}"
            self._found = (missing(self.probe.name, said, self.probe.late),)

    def result(self, deadline: float) -> Look:
        self._thread.join(max(deadline - time.monotonic(), 0.0))
        if self._found is not None:
            return Look(self.probe, self._found)
        said = f"no answer within {self.probe.limit:.0f} s"
        return Look(self.probe, (missing(self.probe.name, said, self.probe.late),), given_up=True)
