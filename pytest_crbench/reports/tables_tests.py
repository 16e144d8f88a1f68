"""The tables and figures of c-CRAB's paper (arXiv 2603.23448) over runs that were scored by hidden tests.

Its Table 5 has the pass rates of each tool by kind, Figure 5 which checks are passed by which tools, Figure 7
the pass rates by category. Rates are strict, in per cent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import UsageError
from ..core.status import Status
from ..statistics.intervals import percent, rate_interval, span
from ..statistics.score import Rate, latest
from ..text.printable import printable
from .tables import Table, headed, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..statistics.results import Results
    from ..statistics.score import Summary

_KINDS = ("behavioral", "structural")


class _Check(NamedTuple):
    dataset: str
    instance: str
    check: str
    digest: str
    kind: str


#: The numbers of the runs that pass each check, of the checks that all runs decided.
_PassedBy = dict[_Check, tuple[str, ...]]


def hidden_test_tables(runs: Sequence[Results]) -> list[Table]:
    """Return the tables over some runs that were scored by hidden tests, in their order.

    Raises:
        UsageError: naming the run that has no measurement.
    """
    summaries = [run.summary(scoring="tests") for run in runs]
    for run, summary in zip(runs, summaries, strict=True):
        if not summary.overall.strict.of:
            raise UsageError(f"{run.source} has no measurement: there is nothing to put into a table")
    named = [(str(place), printable(run.reviewer, 40)) for place, run in enumerate(runs, 1)]
    passed = [_passed(run) for run in runs]
    sets = {
        check: tuple(number for (number, _), by in zip(named, passed, strict=True) if by[check])
        for check in passed[0]
        if all(check in by for by in passed)
    }
    return [_by_kind(named, summaries, sets), _by_runs(named, sets), _by_category(named, summaries)]


def _passed(run: Results) -> dict[_Check, bool]:
    """Whether each check that is in the strict rate passed; with repeats, in more than half of them."""
    found: dict[_Check, list[bool]] = defaultdict(list)
    for key, verdict in latest(run.verdicts).items():
        if (key.scoring, key.arm) == ("tests", "review") and verdict.status.in_strict:
            kind = verdict.facets.get("kind", "")
            check = _Check(key.dataset, key.instance, key.check, verdict.check_digest, kind)
            found[check].append(verdict.status is Status.PASSED)
    return {check: 2 * sum(outcomes) > len(outcomes) for check, outcomes in found.items()}


def _by_kind(named: Sequence[tuple[str, str]], summaries: Sequence[Summary], sets: _PassedBy) -> Table:
    kinds = [kind for kind in _KINDS if any(one.group("kind", kind) for one in summaries)]
    columns = ["run", "reviewer", "checks"]
    for kind in (*kinds, "overall"):
        columns += [kind, f"{kind}: 95 %"]
    rows = []
    for name, summary in zip(named, summaries, strict=True):
        groups = [summary.group("kind", kind) for kind in kinds]
        rates = [*(None if group is None else group.strict for group in groups), summary.overall.strict]
        rows.append((*name, str(summary.overall.checks), *_cells(rates)))
    if len(named) > 1:
        union = [_union({c: by for c, by in sets.items() if kind in ("", c.kind)}) for kind in (*kinds, "")]
        rows.append(("any", "at least one of these", str(len(sets)), *_cells(union)))
    return Table("ccrab-table5", "Pass rates by kind", tuple(columns), tuple(rows))


def _union(sets: _PassedBy) -> Rate:
    """The rate of the checks that any run passes."""
    clusters: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for check, by in sets.items():
        clusters[check.dataset, check.instance].append(bool(by))
    counts = [(sum(outcomes), len(outcomes)) for outcomes in clusters.values()]
    return Rate(sum(map(bool, sets.values())), len(sets), rate_interval(counts))


def _cells(rates: Iterable[Rate | None]) -> Iterator[str]:
    for rate in rates:
        yield from ("-", "-") if rate is None else (percent(rate.value), span(rate.interval).strip())


def _by_runs(named: Sequence[tuple[str, str]], sets: _PassedBy) -> Table:
    """Union, intersection, and how many checks each set of runs passes that no other run does."""
    counts, of = Counter(sets.values()), len(sets)
    everyone = tuple(number for number, _ in named)
    some = sorted((by for by in counts if by and by != everyone), key=lambda by: (-counts[by], by))
    rows = [
        ("at least one", of - counts[()]),
        ("all", counts[everyone]),
        *((f"only {' and '.join(by)}", counts[by]) for by in some),
        ("none", counts[()]),
    ]
    return Table(
        "ccrab-figure5",
        f"Runs that pass the {of} checks that all of them decided (with repeats: in more than half)",
        ("passed by", "checks", "share"),
        tuple((name, str(count), percent(Fraction(count, of)) if of else "-") for name, count in rows),
        names=1,
    )


def _by_category(named: Sequence[tuple[str, str]], summaries: Sequence[Summary]) -> Table:
    values = values_of(summaries, "category")
    rows = [
        (*name, *("-" if group is None else percent(group.strict.value) for group in found))
        for name, summary in zip(named, summaries, strict=True)
        for found in [[summary.group("category", value) for value in values]]
    ]
    columns = ("run", "reviewer", *headed(values))
    return Table("ccrab-figure7", "Pass rates by category", columns, tuple(rows))
