"""The sentences that the table and the Markdown share; plain text, everything foreign made printable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.status import Status
from ..statistics.gate import causes
from ..statistics.intervals import percent, span
from ..statistics.score import latest
from ..text.printable import many, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.model import Key, Verdict
    from ..core.run_record import Part, SandboxPart
    from ..statistics.gate import Decision
    from ..statistics.results import Results
    from ..statistics.score import Group, Summary

_ALWAYS = ("kind", "category")
#: More values than this are left to results.json.
_VALUES = 12
#: Nearly one value per pull request: a list of the instances, not a facet to look at.
_NEVER = ("repo",)
_REASON = 100
#: The kinds of pairs that a threshold is measured on (`scoring.matching.calibration`).
_KINDS = {
    "paraphrases": "paraphrases",
    "same_place": "pairs at one place",
    "same_pull_request": "of one pull request",
    "unrelated": "unrelated",
}


def worth_showing(summary: Summary) -> Iterator[tuple[str, list[Group]]]:
    """Facets that tell something: kind and category, and others with some, but not too many, values."""
    for facet, groups in summary.facets().items():
        if is_worth_showing(facet, len(groups)):
            yield facet, groups


def is_worth_showing(facet: str, values: int) -> bool:
    """Whether a facet with so many values belongs in a table that a person reads."""
    return facet in _ALWAYS or (facet not in _NEVER and 1 < values <= _VALUES)


def comments_line(group: Group) -> str:
    """How many comments there were, "" if no review is known."""
    totals = group.totals
    if totals.comments_per_pr is None:
        return ""
    where = "pull request" if totals.reviews <= group.instances else "review"
    each = f"{float(totals.comments_per_pr):.1f} each"
    line = f"{totals.comments} on {many(totals.reviews, where)} ({each})"
    if totals.outside_diff:
        line += f", {totals.outside_diff} outside the diff"
    if totals.duplicates:
        line += f", {many(totals.duplicates, 'duplicate')}"
    return line


def noted_line(group: Group) -> str:
    """What was unusual in reading the reviews, by kind, most frequent first; "" if nothing was."""
    kinds = list(group.totals.noted.items())
    shown = ", ".join(f"{count} {printable(kind, 120)}" for kind, count in kinds[:_VALUES])
    return shown + (f", and {len(kinds) - _VALUES} other kinds" if len(kinds) > _VALUES else "")


def coverage_line(group: Group) -> str:
    """How much was measured, and how much is missing by status."""
    return f"{group.passed + group.missed} of {group.selected} measured{causes(group)}"


def bounds_line(group: Group) -> str:
    """Between what the rate would lie if everything had been measured; "" if it was."""
    if not group.unmeasured or group.lowest is None:
        return ""
    return (
        f"{percent(group.lowest)} - {percent(group.highest)}, had what is not measured ({group.unmeasured}) "
        "been missed, or passed"
    )


def unchanged_line(group: Group) -> str:
    """How many coding agents changed nothing; "" if none."""
    count, of = group.totals.unchanged, group.totals.evaluations
    return f"changed no file in {count} of {many(of, 'revision')}: look at agent.stdout.txt" if count else ""


def detectable_line(group: Group) -> str:
    """The smallest difference to another run that a comparison would find; "" if nothing was measured."""
    if not group.strict.of:
        return ""
    if group.detectable is None:
        return "too few checks to find any difference to another run at 80 % power"
    return (
        f"a difference of at least {100 * group.detectable:.0f} points to another run on these checks "
        "(80 % power, 5 % false alarms)"
    )


def self_reported_line(summary: Summary) -> str:
    """The rate that the gate decides on, where programs reported outside failures of their own; "" if not."""
    count, rate = summary.self_reported, summary.gated.overall.strict
    if not count:
        return ""
    return (
        f"{many(count, 'check')} without a result for a reason that only the reviewer or agent gave; "
        f"counted as missed, as the gate does: {rate.passed} of {rate.of}, {percent(rate.value)} "
        f"({span(rate.interval).strip()})"
    )


def bounds_lines(summary: Summary) -> Iterator[str]:
    """Both rates with their intervals, the coverage and what it leaves open, for reports without a table."""
    group = summary.overall
    for name, rate in (("strict", group.strict), ("measured", group.measured)):
        if name == "strict" or group.differs:
            interval = span(rate.interval).strip()
            yield f"{name:<9}  {rate.passed} of {rate.of}, {percent(rate.value)} ({interval})"
    yield f"coverage   {coverage_line(group)}"
    if line := bounds_line(group):
        yield f"bounds     {line}"
    if line := self_reported_line(summary):
        yield f"outside    {line}"


def unmeasured_lines(summary: Summary, *, logs: Path | str | None, limit: int = 10) -> Iterator[str]:
    """One line for each cause of checks without a measurement: status, reason, and a log below ``logs``."""
    found = unmeasured_groups(summary)
    place = Path(logs) if logs is not None else None
    if place is not None and place.suffix == ".json":
        place = place.parent
    for keys, one in found[:limit]:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        if one is None:
            yield f"{ident(keys[0])}{more}: not run"
            continue
        cause = f" {printable(one.cause, 30)}" if one.cause else ""
        log = f"; log {printable(str(place / one.log if place else one.log))}" if one.log else ""
        yield f"{ident(keys[0])}{more}: {one.status.value}{cause}: {printable(one.reason, _REASON)}{log}"
    if len(found) > limit:
        rest = sum(len(keys) for keys, _ in found[limit:])
        yield f"... and {rest} more, see summary.md"


def unmeasured_groups(summary: Summary) -> list[tuple[list[Key], Verdict | None]]:
    """Checks without a measurement by cause, each cause with its first verdict (None: not run)."""
    groups: dict[tuple[str, str, str], tuple[list[Key], Verdict | None]] = {}
    for verdict in summary.unmeasured:
        cause = cause_of(vars(verdict))
        groups.setdefault(cause, ([], verdict))[0].append(verdict.key)
    found = list(groups.values())
    return [*found, (list(summary.not_run), None)] if summary.not_run else found


def cause_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what rows without a measurement are grouped by; a reason may name the pull request's files."""
    return row["status"], row["cause"], row["reason"].replace(row["instance"], "*")


def missed_lines(results: Results) -> Iterator[str]:
    """One line for each check that was missed, with the reason."""
    for verdict in latest(results.verdicts).values():
        if verdict.status is Status.MISSED:
            yield f"{ident(verdict.key)}: {printable(verdict.reason.removeprefix('missed: '), 200)}"


def lost_lines(decision: Decision, limit: int = 20) -> Iterator[str]:
    """One line for each check that a baseline passed and this run did not."""
    yield from (printable("::".join(name)) for name in decision.lost[:limit])
    if len(decision.lost) > limit:
        yield f"... and {len(decision.lost) - limit} more, see results.json"


def ident(key: Key) -> str:
    """A check as it is named in node ids, with its repeat from the second on."""
    name = printable(f"{key.dataset}::{key.instance}::{key.check}")
    return name if key.repeat == 1 else f"{name} (repeat {key.repeat})"


def cost_line(group: Group) -> str:
    """Tokens, money and median times, "" if none is known."""
    totals = group.totals
    parts = []
    used = [f"{_short(totals.tokens)} tokens"] if totals.tokens else []
    if totals.cost is not None:
        used.append(f"{totals.cost:.2f} USD")
    if used:
        parts.append(", ".join(used))
    order = {stage: place for place, stage in enumerate(("review", "revision", "tests"))}
    times = [
        f"{printable(stage, 20)} {_seconds(totals.seconds[stage])}"
        for stage in sorted(totals.seconds, key=lambda stage: (order.get(stage, len(order)), stage))
    ]
    if times:
        parts.append("median per pull request: " + ", ".join(times))
    return "; ".join(parts)


def notes(results: Results) -> Iterator[str]:
    """What a reader must know of the data and of how the run was made."""
    run = results.run
    for dataset in run.datasets:
        if dataset.notice:
            yield printable(f"{dataset.name}: {dataset.notice}", 1000)
    if line := _reviewers_place(run.reviewer):
        yield printable(line, 300)
    if line := isolation_line(run.sandbox):
        yield line
    yield from fixture_lines(results)
    if run.matcher is not None:
        told = threshold_text(run.matcher.threshold)
        yield printable(f"matching: meanings compared by {run.matcher.name}{told}", 500)
        if (run.matcher.fingerprint or {}).get("matcher") == "aacr-legacy":
            yield "matching: by the published evaluator, with its faults (docs/matching.md): no measurement"
    if results.name("agent") == "reference":
        yield "reference agent: for checking the harness only; these rates say nothing about a reviewer"
    if results.part:
        yield f"a part of the run's datasets: {results.part}; rates and gate are of the selection"
    if run.replay_of:
        yield printable(
            f"replay of {run.replay_of}: its reviews and revisions were read, none was made again"
        )
    if run.resumed:
        yield "resumed: what earlier invocations of this run had recorded was taken over"
    if run.interrupted:
        yield "interrupted: what was not run counts as not measured; --crbench-resume finishes the run"
    yield from (printable(line, 1000) for line in run.notes)


def isolation_line(sandbox: SandboxPart | None) -> str:
    """Say that nothing isolates what runs, and why Docker was not taken; "" for a sandbox that isolates."""
    if sandbox is None or sandbox.name != "local":
        return ""
    why = f"Docker was not taken: {sandbox.no_docker}" if sandbox.no_docker else ""
    if sandbox.isolation != "none":
        return printable(f"sandbox: local. {why}", 600) if why else ""
    said = (
        "sandbox: local, WITHOUT ISOLATION: bubblewrap is missing or does not work here, so agents and "
        "hidden tests run as you, and read and change what you can (docs/sandboxes.md)"
    )
    return printable(f"{said}. {why or 'Docker was not taken: --crbench-sandbox=local'}", 600)


def fixture_lines(results: Results) -> Iterator[str]:
    """Say which fixtures took the place of what the options name."""
    for name, file in results.run.fixtures.items():
        yield printable(f"fixture: {name} is that of {file}, not of the options", 300)


def threshold_text(origin: Any) -> str:
    """Where a threshold of cosines is from, and how often it errs; "" for a matcher without one."""
    if not isinstance(origin, dict) or not origin:
        return ""
    kinds = origin.get("kinds")
    if not isinstance(kinds, dict):
        return "; the threshold was given, its errors are not known"
    errors = [
        f"{100 * kind['wrong']:.1f} % of {kind['pairs']} {_KINDS[name]}"
        for name, kind in kinds.items()
        if name in _KINDS and kind.get("wrong") is not None
    ]
    of = ", ".join(str(dataset.get("name")) for dataset in origin.get("datasets", []))
    return f"; threshold measured on {of}, wrong for {', '.join(errors)}"


def _reviewers_place(reviewer: Part) -> str:
    """Say what a reviewer could reach, where that was bounded; "" for one that ran on the host."""
    image = (reviewer.fingerprint or {}).get("image")
    if not isinstance(image, dict):
        return ""
    network = "with the network" if image.get("network") else "without network"
    short = str(image.get("id")).removeprefix("sha256:")[:12]
    return f"reviewer: in a container of {image.get('name')} ({short}), {network}"


def _short(count: int) -> str:
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f} M"
    return f"{count / 1000:.1f} k" if count >= 10_000 else str(count)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
