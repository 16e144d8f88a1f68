"""Precision, recall and F1 of the scoring ``matching``, as sentences and as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...statistics.agreement import agreement
from ...statistics.intervals import percent, span
from ...text.printable import many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from ...core.model import Verdict
    from ...statistics.agreement import Agreement, Estimate

ESTIMATES = (
    *("precision", "recall", "f1", "line_precision", "line_recall", "line_f1"),
    *("macro_precision", "macro_recall", "macro_f1"),
)


@dataclass(frozen=True)
class MatchingNumbers:
    """The numbers of some pull requests (docs/matching.md)."""

    agreement: Agreement

    @property
    def reviews(self) -> int:
        """How many reviews' comments are known."""
        return self.agreement.tally.reviews

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of a table must know."""
        return ("by the published evaluator, with its faults",) if self.agreement.published else ()

    def value(self, metric: str) -> Fraction | None:
        """Return one metric; of the noise what is known to be so."""
        if metric == "noise":
            return self.agreement.noise[0] if self.agreement.noise else None
        estimate: Estimate = getattr(self.agreement, metric)
        return estimate.value

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield (name, sentence) of every number that is not a pass rate; plain text."""
        found = self.agreement
        tally = found.tally
        if tally.comments:
            yield "precision", _precision(found)
        if tally.unselected:
            yield (
                "selected",
                f"{tally.references} of {many(tally.references + tally.unselected, 'reference')} count here: "
                "recall is of these, precision is of all comments and all references of their reviews",
            )
        yield "f1", _estimate(found.f1)
        if found.published:
            yield (
                "published",
                f"recall {percent(found.published_recall)}, f1 {percent(found.published_f1)}: pull requests "
                "without a comment left out, as the published evaluator does",
            )
        yield (
            "by place",
            f"precision {percent(found.line_precision.value)}, recall {percent(found.line_recall.value)}, "
            f"f1 {percent(found.line_f1.value)}, whatever is said there",
        )
        yield (
            "macro",
            f"precision {_estimate(found.macro_precision)}, recall {_estimate(found.macro_recall)}, "
            f"f1 {_estimate(found.macro_f1)}: means over pull requests",
        )
        if found.noise is not None:
            known = (
                f"{many(tally.duplicates, 'duplicate')}, {tally.rejected} rejected, "
                f"{tally.placeless} without a place"
            )
            yield "noise", f"{percent(found.noise[0])} - {percent(found.noise[1])} of the comments: {known}"
        if tally.rejected_of:
            yield (
                "rejected",
                f"{tally.rejected} of {tally.rejected_of} comments that experts had rejected are said again "
                f"({percent(found.rejected)})",
            )
        if found.comments_per_hunk is not None:
            yield "hunks", f"{tally.hunks}, {float(found.comments_per_hunk):.2f} comments each"
        if found.categories:
            sorts = ", ".join(f"{count} {name}" for name, count in found.categories.items())
            yield "unlabelled", f"by a model: {sorts}"

    def to_json(self) -> dict[str, Any]:
        """Return every number, as plain JSON; shares with six decimals."""
        found = self.agreement
        tally = found.tally
        noise = found.noise
        return {
            **{name: _plain(getattr(found, name)) for name in ESTIMATES},
            "highest_precision": _number(found.highest_precision),
            "noise": None if noise is None else [_number(noise[0]), _number(noise[1])],
            "rejected": _number(found.rejected),
            "comments_per_hunk": _number(found.comments_per_hunk),
            "categories": dict(found.categories),
            "published": None
            if not found.published
            else {"recall": _number(found.published_recall), "f1": _number(found.published_f1)},
            "counts": dict(vars(tally)),
        }


def measure(verdicts: Sequence[Verdict]) -> MatchingNumbers | None:
    """Return the numbers over the verdicts of some pull requests; None without a measurement."""
    found = agreement(verdicts)
    return None if found is None else MatchingNumbers(found)


def _precision(found: Agreement) -> str:
    tally = found.tally
    text = f"{_estimate(found.precision)}: {tally.matched} of {many(tally.comments, 'comment')} have a match"
    if not tally.unlabelled:
        return text
    return (
        f"{text}; {percent(found.highest_precision)} if the {tally.unlabelled} that no expert has labelled "
        "were all right"
    )


def _estimate(estimate: Estimate) -> str:
    if estimate.interval is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({span(estimate.interval).strip()})"


def _plain(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    bounds = None if interval is None else [round(interval.low, 6), round(interval.high, 6)]
    return {"value": _number(estimate.value), "interval": bounds}


def _number(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), 6)
