"""The results of one run as a value: what a result file holds, without how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..core.scoring import in_order
from .score import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import Key, Verdict
    from .score import Summary


@dataclass(frozen=True)
class Results:
    """The verdicts of a run and how they were made.

    ``run`` is the ``run`` object of a result file (docs/results-format.md). ``planned`` holds the facets
    of every selected key. ``source`` names the file, for messages.
    """

    run: Mapping[str, Any]
    verdicts: tuple[Verdict, ...]
    planned: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
    source: str = "this run"
    #: The run's lock file; empty if it has none.
    lock: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reviewer(self) -> str:
        """Name of the reviewer under test."""
        return self.name("reviewer")

    def name(self, part: str) -> str:
        """Name of the run's ``reviewer``, ``agent`` or ``sandbox``; "?" if it was not recorded."""
        value = self.run.get(part)
        name = value.get("name") if isinstance(value, dict) else None
        return name if isinstance(name, str) else "?"

    @property
    def scorings(self) -> tuple[str, ...]:
        """The scorings of the run, hidden tests first."""
        used = {key.scoring for key in self.planned} | {verdict.key.scoring for verdict in self.verdicts}
        return in_order(used) or ("tests",)

    @property
    def part(self) -> str:
        """Which part of its datasets the run is, as in "2 of 5 checks selected"; "" if it is all."""
        found = self.run.get("selection")
        selected, of = (found.get("selected"), found.get("of")) if isinstance(found, dict) else (None, None)
        if not isinstance(selected, int) or not isinstance(of, int) or selected >= of:
            return ""
        several = self.run.get("repeats", 1) != 1 or len(self.scorings) > 1
        return f"{selected} of {of} {'measurements' if several else 'checks'} selected"

    @property
    def marks(self) -> tuple[str, ...]:
        """What the verdict line says of the run: that it goes on with another one, and that it is a part."""
        replay = self.run.get("replay_of")
        found = [f"replay of {replay}"] if replay else []
        found += [self.part] if self.part else []
        return ("resumed", *found) if self.run.get("resumed") else tuple(found)

    def summary(self, *, scoring: str | None = None, arm: str = "review") -> Summary:
        """Summarise one scoring (by default the run's first) and one arm."""
        return summarise(self.verdicts, self.planned, scoring=scoring or self.scorings[0], arm=arm)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """Every scoring of the run, summarised."""
        return tuple(self.summary(scoring=scoring) for scoring in self.scorings)
