"""A line now and then while a long run is under way: how far it is, and how it looks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.model import Verdict

#: Seconds between two lines: a log of an hour's run stays readable.
EVERY = 30.0


@dataclass
class Progress:
    """Decides when a line is due and what it says."""

    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)

    def line(self, verdicts: Collection[Verdict], selected: int) -> str | None:
        """Return the line that is due now, if one is."""
        now = time.monotonic()
        done = len(verdicts)
        if now - self.said < EVERY or not 0 < done < selected:
            return None
        self.said = now
        measured = [v for v in verdicts if v.status.measured]
        passed = sum(v.status.value == "passed" for v in measured)
        rate = f"{100 * passed / len(measured):.0f} % passed so far" if measured else "none measured so far"
        left = (now - self.began) / done * (selected - done)
        return f"{done} of {selected} done, {rate}, {_duration(left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(round(seconds, -1), 10):.0f} s"
    return f"about {seconds / 60:.0f} min"
