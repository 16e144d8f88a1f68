"""The tables of the papers over some runs, and what keeps their rows from being compared."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.scoring import scoring_of
from ..statistics.compare import differing
from ..text.printable import escaped, printable
from .lines import coverage_line, fixture_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.model import Key
    from ..statistics.results import Results
    from ..statistics.score import Group, Summary

_PACKAGE = __name__.partition(".")[0]


def tables(runs: Sequence[Results]) -> list[Table]:
    """Return the tables over some runs, in their order: of each scoring that all of them have.

    Raises:
        UsageError: the runs have no scoring in common, or one has no measurement.
    """
    found: list[Table] = []
    for name in _scorings(runs):
        module, _, function = scoring_of(name).tables.partition(":")
        if module:
            found += getattr(import_module(f"{_PACKAGE}.{module}"), function)(runs)
    if not found:
        raise UsageError(f"no paper has a table of the scoring {', '.join(_scorings(runs))}")
    return found


def _scorings(runs: Sequence[Results]) -> list[str]:
    common = [name for name in runs[0].scorings if all(name in run.scorings for run in runs)]
    if not common:
        scored = "; ".join(f"{run.source} was scored by {', '.join(run.scorings)}" for run in runs)
        raise UsageError(f"{scored}: they have no table in common; name runs of one scoring")
    return common


def remarks(runs: Sequence[Results]) -> list[str]:
    """Say what keeps the rows from being compared; empty if nothing does."""
    said: list[str] = []
    for run in runs:
        for scoring in _scorings(runs):
            said += [f"{_named(run)}: {line}" for line in _unmeasured(run.summary(scoring=scoring).overall)]
        said += [f"{_named(run)}: {line}" for line in (*_published(run), *fixture_lines(run))]
    first = runs[0]
    for other in runs[1:]:
        for scoring in _scorings(runs):
            unlike = differing(first, other, scoring)
            said += [f"{_named(first)} and {_named(other)} are not alike: {line}" for line in unlike]
            if not _same_checks(first, other, scoring):
                said.append(f"{_named(first)} and {_named(other)} are of different checks or repeats")
    return [printable(line, 1000) for line in dict.fromkeys(said)]


def _unmeasured(overall: Group) -> Iterator[str]:
    """What became of the checks without a measurement: some count as not passed, others in no rate."""
    if not overall.unmeasured:
        return
    missed = overall.strict.of - overall.measured.of
    left = overall.unmeasured - missed
    counted = [
        *([f"{missed} counted as not passed or found"] if missed else []),
        *([f"{left} left out of every rate"] if left else []),
    ]
    yield f"{coverage_line(overall)}; {', '.join(counted)}"


def _named(run: Results) -> str:
    return f"{run.reviewer} ({run.source})"


def _published(run: Results) -> Iterator[str]:
    for summary in run.summaries:
        if summary.own is not None:
            yield from summary.own.remarks


def _checks(run: Results, scoring: str) -> dict[Key, str | None]:
    """What was selected, with its digest where a verdict tells it."""
    digests = {verdict.key: verdict.check_digest for verdict in run.verdicts}
    return {key: digests.get(key) for key in {*run.planned, *digests} if key.scoring == scoring}


def _same_checks(first: Results, second: Results, scoring: str) -> bool:
    """Whether two runs selected the same checks, as far as their digests are known."""
    ours, theirs = _checks(first, scoring), _checks(second, scoring)
    return ours.keys() == theirs.keys() and all(
        digest is None or theirs[key] in (None, digest) for key, digest in ours.items()
    )


#: Headings of columns that are no facet's value.
_OURS = ("run", "reviewer", "context")


@dataclass(frozen=True)
class Table:
    """A table: what it is called, what its columns are, and its cells as text; "-" where nothing is known."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: How many of the first columns are names, not numbers.
    names: int = 2


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


def headed(values: Iterable[str]) -> Iterator[str]:
    """Yield values of a facet as headings, none of which is that of another column."""
    for value in values:
        shown = printable(value, 40)
        yield f"{shown} (value)" if shown in _OURS else shown


def values_of(summaries: Iterable[Summary], facet: str) -> tuple[str, ...]:
    """Return every value that a facet has in some runs, sorted."""
    return tuple(sorted({g.value for one in summaries for g in one.groups if g.facet == facet}))
