"""A comparison of two runs as text, Markdown and plain JSON."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from ..core.records import to_row
from ..statistics.compare import remarks
from ..statistics.intervals import LEVEL, PAIRED_METHOD, percent
from ..statistics.paired import METHOD as TEST
from ..text.printable import code, escaped, inert, printable
from .lines import bounds_lines, ident, is_worth_showing, notes
from .markdown import bullets
from .schema import summary_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from ..core.model import Key
    from ..core.status import Status
    from ..statistics.compare import Comparison, Difference
    from ..statistics.results import Results


def comparison_text(found: Comparison, *, listed: int = 20) -> list[str]:
    """Return a comparison as lines for a terminal; at most ``listed`` checks per list."""
    overall = found.overall
    lines = []
    for letter, results in (("A", found.first), ("B", found.second)):
        lines.append(f"{letter}  {printable(results.reviewer, 60)}  ({printable(results.source)})")
        lines += [f"   {line}" for line in bounds_lines(results.summary(scoring=found.scoring))]
    lines.append("")
    groups = [("overall", "", overall), *_worth_showing(found)]
    width = max([18, *(len(printable(value, 32)) for _, value, _ in groups)])
    lines.append(
        f"{'':<{10 + width}} {'checks':>6} {'both':>4} {'only A':>6} {'only B':>6} {'neither':>7}"
        f" {'A':>5} {'B':>5} {'B - A':>6}  95 % interval"
    )
    before = ""
    for facet, value, group in groups:
        label = "" if facet == before else printable(facet, 9)
        before = facet
        lines.append(
            f"{label:<10}{printable(value, 32):<{width}} {group.checks:>6} {group.both:>4}"
            f" {group.only_first:>6} {group.only_second:>6} {group.neither:>7} {percent(group.first):>5}"
            f" {percent(group.second):>5} {_signed(group.change):>6}  {_span(group)}"
        )
    lines += ["", *_tested(overall)]
    for title, keys in _lists(found):
        if keys:
            lines += ["", f"{title} ({len(keys)})"]
            lines += [f"  {printable(name)}" for name in keys[:listed]]
            if len(keys) > listed:
                lines.append(f"  ... and {len(keys) - listed} more")
    for note in _notes(found):
        lines += ["", *textwrap.wrap(f"Note  {note}", 100, subsequent_indent="      ")]
    return [inert(line) for line in lines]


def comparison_markdown(found: Comparison) -> str:
    """Return a comparison in GitHub-flavoured Markdown."""
    lines = [
        f"**crbench compare**: A is {code(found.first.reviewer)} ({code(found.first.source)}), "
        f"B is {code(found.second.reviewer)} ({code(found.second.source)})",
        "",
        *(
            f"- {letter}: {escaped('; '.join(bounds_lines(results.summary(scoring=found.scoring))), 1000)}"
            for letter, results in (("A", found.first), ("B", found.second))
        ),
        "",
        "| | | checks | both | only A | only B | neither | A | B | B − A | 95 % interval |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    before = ""
    for facet, value, group in [("overall", "", found.overall), *_worth_showing(found)]:
        cells = (
            "" if facet == before else escaped(facet, 40),
            escaped(value, 60),
            *(group.checks, group.both, group.only_first, group.only_second, group.neither),
            *(percent(group.first), percent(group.second), _signed(group.change), _span(group).strip()),
        )
        before = facet
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", *(escaped(line, 1000) for line in _tested(found.overall)), ""]
    for title, names in _lists(found):
        lines += bullets(title, [code(name) for name in names])
    lines += [f"- {escaped(note, 1000)}" for note in _notes(found)] + [""]
    lines.append(f"<sub>Intervals: {LEVEL:.0%}, {PAIRED_METHOD}.</sub>")
    return "\n".join(lines) + "\n"


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain JSON (docs/results-format.md)."""
    return {
        "schema": "crbench-comparison",
        "schema_version": 1,
        "scoring": found.scoring,
        "first": _run_json(found.first, found.scoring),
        "second": _run_json(found.second, found.scoring),
        "interval": {"method": PAIRED_METHOD, "level": LEVEL},
        "test": {"method": TEST},
        "notes": _notes(found),
        "overall": _group_json(found.overall),
        "facets": [_group_json(group) for group in found.groups],
        "both": [to_row(key) for key in found.keys(first=True, second=True)],
        "only_first": [to_row(key) for key in found.keys(first=True, second=False)],
        "only_second": [to_row(key) for key in found.keys(first=False, second=True)],
        "neither": [to_row(key) for key in found.keys(first=False, second=False)],
        "unmeasured": [
            {
                **to_row(one.key),
                "first": _status(one.first),
                "second": _status(one.second),
                "reason": one.reason,
            }
            for one in found.unmeasured
        ],
        "changed": [to_row(key) for key in found.changed],
        "only_in_first": [to_row(key) for key in found.only_in_first],
        "only_in_second": [to_row(key) for key in found.only_in_second],
    }


def _run_json(results: Results, scoring: str) -> dict[str, Any]:
    """A run by itself, with both bounds: what it measured is not only what the two have in common."""
    return {
        "source": results.source,
        "reviewer": results.reviewer,
        "overall": summary_json(results.summary(scoring=scoring))["overall"],
    }


def _status(status: Status | None) -> str:
    return "not_run" if status is None else status.value


def _group_json(group: Difference) -> dict[str, Any]:
    return {
        "facet": group.facet,
        "value": group.value,
        "checks": group.checks,
        "lost": len(group.lost),
        "won": len(group.won),
        "pairs": group.pairs,
        "both": group.both,
        "only_first": group.only_first,
        "only_second": group.only_second,
        "neither": group.neither,
        "first": _number(group.first),
        "second": _number(group.second),
        "change": _number(group.change),
        "interval": None
        if group.interval is None
        else [round(group.interval.low, 6), round(group.interval.high, 6)],
        "p": group.p,
        "p_worse": group.p_worse,
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _notes(found: Comparison) -> list[str]:
    """What must be said of the data and of both runs, each thing once."""
    ours, theirs = notes(found.first), notes(found.second)
    return list(dict.fromkeys([*ours, *theirs, *remarks(found.first, found.second)]))


def _worth_showing(found: Comparison) -> Iterator[tuple[str, str, Difference]]:
    facets: dict[str, list[Difference]] = {}
    for group in found.groups:
        facets.setdefault(group.facet, []).append(group)
    for facet, groups in facets.items():
        if is_worth_showing(facet, len(groups)):
            yield from ((facet, group.value, group) for group in groups)


def _tested(overall: Difference) -> Iterator[str]:
    """The p value, and what the columns count where that is not checks."""
    yield f"p = {overall.p:.2g}, that B is worse {overall.p_worse:.2g} ({TEST})"
    if overall.pairs > overall.checks:
        yield (
            f"Both, only A, only B and neither count each check once a repeat ({overall.pairs} in all). "
            f"B passed {len(overall.lost)} checks in fewer repeats, {len(overall.won)} in more."
        )


def _lists(found: Comparison) -> Iterator[tuple[str, list[str]]]:
    yield "Passed only by A", _names(found.keys(first=True, second=False))
    yield "Passed only by B", _names(found.keys(first=False, second=True))
    yield "Passed by both", _names(found.keys(first=True, second=True))
    yield "Passed by neither", _names(found.keys(first=False, second=False))
    yield (
        "Not measured in both",
        [
            f"{ident(one.key)}: A {_status(one.first)}, B {_status(one.second)}"
            + (f" ({printable(one.reason, 100)})" if one.reason else "")
            for one in found.unmeasured
        ],
    )
    yield "Left out, the check differs", _names(list(found.changed))
    yield "Only in A", _names(list(found.only_in_first))
    yield "Only in B", _names(list(found.only_in_second))


def _names(keys: list[Key]) -> list[str]:
    return [ident(key) for key in sorted(keys)]


def _signed(value: Fraction | None) -> str:
    return "-" if value is None else f"{100 * float(value):+.1f}"


def _span(group: Difference) -> str:
    if group.interval is None:
        return "-"
    return f"{100 * group.interval.low:+.1f} to {100 * group.interval.high:+.1f}"
