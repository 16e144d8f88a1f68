"""The tables of AACR-Bench's paper (arXiv 2601.19494) over some runs: one row for each of them.

Its Table 3 compares reviewers and what they are shown, Table 4 recall by the context that a reference needs,
a figure F1 by language; ours of categories stands for its Table 10. All numbers but counts of comments are in
per cent; what unlabelled comments are is open, so precision has two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.agreement import Estimate
from ..core.compare import differing
from ..core.errors import UsageError
from ..core.text import printable
from .escape import escaped
from .lines import coverage_line, fixture_lines, percent, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.agreement import Agreement
    from ..core.model import Key
    from ..core.results import Results
    from ..core.score import Summary

_NAME_WIDTH = 40


@dataclass(frozen=True)
class Table:
    """A table: what it is called, what its columns are, and its cells as text; "-" where nothing is known."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: How many of the first columns are names, not numbers.
    names: int = 2


@dataclass(frozen=True)
class _Row:
    """One run, with what names it in every table."""

    reviewer: str
    context: str
    summary: Summary
    agreement: Agreement


def tables(runs: Sequence[Results]) -> list[Table]:
    """Return the tables over some runs, in their order.

    Raises:
        UsageError: naming the run that was not scored by matching, or has no measurement.
    """
    rows = [_row(run) for run in runs]
    return [_overview(rows), _by_facet(rows, "context"), _by_language(rows), _by_category(rows)]


def remarks(runs: Sequence[Results]) -> list[str]:
    """Say what keeps the rows from being compared; empty if nothing does."""
    said: list[str] = []
    for run in runs:
        overall = run.summary(scoring="matching").overall
        if overall.unmeasured:
            said.append(f"{_named(run)}: {coverage_line(overall)}; its numbers are of what was measured")
        said += [f"{_named(run)}: {line}" for line in (*_published(run), *fixture_lines(run))]
    first = runs[0]
    for other in runs[1:]:
        unlike = differing(first, other, "matching")
        said += [f"{_named(first)} and {_named(other)} are not alike: {line}" for line in unlike]
        if not _same_checks(first, other):
            said.append(f"{_named(first)} and {_named(other)} are of different checks or repeats")
    return [printable(line, 1000) for line in said]


def _named(run: Results) -> str:
    return f"{run.reviewer} ({run.source})"


def _published(run: Results) -> Iterator[str]:
    agreement = run.summary(scoring="matching").agreement
    if agreement is not None and agreement.published:
        yield "by the published evaluator, with its faults"


def _checks(run: Results) -> dict[Key, str | None]:
    """What was selected, with its digest where a verdict tells it."""
    digests = {verdict.key: verdict.check_digest for verdict in run.verdicts}
    return {key: digests.get(key) for key in {*run.planned, *digests} if key.scoring == "matching"}


def _same_checks(first: Results, second: Results) -> bool:
    """Whether two runs selected the same checks, as far as their digests are known."""
    ours, theirs = _checks(first), _checks(second)
    return ours.keys() == theirs.keys() and all(
        digest is None or theirs[key] in (None, digest) for key, digest in ours.items()
    )


def tables_text(found: Iterable[Table]) -> list[str]:
    """Return tables as lines for a terminal."""
    lines: list[str] = []
    for table in found:
        widths = [max(len(row[i]) for row in (table.columns, *table.rows)) for i in range(len(table.columns))]
        lines += ["", table.title]
        for row in (table.columns, *table.rows):
            cells = [
                text.ljust(width) if place < table.names else text.rjust(width)
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
    return lines[1:]


def tables_markdown(found: Iterable[Table]) -> str:
    """Return tables in GitHub-flavoured Markdown."""
    lines: list[str] = []
    for table in found:
        lines += [f"**{escaped(table.title)}**", ""]
        lines.append(f"| {' | '.join(escaped(column, 60) for column in table.columns)} |")
        lines.append("|" + "---|" * table.names + "---:|" * (len(table.columns) - table.names))
        lines += [f"| {' | '.join(escaped(cell, 60) for cell in row)} |" for row in table.rows]
        lines.append("")
    return "\n".join(lines)


def tables_json(found: Iterable[Table]) -> list[dict[str, Any]]:
    """Return tables as plain JSON: a list of rows by column."""
    return [
        {
            "name": table.name,
            "title": table.title,
            "rows": [dict(zip(table.columns, _plain(row, table.names), strict=True)) for row in table.rows],
        }
        for table in found
    ]


def _plain(row: Sequence[str], names: int) -> Iterator[int | float | str | None]:
    """Cells as numbers where they are some; names stay as they are, whatever they look like."""
    for place, cell in enumerate(row):
        if cell == "-" and place:
            yield None
        elif place < names:
            yield cell
        elif cell.isdecimal():
            yield int(cell)
        else:
            try:
                yield float(cell)
            except ValueError:
                yield cell


def _row(run: Results) -> _Row:
    if "matching" not in run.scorings:
        raise UsageError(
            f"{run.source} was scored by {', '.join(run.scorings)}: these tables are of the scoring matching "
            "(--crbench-scoring=matching)"
        )
    summary = run.summary(scoring="matching")
    if summary.agreement is None:
        raise UsageError(f"{run.source} has no measurement: there is nothing to put into a table")
    reviewer = run.run.get("reviewer")
    fingerprint = (reviewer.get("fingerprint") if isinstance(reviewer, dict) else None) or {}
    mode, model = fingerprint.get("mode"), fingerprint.get("model")
    if isinstance(model, dict):
        model = model.get("model") or model.get("name")
    name = model if mode and model else run.reviewer
    return _Row(
        printable(str(name), _NAME_WIDTH), printable(str(mode or "-"), 20), summary, summary.agreement
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
    values = _values(rows, facet)
    columns = ("reviewer", "context", *_headed(values))
    return Table(
        "table4",
        "Recall by the context that a reference needs",
        columns,
        tuple((row.reviewer, row.context, *_recalls(row, facet, values)) for row in rows),
    )


def _by_language(rows: Sequence[_Row]) -> Table:
    def lines() -> Iterator[tuple[str, ...]]:
        for row in rows:
            for (facet, value), found in sorted(row.summary.agreements.items()):
                if facet == "language":
                    numbers = (found.precision, found.highest_precision, found.recall, found.f1)
                    cells = (percent(n.value if isinstance(n, Estimate) else n) for n in numbers)
                    name = printable(value, 20)
                    yield (row.reviewer, row.context, name, str(found.tally.comments), *cells)

    columns = ("reviewer", "context", "language", "comments", "P", "P at most", "R", "F1")
    return Table("language", "By language", columns, tuple(lines()), names=3)


def _by_category(rows: Sequence[_Row]) -> Table:
    """Recall by category, and how a model sorted the unlabelled comments (--crbench-classify)."""
    values = _values(rows, "category")
    sorts = sorted({name for row in rows for name in row.agreement.categories})
    unlabelled = (f"unlabelled: {printable(name, 40)}" for name in sorts)
    columns = ("reviewer", "context", *_headed(values), *unlabelled)
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


def _headed(values: Iterable[str]) -> Iterator[str]:
    """Values as headings, none of which is that of another column."""
    for value in values:
        shown = printable(value, 40)
        yield f"{shown} (value)" if shown in ("reviewer", "context") else shown


def _values(rows: Sequence[_Row], facet: str) -> tuple[str, ...]:
    return tuple(sorted({g.value for row in rows for g in row.summary.groups if g.facet == facet}))
