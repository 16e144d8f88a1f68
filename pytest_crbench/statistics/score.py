"""Verdicts -> rates: overall and by facet, with intervals, coverage and what was not measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..core.scoring import numbers_of, scoring_of
from ..core.status import Status
from .agreement import PULL_REQUEST_FACETS
from .intervals import Interval, effective_size, macro_interval, rate_interval
from .paired import FALSE_ALARMS, detectable
from .totals import Totals, totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.model import Key, Verdict
    from ..core.scoring import Numbers, Scoring

#: The order in which facets are reported; others follow by name.
FACETS = ("kind", "category", "dataset", "language", "context", "repo", "size", "origin", "level")
#: A pull request: what checks and repeats are clustered in.
PullRequestId = tuple[str, str]


@dataclass(frozen=True)
class Rate:
    """``passed`` of ``of``, with its 95 % interval; both are None if ``of`` is 0."""

    passed: int
    of: int
    interval: Interval | None

    @property
    def value(self) -> Fraction | None:
        """The exact rate."""
        return Fraction(self.passed, self.of) if self.of else None


@dataclass(frozen=True)
class Group:
    """The verdicts that share one value of one facet (both "" for all of them).

    ``selected`` counts what was to be measured: checks times repeats. ``checks`` counts distinct checks,
    ``instances`` pull requests. ``passed_ever`` and ``passed_always`` count the distinct checks that passed
    in at least one, and in all, of their repeats that are in the strict rate.
    """

    facet: str
    value: str
    selected: int
    passed: int
    missed: int
    errors: Mapping[Status, int]
    not_run: int
    checks: int
    instances: int
    passed_ever: int
    passed_always: int
    #: passed / (passed + missed)
    measured: Rate
    #: passed / (passed + missed + reviewer_error + tampered); what the gate uses.
    strict: Rate
    #: Mean over pull requests of their strict rates, and its interval.
    macro: Fraction | None
    macro_interval: Interval | None
    totals: Totals
    #: The smallest difference to another such run that the paired test finds (`paired.detectable`).
    detectable: float | None
    #: Pull requests times repeats that were selected, and those with a verdict in the strict rate.
    evaluations: int
    decided: int

    @property
    def unmeasured(self) -> int:
        """How many selected checks have no measurement."""
        return self.selected - self.passed - self.missed

    @property
    def lowest(self) -> Fraction | None:
        """The rate over everything selected, had every unmeasured check been missed; None without any."""
        return Fraction(self.passed, self.selected) if self.selected else None

    @property
    def highest(self) -> Fraction | None:
        """The same, had every unmeasured check passed."""
        return Fraction(self.passed + self.unmeasured, self.selected) if self.selected else None

    @property
    def differs(self) -> bool:
        """Whether the measured rate is another one than the strict rate."""
        return self.measured.of != self.strict.of

    @property
    def coverage(self) -> Fraction | None:
        """Measured share of what was selected; None if nothing was."""
        return Fraction(self.passed + self.missed, self.selected) if self.selected else None


@dataclass(frozen=True)
class Summary:
    """All that reports and the gate need to know of one scoring and one arm."""

    scoring: str
    arm: str
    repeats: int
    overall: Group
    groups: tuple[Group, ...]
    #: Verdicts that are no measurement, in order, and the planned ones that never came.
    unmeasured: tuple[Verdict, ...]
    not_run: tuple[Key, ...]
    #: What the scoring counts beside the rate, of everything and of some pull requests: by (facet, value),
    #: ("", "") for everything.
    numbers: Mapping[tuple[str, str], Numbers] = field(default_factory=dict)
    #: The same with self-reported failures as errors of the reviewer; None if there is no such failure.
    lowered: Summary | None = None

    @property
    def gated(self) -> Summary:
        """The rates that the gate decides on."""
        return self.lowered or self

    @property
    def self_reported(self) -> int:
        """How many checks are not measured for a reason that only the reviewer or the agent gave."""
        return self.gated.overall.strict.of - self.overall.strict.of

    @property
    def own(self) -> Numbers | None:
        """The scoring's own numbers of everything; None if it has none, or without a measurement."""
        return self.numbers.get(("", ""))

    def group(self, facet: str, value: str) -> Group | None:
        """Return the group of one facet value; None if no selected check has it."""
        return next((g for g in self.groups if (g.facet, g.value) == (facet, value)), None)

    def facets(self) -> dict[str, list[Group]]:
        """Groups by facet, in the order of reports."""
        found: dict[str, list[Group]] = {}
        for group in self.groups:
            found.setdefault(group.facet, []).append(group)
        return found


def lowered(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts with every self-reported failure as an error of the reviewer: not passed."""
    return tuple(
        replace(v, status=Status.REVIEWER_ERROR, cause="") if v.self_reported else v for v in verdicts
    )


def latest(verdicts: Iterable[Verdict]) -> dict[Key, Verdict]:
    """One verdict per key, sorted: the last one, but a measurement is never replaced by an error."""
    found: dict[Key, Verdict] = {}
    for verdict in verdicts:
        before = found.get(verdict.key)
        if before is None or verdict.status.measured or not before.status.measured:
            found[verdict.key] = verdict
    return {key: found[key] for key in sorted(found)}


def summarise(
    verdicts: Iterable[Verdict],
    planned: Mapping[Key, Mapping[str, str]] | None = None,
    *,
    scoring: str = "tests",
    arm: str = "review",
) -> Summary:
    """Summarise the verdicts of one scoring and one arm; others are left aside.

    Args:
        verdicts: in the order in which they came.
        planned: every selected key with its facets; a key without a verdict counts as selected and not
            run. Without it, what has a verdict is what was selected.
        scoring: the scoring to summarise.
        arm: the arm to summarise.
    """
    found = {k: v for k, v in latest(verdicts).items() if (k.scoring, k.arm) == (scoring, arm)}
    missing = {
        key: facets
        for key, facets in (planned or {}).items()
        if key not in found and (key.scoring, key.arm) == (scoring, arm)
    }
    done: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    absent: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for verdict in found.values():
        for facet, value in facets_of(verdict.key, verdict.facets).items():
            done[facet, value].append(verdict)
    for key, facets in missing.items():
        for facet, value in facets_of(key, facets).items():
            absent[facet, value].append(key)
    names = sorted({*done, *absent}, key=facet_order)
    return Summary(
        scoring=scoring,
        arm=arm,
        repeats=len({key.repeat for key in (*found, *missing)}),
        overall=_group("", "", list(found.values()), list(missing)),
        groups=tuple(_group(*name, done[name], absent[name]) for name in names),
        unmeasured=tuple(v for v in found.values() if not v.status.measured),
        not_run=tuple(sorted(missing)),
        numbers=_numbers(scoring_of(scoring), list(found.values()), done),
        lowered=summarise(lowered(found.values()), missing, scoring=scoring, arm=arm)
        if any(verdict.self_reported for verdict in found.values())
        else None,
    )


def _numbers(
    scoring: Scoring, everything: Sequence[Verdict], groups: Mapping[tuple[str, str], Sequence[Verdict]]
) -> dict[tuple[str, str], Numbers]:
    wanted = {
        ("", ""): everything,
        **{name: found for name, found in groups.items() if name[0] in PULL_REQUEST_FACETS},
    }
    made = {name: numbers_of(scoring, found) for name, found in wanted.items()}
    return {name: found for name, found in made.items() if found is not None}


def facets_of(key: Key, facets: Mapping[str, str]) -> dict[str, str]:
    """The facets of a check, and its dataset as one of them."""
    return {"dataset": key.dataset, **facets}


def facet_order(name: tuple[str, str]) -> tuple[int, str, str]:
    """What (facet, value) pairs are sorted by in reports."""
    facet, value = name
    return (FACETS.index(facet) if facet in FACETS else len(FACETS), facet, value)


def _group(facet: str, value: str, verdicts: Sequence[Verdict], absent: Sequence[Key]) -> Group:
    counts = Counter(verdict.status for verdict in verdicts)
    keys = [*(verdict.key for verdict in verdicts), *absent]
    strict = [verdict for verdict in verdicts if verdict.status.in_strict]
    per_check: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for verdict in strict:
        identity = (verdict.key.dataset, verdict.key.instance, verdict.key.check)
        per_check[identity].append(verdict.status is Status.PASSED)
    clusters = _clusters(strict)
    shares = [Fraction(passed, of) for passed, of in clusters]
    return Group(
        facet=facet,
        value=value,
        selected=len(keys),
        passed=counts[Status.PASSED],
        missed=counts[Status.MISSED],
        errors={s: counts[s] for s in Status if counts[s] and not s.measured},
        not_run=len(absent),
        checks=len({(key.dataset, key.instance, key.check) for key in keys}),
        instances=len({(key.dataset, key.instance) for key in keys}),
        passed_ever=sum(map(any, per_check.values())),
        passed_always=sum(map(all, per_check.values())),
        measured=_rate([verdict for verdict in strict if verdict.status.measured]),
        strict=_rate(strict),
        macro=sum(shares, Fraction(0)) / len(shares) if shares else None,
        macro_interval=macro_interval(clusters),
        totals=totals(verdicts),
        detectable=_detectable(clusters),
        evaluations=len({_evaluation(key) for key in keys}),
        decided=len({_evaluation(verdict.key) for verdict in strict}),
    )


def _evaluation(key: Key) -> tuple[str, str, int]:
    return (key.dataset, key.instance, key.repeat)


def _rate(verdicts: Sequence[Verdict]) -> Rate:
    passed = sum(1 for verdict in verdicts if verdict.status is Status.PASSED)
    return Rate(passed, len(verdicts), rate_interval(_clusters(verdicts)))


def _detectable(clusters: Sequence[tuple[int, int]]) -> float | None:
    of = sum(count for _, count in clusters)
    # Of fewer pull requests not even a loss in every one has a p value that low.
    if not of or Fraction(1, 2 ** len(clusters)) > FALSE_ALARMS:
        return None
    return detectable(sum(passed for passed, _ in clusters) / of, effective_size(clusters))


def _clusters(verdicts: Sequence[Verdict]) -> list[tuple[int, int]]:
    """(passed, of) per pull request: its checks, in all their repeats."""
    found: dict[PullRequestId, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        found[verdict.key.dataset, verdict.key.instance].append(verdict.status is Status.PASSED)
    return [(sum(outcomes), len(outcomes)) for outcomes in found.values()]
