"""The results of one run as a value: what a result file holds, without how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ..core.model import ReviewRecord, Verdict
from ..core.records import COUNTS, from_row
from ..core.scoring import in_order, scoring_of
from .score import summarise

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..core.model import Key
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


def again(row: Any, review: Any, where: str) -> Verdict:
    """Return a verdict from its row, and from that of its review, as they came from another process.

    Raises:
        UsageError: if either is none.
    """
    known = None if review is None else from_row(ReviewRecord, review, where)
    return from_row(Verdict, row, where, by_id={known.id: known} if known else {})


def reviews_of(records: Iterable[ReviewRecord]) -> dict[str, ReviewRecord]:
    """Return records of reviews by their id, those of one as one."""
    found: dict[str, ReviewRecord] = {}
    for record in records:
        found[record.id] = found[record.id].merged(record) if record.id in found else record
    return found


def parted_row(row: Any) -> tuple[Any, dict[str, Any] | None]:
    """Return a verdict's row of any version as it is now, and what a row of version 1 says of its review."""
    if not isinstance(row, dict) or not isinstance(row.get("review", {}), dict):
        return row, None
    stages = {"review", "revision", "agent", *scoring_of(str(row.get("scoring"))).stages}
    record: dict[str, Any] = {**row.get("review", {}), "stop_reason": row.get("stop_reason")}
    row = {name: value for name, value in row.items() if name != "stop_reason"}
    for name in ("keys", "durations", "usage"):
        record[name] = _taken(row, name, stages)
    counts = _taken(row, "matching", COUNTS)
    record["counts"] = {str(row.get("scoring")): counts} if counts else {}
    if all(value in (None, {}) for value in record.values()):
        return {**row, "review": None}, None
    place = {name: row.get(name) for name in ("dataset", "instance", "repeat", "arm")}
    record["id"] = f"{place['dataset']}/{place['instance']}/{place['arm']}-{place['repeat']}"
    return {**row, "review": record["id"]}, {**place, **record}


def _taken(row: dict[str, Any], name: str, keys: Collection[str]) -> dict[str, Any]:
    """Take some keys out of an object of a row."""
    found = row.get(name)
    if not isinstance(found, dict):
        return {}
    row[name] = {key: value for key, value in found.items() if key not in keys}
    return {key: value for key, value in found.items() if key in keys}
