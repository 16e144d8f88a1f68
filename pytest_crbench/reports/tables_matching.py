"""The tables of AACR-Bench's paper (arXiv 2601.19494) over runs that were scored by matching.

Its Table 3 compares reviewers and what they are shown, Table 4 recall by the context that a reference needs,
a figure F1 by language; ours of categories stands for its Table 10. All numbers but counts of comments are in
per cent; what unlabelled comments are is open, so precision has two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..scoring.matching.numbers import MatchingNumbers
from ..statistics.agreement import Estimate
from ..statistics.intervals import percent, span
from ..text.printable import printable
from .tables import Table, headed, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..statistics.agreement import Agreement
    from ..statistics.results import Results
    from ..statistics.score import Summary

_NAME_WIDTH = 40


@dataclass(frozen=True)
class _Row:
    """One run, with what names it in every table."""

    reviewer: str
    context: str
    summary: Summary
    agreement: Agreement


def matching_tables(runs: Sequence[Results]) -> list[Table]:
    """Return the tables over some runs that were scored by matching, in their order.

    Raises:
        UsageError: naming the run that has no measurement.
    """
    rows = [_row(run) for run in runs]
    return [_overview(rows), _by_facet(rows, "context"), _by_language(rows), _by_category(rows)]


def _row(run: Results) -> _Row:
    summary = run.summary(scoring="matching")
    if not isinstance(summary.own, MatchingNumbers):
        raise UsageError(f"{run.source} has no measurement: there is nothing to put into a table")
    fingerprint = run.run.reviewer.fingerprint or {}
    mode, model = fingerprint.get("mode"), fingerprint.get("model")
    if isinstance(model, dict):
        model = model.get("model") or model.get("name")
    name = model if mode and model else run.reviewer
    return _Row(
        printable(str(name), _NAME_WIDTH), printable(str(mode or "-"), 20), summary, summary.own.agreement
    )


def _overview(rows: Sequence[_Row]) -> Table:
    columns = (
        *("reviewer", "context", "checks", "measured", "comments", "per hunk", "noise", "line P", "line R"),
        *("P", "P at most", "R", "F1", "95 % interval", "macro F1"),
    )
    return Table("table3", "Reviewers and what they are shown", columns, tuple(map(_overview_row, rows)))


def _overview_row(row: _Row) -> tuple[str, ...]:
    found = row.agreement
    noise = found.noise
    per_hunk = found.comments_per_hunk
    return (
        row.reviewer,
        row.context,
        str(row.summary.overall.selected),
        percent(row.summary.overall.coverage),
        str(found.tally.comments),
        "-" if per_hunk is None else f"{float(per_hunk):.2f}",
        "-" if noise is None else f"{percent(noise[0])} - {percent(noise[1])}",
        percent(found.line_precision.value),
        percent(found.line_recall.value),
        percent(found.precision.value),
        percent(found.highest_precision),
        percent(found.recall.value),
        percent(found.f1.value),
        span(found.f1.interval).strip(),
        percent(found.macro_f1.value),
    )


def _by_facet(rows: Sequence[_Row], facet: str) -> Table:
    values = values_of((row.summary for row in rows), facet)
    columns = ("reviewer", "context", *headed(values))
    return Table(
        "table4",
        "Recall by the context that a reference needs",
        columns,
        tuple((row.reviewer, row.context, *_recalls(row, facet, values)) for row in rows),
    )


def _by_language(rows: Sequence[_Row]) -> Table:
    def lines() -> Iterator[tuple[str, ...]]:
        for row in rows:
            for (facet, value), found in sorted(row.summary.numbers.items()):
                if facet == "language" and isinstance(found, MatchingNumbers):
                    of = found.agreement
                    numbers = (of.precision, of.highest_precision, of.recall, of.f1)
                    cells = (percent(n.value if isinstance(n, Estimate) else n) for n in numbers)
                    name = printable(value, 20)
                    yield (row.reviewer, row.context, name, str(of.tally.comments), *cells)

    columns = ("reviewer", "context", "language", "comments", "P", "P at most", "R", "F1")
    return Table("language", "By language", columns, tuple(lines()), names=3)


def _by_category(rows: Sequence[_Row]) -> Table:
    """Recall by category, and how a model sorted the unlabelled comments (--crbench-matching classify)."""
    values = values_of((row.summary for row in rows), "category")
    sorts = sorted({name for row in rows for name in row.agreement.categories})
    unlabelled = (f"unlabelled: {printable(name, 40)}" for name in sorts)
    columns = ("reviewer", "context", *headed(values), *unlabelled)
    made = tuple(
        (
            row.reviewer,
            row.context,
            *_recalls(row, "category", values),
            *(str(row.agreement.categories.get(name, 0)) for name in sorts),
        )
        for row in rows
    )
    return Table("table10", "Recall by category, and unlabelled comments by category", columns, made)


def _recalls(row: _Row, facet: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        group = row.summary.group(facet, value)
        yield "-" if group is None else percent(group.strict.value)
