"""The results of one run as a value: what a result file holds, without how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ..core.scoring import in_order
from .score import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import Key, Verdict
    from ..core.run_record import Part, RunRecord
    from .score import Summary


@dataclass(frozen=True)
class Results:
    """The verdicts of a run and how they were made.

    ``planned`` holds the facets of every selected key. ``source`` names the file, for messages.
    """

    run: RunRecord
    verdicts: tuple[Verdict, ...]
    planned: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
    source: str = "this run"

    @property
    def reviewer(self) -> str:
        """Name of the reviewer under test."""
        return self.run.reviewer.name

    def name(self, part: Literal["reviewer", "agent", "sandbox"]) -> str:
        """Name of a part of the run; "?" if it was not recorded."""
        found: Part | None = getattr(self.run, part)
        return found.name if found else "?"

    @property
    def scorings(self) -> tuple[str, ...]:
        """The scorings of the run, hidden tests first."""
        used = {key.scoring for key in self.planned} | {verdict.key.scoring for verdict in self.verdicts}
        return in_order(used) or ("tests",)

    @property
    def part(self) -> str:
        """Which part of its datasets the run is, as in "2 of 5 checks selected"; "" if it is all."""
        found = self.run.selection
        if found is None or found.selected >= found.of:
            return ""
        several = self.run.repeats != 1 or len(self.scorings) > 1
        return f"{found.selected} of {found.of} {'measurements' if several else 'checks'} selected"

    @property
    def marks(self) -> tuple[str, ...]:
        """What the verdict line says of the run: that it goes on with another one, and that it is a part."""
        found = ["resumed"] if self.run.resumed else []
        found += [f"replay of {self.run.replay_of}"] if self.run.replay_of else []
        return (*found, self.part) if self.part else tuple(found)

    def summary(self, *, scoring: str | None = None, arm: str = "review") -> Summary:
        """Summarise one scoring (by default the run's first) and one arm."""
        return summarise(self.verdicts, self.planned, scoring=scoring or self.scorings[0], arm=arm)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """Every scoring of the run, summarised."""
        return tuple(self.summary(scoring=scoring) for scoring in self.scorings)
