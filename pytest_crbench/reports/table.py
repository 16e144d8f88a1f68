"""The block that a run prints at its end, as lines; everything foreign is made printable."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ..core.scoring import scoring_of
from ..statistics.intervals import percent, span
from ..text.printable import inert, printable
from .lines import (
    bounds_line,
    comments_line,
    cost_line,
    coverage_line,
    detectable_line,
    lost_lines,
    missed_lines,
    noted_line,
    notes,
    self_reported_line,
    unchanged_line,
    unmeasured_lines,
    worth_showing,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..statistics.gate import Decision
    from ..statistics.results import Results
    from ..statistics.score import Group, Rate, Summary

#: Width of the first column: the longest of the usual facets and two spaces.
_LABEL = 10


def table(
    results: Results,
    summaries: Sequence[Summary],
    *,
    files: str | None = None,
    logs: str | None = None,
    width: int = 100,
    decision: Decision | None = None,
    misses: bool = False,
) -> list[str]:
    """Return the block without its heading and without the verdict line.

    Args:
        results: the run; its notices and notes are printed.
        summaries: the rates to print, one block for each scoring.
        files: where the files of the run are, as the user can type it.
        logs: the folder that logs are named relative to, likewise.
        width: columns to wrap text at.
        decision: what the gate said, for the checks that were lost against a baseline.
        misses: whether to say of each miss why.
    """
    found: list[str] = []
    for summary in summaries:
        found += [""] if found else []
        found += _rates(summary, summary.scoring if len(summaries) > 1 else "")
        found += _wrapped(_details(summary, logs), width)
    ends = [
        *_listed("missed", missed_lines(results) if misses else ()),
        *_listed("lost", lost_lines(decision) if decision else ()),
        *(("note", line) for line in notes(results)),
        *([("files", printable(files))] if files else []),
        *([("more", f"crbench show {printable(files)} CHECK")] if files and misses else []),
    ]
    return found + _wrapped(ends, width)


def _listed(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for place, line in enumerate(lines):
        yield "" if place else name, line


def _wrapped(details: Iterable[tuple[str, str]], width: int) -> list[str]:
    found: list[str] = []
    for name, text in details:
        lines = textwrap.wrap(
            text,
            max(width, 40),
            initial_indent=f"{name:<{_LABEL}}",
            subsequent_indent=" " * _LABEL,
            # To be copied.
            break_long_words=name not in ("files", "no result", "more", "missed", "lost", ""),
            break_on_hyphens=False,
        )
        # A break may have put a command to the CI service at the beginning of a line.
        found.extend(inert(line) for line in lines)
    return found


def verdict_line(decision: Decision) -> str:
    """The last line of a run."""
    return "crbench: " + printable(decision.verdict, 1000)


def _rates(summary: Summary, title: str) -> Iterator[str]:
    groups = [(facet, group) for facet, found in worth_showing(summary) for group in found]
    values = [printable(group.value, 32) for _, group in groups]
    width = max([18, *map(len, values)])
    count = scoring_of(summary.scoring).passed
    yield f"{title:<{_LABEL + width}}  {count:>6}  {'of':>4}  {'rate':>6}   95 % interval"
    yield from _rows("overall", "", width, summary.overall)
    before = ""
    for (facet, group), value in zip(groups, values, strict=True):
        yield from _rows("" if facet == before else printable(facet, _LABEL - 1), value, width, group)
        before = facet


def _rows(label: str, value: str, width: int, group: Group) -> Iterator[str]:
    """The strict rate, and below it the measured one where that is another."""
    yield _row(label, value, width, group.strict)
    if group.differs:
        yield _row("", "  measured", width, group.measured)


def _row(label: str, value: str, width: int, rate: Rate) -> str:
    numbers = f"{rate.passed:>6}  {rate.of:>4}  {percent(rate.value):>6}   {span(rate.interval)}"
    return f"{label:<{_LABEL}}{value:<{width}}  {numbers}".rstrip()


def _details(summary: Summary, logs: str | None) -> Iterator[tuple[str, str]]:
    overall = summary.overall
    if overall.differs:
        yield (
            "measured",
            "without the errors of the reviewer and tampering, which count as not passed elsewhere",
        )
    if summary.own is not None:
        yield from summary.own.lines()
    elif overall.macro is not None and overall.macro != overall.strict.value:
        yield (
            "macro",
            f"{percent(overall.macro)} ({span(overall.macro_interval).strip()}), the mean over pull requests",
        )
    if summary.repeats > 1:
        yield (
            "repeats",
            f"{summary.repeats} of each of {overall.checks} checks: {overall.passed_always} passed in every "
            f"repeat, {overall.passed_ever} in at least one",
        )
    comments = comments_line(overall)
    if comments:
        yield "comments", comments
    if line := noted_line(overall):
        yield "noted", line
    yield "coverage", coverage_line(overall)
    if line := bounds_line(overall):
        yield "bounds", line
    if line := unchanged_line(overall):
        yield "agent", line
    if line := detectable_line(overall):
        yield "detects", line
    if line := self_reported_line(summary):
        yield "outside", line
    for place, line in enumerate(unmeasured_lines(summary, logs=logs)):
        yield "no result" if place == 0 else "", line
    cost = cost_line(overall)
    if cost:
        yield "cost", cost
