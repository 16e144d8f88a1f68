"""A table of text, for a terminal, Markdown and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..text.printable import printable
from .escape import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..statistics.score import Summary

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
