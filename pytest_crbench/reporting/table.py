"""The block that a run prints at its end, as lines; everything foreign is made printable."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ..core.text import inert, printable
from .lines import comments_line, cost_line, coverage_lines, notes, percent, span, worth_showing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.gate import Decision
    from ..core.intervals import Interval
    from ..core.results import Results
    from ..core.score import Summary

#: Width of the first column: the longest of the usual facets and two spaces.
_LABEL = 10


def table(results: Results, summary: Summary, *, files: str | None = None, width: int = 100) -> list[str]:
    """Return the block without its heading and without the verdict line.

    Args:
        results: the run; its notices and notes are printed.
        summary: the rates to print.
        files: where the files of the run are, as the user can type it.
        width: columns to wrap text at.
    """
    found = [*_rates(summary)]
    for name, text in _details(results, summary, files):
        lines = textwrap.wrap(
            text,
            max(width, 40),
            initial_indent=f"{name:<{_LABEL}}",
            subsequent_indent=" " * _LABEL,
            # To be copied.
            break_long_words=name != "files",
            break_on_hyphens=False,
        )
        # A break may have put a command to the CI service at the beginning of a line.
        found.extend(inert(line) for line in lines)
    return found


def verdict_line(decision: Decision) -> str:
    """The last line of a run."""
    return "crbench: " + printable(decision.verdict, 1000)


def _rates(summary: Summary) -> Iterator[str]:
    groups = [(facet, group) for facet, found in worth_showing(summary) for group in found]
    values = [printable(group.value, 32) for _, group in groups]
    width = max([18, *map(len, values)])
    yield f"{'':<{_LABEL + width}}  {'passed':>6}  {'of':>4}  {'rate':>6}   95 % interval"
    strict = summary.overall.strict
    yield _row("overall", "", width, strict.passed, strict.of, percent(strict.value), strict.interval)
    before = ""
    for (facet, group), value in zip(groups, values, strict=True):
        label = "" if facet == before else printable(facet, _LABEL - 1)
        rate = group.strict
        yield _row(label, value, width, rate.passed, rate.of, percent(rate.value), rate.interval)
        before = facet


def _row(
    label: str, value: str, width: int, passed: int, of: int, rate: str, interval: Interval | None
) -> str:
    return f"{label:<{_LABEL}}{value:<{width}}  {passed:>6}  {of:>4}  {rate:>6}   {span(interval)}".rstrip()


def _details(results: Results, summary: Summary, files: str | None) -> Iterator[tuple[str, str]]:
    overall = summary.overall
    if overall.measured.of != overall.strict.of and overall.measured.value is not None:
        rate = overall.measured
        yield (
            "measured",
            f"{rate.passed} of {rate.of}, {percent(rate.value)} ({span(rate.interval).strip()}), without the "
            "errors of the reviewer, which count as not passed above",
        )
    if overall.macro is not None and overall.macro != overall.strict.value:
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
    for place, line in enumerate(coverage_lines(summary)):
        yield "coverage" if place == 0 else "", line
    cost = cost_line(overall)
    if cost:
        yield "cost", cost
    for line in notes(results):
        yield "note", line
    if files:
        yield "files", printable(files)
