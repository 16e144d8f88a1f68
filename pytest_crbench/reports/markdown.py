"""``summary.md``: the verdict line, the table, what was not measured, and how the numbers were made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..core.report import Report
from ..core.scoring import scoring_of
from ..core.status import Status
from ..statistics.intervals import LEVEL, METHOD, percent, span
from ..statistics.score import latest
from ..text.printable import clean, code, escaped, many
from ..text.secrets import scrubbed
from .lines import (
    bounds_line,
    comments_line,
    cost_line,
    coverage_line,
    detectable_line,
    ident,
    noted_line,
    notes,
    self_reported_line,
    unchanged_line,
    unmeasured_groups,
    worth_showing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..core.model import Key, Verdict
    from ..statistics.gate import Decision
    from ..statistics.results import Results
    from ..statistics.score import Group, Summary

#: GitHub refuses a step summary of more than 1 MiB.
STEP_SUMMARY_LIMIT = 1024 * 1024
_LISTED = 100
_ICON = {"met": "✅ ", "not-met": "❌ ", "undecided": "⚠️ ", "none": ""}


def markdown(
    results: Results, summaries: Sequence[Summary], decision: Decision, *, files: str | None = None
) -> str:
    """Return the summary of a run in GitHub-flavoured Markdown.

    Args:
        results: the run.
        summaries: the rates, one table for each scoring.
        decision: what the gate said; its verdict is the first line.
        files: where the files of the run are.
    """
    return "\n".join(_document(results, summaries, decision, files)) + "\n"


class MarkdownReport(Report):
    """``summary.md``."""

    file = "summary.md"

    def content(self, results: Results, decision: Decision, run: Path) -> str:
        """Return `markdown`."""
        return markdown(results, results.summaries, decision, files=str(run))


REPORT = MarkdownReport()


def append_step_summary(text: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """Append to the file that GitHub Actions shows beside the job; the file, or None where there is none.

    Raises:
        InfraError: if the file cannot be written.
    """
    name = (os.environ if environ is None else environ).get("GITHUB_STEP_SUMMARY")
    if not name:
        return None
    path = Path(name)
    try:
        before = path.stat().st_size if path.exists() else 0
        data = _fit(clean(scrubbed(text)), STEP_SUMMARY_LIMIT - before)
        with path.open("ab") as stream:
            stream.write(data)
    except OSError as error:
        raise InfraError(
            f"cannot append to {path} (GITHUB_STEP_SUMMARY): {error.strerror}. The summary is in summary.md.",
            reason="disk",
        ) from error
    return path


def bullets(title: str, lines: Sequence[str], count: int | None = None) -> Iterator[str]:
    """A folded list, cut after a hundred entries; nothing for an empty one. ``count`` stands in its title."""
    if not lines:
        return
    yield from ("<details>", f"<summary>{title} ({len(lines) if count is None else count})</summary>", "")
    yield from (f"- {line}" for line in lines[:_LISTED])
    if len(lines) > _LISTED:
        yield f"- … and {len(lines) - _LISTED} more, see results.json"
    yield from ("", "</details>", "")


def _document(
    results: Results, summaries: Sequence[Summary], decision: Decision, files: str | None
) -> Iterator[str]:
    yield f"**{_ICON[decision.outcome]}crbench: {escaped(decision.verdict, 1000)}**"
    yield ""
    yield _how(results, summaries[0])
    yield ""
    for summary in summaries:
        if len(summaries) > 1:
            yield from (f"**{summary.scoring}**", "")
        yield from _table(summary)
        yield ""
        for line in _facts(summary):
            yield f"- {line}"
        yield ""
    for note in notes(results):
        yield f"- {escaped(note, 1000)}"
    if files:
        yield f"- files: {code(files)}"
    yield ""
    yield from bullets("Lost against the baseline", [code("::".join(name)) for name in decision.lost])
    for summary in summaries:
        yield from _lists(results, summary, f" ({summary.scoring})" if len(summaries) > 1 else "")
    yield (
        "<sub>Rates count a check as not passed if the reviewer failed on it; *measured* leaves it out. "
        f"Intervals: {LEVEL:.0%}, "
        f"{escaped(METHOD)}{_more_methods(summaries)}.</sub>"
    )


def _more_methods(summaries: Sequence[Summary]) -> str:
    methods = [scoring_of(summary.scoring).method for summary in summaries if summary.own is not None]
    return "".join(f"; {escaped(method)}" for method in methods if method)


def _how(results: Results, summary: Summary) -> str:
    parts = [f"{what} {code(results.name(what), 200)}" for what in ("reviewer", "agent", "sandbox")]
    overall = summary.overall
    return ", ".join([*parts, many(overall.instances, "pull request"), many(overall.checks, "check")])


def _table(summary: Summary) -> Iterator[str]:
    count = scoring_of(summary.scoring).passed
    yield f"| | | {count} | of | rate | 95 % interval |"
    yield "|---|---|---:|---:|---:|---|"
    yield from _rows("**overall**", "", summary.overall)
    for facet, groups in worth_showing(summary):
        for place, group in enumerate(groups):
            yield from _rows(escaped(facet, 40) if place == 0 else "", escaped(group.value, 60), group)


def _rows(label: str, value: str, group: Group) -> Iterator[str]:
    """The strict rate, and below it the measured one where that is another."""
    rates = [(label, value, group.strict)]
    if group.differs:
        rates.append(("", "*measured*", group.measured))
    for first, second, rate in rates:
        cells = (first, second, rate.passed, rate.of, percent(rate.value), span(rate.interval).strip())
        yield f"| {' | '.join(map(str, cells))} |"


def _facts(summary: Summary) -> Iterator[str]:
    overall = summary.overall
    if summary.own is not None:
        for name, line in summary.own.lines():
            yield f"{name}: {escaped(line, 1000)}"
    elif overall.macro is not None:
        yield f"mean over pull requests: {percent(overall.macro)} ({span(overall.macro_interval).strip()})"
    if summary.repeats > 1:
        yield (
            f"{summary.repeats} repeats of {overall.checks} checks: {overall.passed_always} passed in every "
            f"repeat, {overall.passed_ever} in at least one"
        )
    comments = comments_line(overall)
    if comments:
        yield f"comments: {comments}"
    if line := noted_line(overall):
        yield f"noted in reading the reviews: {escaped(line, 2000)}"
    yield f"coverage: {escaped(coverage_line(overall), 1000)}"
    if line := detectable_line(overall):
        yield f"detects: {escaped(line)}"
    if line := bounds_line(overall):
        yield f"bounds: {escaped(line)}"
    if line := unchanged_line(overall):
        yield f"agent: {escaped(line)}"
    if line := self_reported_line(summary):
        yield f"outside failures: {escaped(line)}"
    cost = cost_line(overall)
    if cost:
        yield f"cost: {escaped(cost)}"


def _lists(results: Results, summary: Summary, of: str) -> Iterator[str]:
    groups = unmeasured_groups(summary)
    count = sum(len(keys) for keys, _ in groups)
    yield from bullets(f"Not measured{of}", [_unmeasured(*group) for group in groups], count)
    for status in (Status.PASSED, Status.MISSED):
        found = [
            v
            for v in latest(results.verdicts).values()
            if v.status is status and (v.key.scoring, v.key.arm) == (summary.scoring, summary.arm)
        ]
        lines = [code(ident(v.key)) + (f": {code(v.reason, 200)}" if v.reason else "") for v in found]
        yield from bullets(status.value.capitalize() + of, lines)


def _unmeasured(keys: list[Key], one: Verdict | None) -> str:
    """A cause, after the checks that it has taken."""
    names = ", ".join(code(ident(key)) for key in keys[:_LISTED])
    names += f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
    if one is None:
        return f"{names}: not run"
    return (
        f"{names}: {one.status.value}"
        + (f" {escaped(one.cause, 30)}" if one.cause else "")
        + (f", {code(one.reason)}" if one.reason else "")
        + (f", log {code(one.log)}" if one.log else "")
    )


def _fit(text: str, room: int) -> bytes:
    data = text.encode()
    if len(data) <= room:
        return data
    tail = "\n\n</details>\n\n… cut; the whole summary is in summary.md\n".encode()
    return data[: room - len(tail)].decode("utf-8", "ignore").encode() + tail if room > len(tail) else b""
