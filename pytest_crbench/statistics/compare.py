"""Two runs on the checks both have: who passed what, by how much, and whether they can be compared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.records import to_row
from ..core.scoring import scoring_of
from ..core.status import Status
from . import paired
from .deviations import Deviation, deviations
from .intervals import Interval, difference_interval
from .score import facet_order, facets_of, latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.model import Key, Verdict
    from .results import Results


#: Dataset, instance and check.
CheckId = tuple[str, str, str]


@dataclass(frozen=True)
class Pair:
    """One check in one repeat that both runs decided; ``first`` and ``second``: whether it passed there."""

    key: Key
    facets: tuple[tuple[str, str], ...]
    first: bool
    second: bool


@dataclass(frozen=True)
class Difference:
    """The pairs that share one value of one facet (both "" for all of them).

    ``both`` to ``neither`` count pairs: with repeats a check has several. ``checks`` counts distinct checks,
    ``lost`` and ``won`` those that the second run passed in fewer, and in more, of their repeats.
    """

    facet: str
    value: str
    checks: int
    lost: tuple[CheckId, ...]
    won: tuple[CheckId, ...]
    both: int
    only_first: int
    only_second: int
    neither: int
    #: 95 % interval of ``change``, paired and clustered; None without a pair.
    interval: Interval | None
    #: p values of the paired test (`statistics.paired`): that the runs differ, and that the second is worse.
    p: float
    p_worse: float
    #: The p value that the second would have at the least, had it passed nothing.
    p_least: float

    @property
    def pairs(self) -> int:
        """Number of checks compared, once for each repeat."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def first(self) -> Fraction | None:
        """Pass rate of the first run on these pairs."""
        return Fraction(self.both + self.only_first, self.pairs) if self.pairs else None

    @property
    def second(self) -> Fraction | None:
        """Pass rate of the second run on these pairs."""
        return Fraction(self.both + self.only_second, self.pairs) if self.pairs else None

    @property
    def change(self) -> Fraction | None:
        """``second - first``: above 0 where the second run is better."""
        return Fraction(self.only_second - self.only_first, self.pairs) if self.pairs else None


@dataclass(frozen=True)
class Unpaired:
    """A check of both runs that at least one of them did not decide, with both statuses (None: not run)."""

    key: Key
    first: Status | None
    second: Status | None
    #: Why there is no measurement, of the run that has none (of both: the first's).
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    """All that two runs have to say about each other."""

    first: Results
    second: Results
    scoring: str
    pairs: tuple[Pair, ...]
    overall: Difference
    groups: tuple[Difference, ...]
    unmeasured: tuple[Unpaired, ...]
    #: Checks that differ between the runs (another digest), so that their outcomes say nothing.
    changed: tuple[Key, ...]
    only_in_first: tuple[Key, ...]
    only_in_second: tuple[Key, ...]

    def keys(self, *, first: bool, second: bool) -> list[Key]:
        """Keys of the pairs with these outcomes."""
        return [pair.key for pair in self.pairs if (pair.first, pair.second) == (first, second)]

    @property
    def coverage(self) -> Fraction | None:
        """Decided share of the checks that both runs have unchanged; None if they have none."""
        shared = len(self.pairs) + len(self.unmeasured)
        return Fraction(len(self.pairs), shared) if shared else None


def compare(first: Results, second: Results, scoring: str | None = None) -> Comparison:
    """Pair two runs on the checks both have, in one scoring, and report their differences.

    A check counts as decided if it is in the strict rate: passed, missed, and, as not passed, an error of
    the reviewer and tampering.

    Raises:
        UsageError: the runs were made by unlike agents, sandboxes or environments, or matched comments in
            unlike ways; says which.
    """
    chosen = scoring or shared_scoring(first, second)
    found = differing(first, second, chosen)
    if found:
        same = scoring_of(chosen).alike
        raise UsageError(
            f"{first.source} and {second.source} cannot be compared: {'; '.join(found)}. "
            f"A difference would say nothing about the reviewers. Run both with the same {same}."
        )
    return pair_up(first, second, chosen)


def shared_scoring(first: Results, second: Results) -> str:
    """Return the first scoring that both runs have; where they share none, the first run's first."""
    return next((name for name in first.scorings if name in second.scorings), first.scorings[0])


def pair_up(first: Results, second: Results, scoring: str | None = None) -> Comparison:
    """Pair two runs without asking whether they are alike (see `differing`).

    ``scoring`` is by default the first that both have.
    """
    chosen = scoring or shared_scoring(first, second)
    ours, theirs = (
        {k: v for k, v in latest(r.verdicts).items() if k.scoring == chosen} for r in (first, second)
    )
    pairs: list[Pair] = []
    unmeasured: list[Unpaired] = []
    changed: list[Key] = []
    for key in (key for key in ours if key in theirs):
        a, b = ours[key], theirs[key]
        if a.check_digest != b.check_digest:
            changed.append(key)
        elif a.status.in_strict and b.status.in_strict:
            facets = tuple(facets_of(key, b.facets).items())
            pairs.append(Pair(key, facets, a.status is Status.PASSED, b.status is Status.PASSED))
        else:
            reason = b.reason if a.status.in_strict else a.reason
            unmeasured.append(Unpaired(key, a.status, b.status, reason))
    for key in (key for key in first.planned if key in second.planned and key.scoring == chosen):
        if (key in ours) != (key in theirs):
            a_status = ours[key].status if key in ours else None
            b_status = theirs[key].status if key in theirs else None
            unmeasured.append(Unpaired(key, a_status, b_status, "not run in one of them"))
    return Comparison(
        first=first,
        second=second,
        scoring=chosen,
        pairs=tuple(pairs),
        overall=_difference("", "", pairs),
        groups=_by_facet(pairs),
        unmeasured=tuple(unmeasured),
        changed=tuple(changed),
        only_in_first=tuple(key for key in ours if key not in {*theirs, *second.planned}),
        only_in_second=tuple(key for key in theirs if key not in {*ours, *first.planned}),
    )


def differing(first: Results, second: Results, scoring: str | None = None) -> tuple[str, ...]:
    """Say in what two runs are unlike, apart from the reviewer; empty if they can be compared.

    Only what decides outcomes in ``scoring`` counts: no agent has a part in matching, no matcher in hidden
    tests. By default it is the first that both have.
    """
    chosen = scoring_of(scoring or shared_scoring(first, second))
    found: list[str] = []
    places = tuple(f"options.{name}" for name in chosen.options)
    unequal = [one for one in _unlike(first, second, "options") if one.where.startswith(places)]
    if places and unequal:
        found.append(f"{chosen.unlike} ({_shown(unequal)})")
    if not chosen.needs_agent:
        return tuple(found)
    if _agent(first) != _agent(second):
        found.append(f"the coding agents differ ({_describe(first, second)})")
    ours, theirs = latest(first.verdicts), latest(second.verdicts)
    both = [(ours[key], theirs[key]) for key in ours if key in theirs]
    sandboxes = {(a.sandbox, b.sandbox) for a, b in both if a.sandbox and b.sandbox}
    names = (first.name("sandbox"), second.name("sandbox"))
    unlike = sorted(pair for pair in {*sandboxes, names} if pair[0] != pair[1] and "?" not in pair)
    if unlike:
        found.append(f"the sandboxes differ ({unlike[0][0]} and {unlike[0][1]})")
    environments = [
        (a, b) for a, b in both if a.environment and b.environment and a.environment != b.environment
    ]
    if environments:
        found.append(_environments(environments))
    limits = _unlike(first, second, "limits")
    if limits:
        found.append(f"the limits differ ({_shown(limits)})")
    return tuple(found)


def remarks(first: Results, second: Results) -> tuple[str, ...]:
    """Say in what two runs are unlike that need not have changed an outcome; empty if in nothing.

    A check that changed is left out of the pairs; what runs it is told.
    """
    unlike = _unlike(first, second, "package", "prompts", "python", "platform", "engine", "libraries")
    return (f"made under unlike conditions: {_shown(unlike)}",) if unlike else ()


def _unlike(first: Results, second: Results, *sections: str) -> list[Deviation]:
    ours, theirs = first.run.inputs, second.run.inputs
    return deviations(to_row(ours), to_row(theirs), sections) if ours and theirs else []


def _shown(found: list[Deviation], limit: int = 6) -> str:
    texts = [f"{one.where} {one.text(one.recorded)} and {one.text(one.found)}" for one in found[:limit]]
    more = [f"{len(found) - limit} more"] if len(found) > limit else []
    return "; ".join([*texts, *more])


def _environments(pairs: Sequence[tuple[Verdict, Verdict]]) -> str:
    names = list(dict.fromkeys(f"{a.key.dataset}::{a.key.instance}" for a, _ in pairs))
    a, b = pairs[0]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"the environments of {names[0]}{more} differ "
        f"({str(a.environment)[:12]} and {str(b.environment)[:12]})"
    )


def _agent(results: Results) -> Any:
    """What decides what the agent does: its fingerprint where one was recorded."""
    agent = results.run.agent
    return agent and (agent.fingerprint or agent.name)


def _describe(first: Results, second: Results) -> str:
    names = first.name("agent"), second.name("agent")
    if names[0] != names[1]:
        return f"{names[0]} and {names[1]}"
    a, b = _agent(first), _agent(second)
    if isinstance(a, dict) and isinstance(b, dict):
        keys = sorted(str(key) for key in {*a, *b} if a.get(key) != b.get(key))
        return f"{names[0]}, with another {', '.join(keys)}"
    return names[0]


def _by_facet(pairs: Sequence[Pair]) -> tuple[Difference, ...]:
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        for name in pair.facets:
            groups[name].append(pair)
    return tuple(_difference(*name, groups[name]) for name in sorted(groups, key=facet_order))


def _difference(facet: str, value: str, pairs: Iterable[Pair]) -> Difference:
    clusters: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    cells = {(a, b): 0 for a in (True, False) for b in (True, False)}
    by_check: dict[CheckId, list[Pair]] = defaultdict(list)
    for pair in pairs:
        key = pair.key
        cells[pair.first, pair.second] += 1
        by_check[key.dataset, key.instance, key.check].append(pair)
        cluster = clusters[key.dataset, key.instance]
        cluster[0] += pair.second and not pair.first
        cluster[1] += pair.first and not pair.second
        cluster[2] += 1
    changes = {check: _mean(int(p.second) - int(p.first) for p in found) for check, found in by_check.items()}
    tested = _by_pull_request(changes)
    all_lost = _by_pull_request({c: _mean(-int(p.first) for p in found) for c, found in by_check.items()})
    return Difference(
        facet=facet,
        value=value,
        checks=len(by_check),
        lost=tuple(sorted(check for check, change in changes.items() if change < 0)),
        won=tuple(sorted(check for check, change in changes.items() if change > 0)),
        both=cells[True, True],
        only_first=cells[True, False],
        only_second=cells[False, True],
        neither=cells[False, False],
        interval=difference_interval([(a, b, n) for a, b, n in clusters.values()]),
        p=float(paired.differs(tested)),
        p_worse=float(paired.worse(tested)),
        p_least=float(paired.worse(all_lost)),
    )


def _mean(numbers: Iterable[int]) -> Fraction:
    """Of the repeats of one check, which are not checks of their own."""
    found = list(numbers)
    return Fraction(sum(found), len(found))


def _by_pull_request(changes: Mapping[CheckId, Fraction]) -> list[Fraction]:
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for (dataset, instance, _), change in changes.items():
        found[dataset, instance] += change
    return list(found.values())
