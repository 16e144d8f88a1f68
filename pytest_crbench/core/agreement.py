"""How a reviewer's comments agree with reference comments: precision, recall, F1, and their bounds.

As in AACR-Bench (arXiv 2601.19494), except that what no expert has looked at is called unlabelled, not
wrong: precision has a lower bound (all of it is wrong) and an upper one (all of it is right).
docs/matching.md defines every number.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .intervals import LEVEL, Interval, rate_interval, wilson
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .model import Verdict

#: Facets that are properties of a pull request, not of a reference: a comment without a match has these too.
PULL_REQUEST_FACETS = ("dataset", "language", "repo", "size")
#: Written into result files beside the numbers.
METHOD = "percentile bootstrap over pull requests, 2000 resamples; at 0 and 1 as for rates"
_RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A number in [0, 1] with its 95 % interval; both None if there is nothing to make it of."""

    value: Fraction | None
    interval: Interval | None


@dataclass(frozen=True)
class Tally:
    """Sums over reviews (a pull request in one repeat).

    ``found`` of ``references`` counts selected checks as the strict rate does; ``matched`` counts the
    comments that have a match among all references of their pull request. ``line_found`` and
    ``line_matched`` are the same by place alone. ``hunks`` is None where the diff of a review is not known.
    ``reviews`` is the number of reviews whose comments are known.
    """

    reviews: int = 0
    comments: int = 0
    references: int = 0
    found: int = 0
    line_found: int = 0
    matched: int = 0
    line_matched: int = 0
    rejected: int = 0
    rejected_of: int = 0
    duplicates: int = 0
    placeless: int = 0
    unlabelled: int = 0
    #: References of reviews that said anything: what the published evaluator divides by.
    spoken: int = 0
    hunks: int | None = None


@dataclass(frozen=True)
class Agreement:
    """The numbers of some pull requests. ``highest_precision`` takes every unlabelled comment as right.

    ``macro_*`` are means over pull requests: precision over those with comments, recall and F1 over all.
    """

    tally: Tally
    precision: Estimate
    highest_precision: Fraction | None
    recall: Estimate
    f1: Estimate
    line_precision: Estimate
    line_recall: Estimate
    line_f1: Estimate
    macro_precision: Estimate
    macro_recall: Estimate
    macro_f1: Estimate
    #: Unlabelled comments by the category that a model gave them.
    categories: Mapping[str, int]
    #: Whether the published evaluator's arithmetic was asked for.
    published: bool = False

    @property
    def published_recall(self) -> Fraction | None:
        """Recall as the published evaluator has it: a pull request without a comment is left out."""
        return _share(self.tally.found, self.tally.spoken)

    @property
    def published_f1(self) -> Fraction | None:
        """F1 of precision and that recall."""
        return _harmonic(self.precision.value, self.published_recall)

    @property
    def noise(self) -> tuple[Fraction, Fraction] | None:
        """Share of the comments that tell nothing new and right: what is known to be so, and what may be."""
        of = self.tally.comments
        if not of:
            return None
        known = self.tally.rejected + self.tally.duplicates + self.tally.placeless
        return Fraction(known, of), Fraction(of - self.tally.matched, of)

    @property
    def rejected(self) -> Fraction | None:
        """Share of the rejected reference comments that a comment repeats."""
        return Fraction(self.tally.rejected, self.tally.rejected_of) if self.tally.rejected_of else None

    @property
    def comments_per_hunk(self) -> Fraction | None:
        """Comments per hunk of the diffs; None where diffs are not known."""
        return Fraction(self.tally.comments, self.tally.hunks) if self.tally.hunks else None


def agreement(verdicts: Sequence[Verdict]) -> Agreement | None:
    """Return the numbers of some verdicts of the scoring ``matching``; None if none is in the strict rate."""
    reviews = _reviews(verdicts)
    if not reviews:
        return None
    clusters = list(_by_pull_request(reviews).values())
    total = _sum(reviews.values())

    said = [(tally.matched, tally.comments) for tally in clusters]
    wanted = [(tally.found, tally.references) for tally in clusters]

    def estimate(value: Callable[[Tally], Fraction | None], trials: Sequence[tuple[int, int]]) -> Estimate:
        return _estimate(value, clusters, total, trials)

    def mean(value: Callable[[Tally], Fraction | None]) -> Estimate:
        return _mean(value, clusters)

    highest = Fraction(total.matched + total.unlabelled, total.comments) if total.comments else None
    return Agreement(
        tally=total,
        precision=estimate(precision, said),
        highest_precision=highest,
        # The rate of the checks, with the interval that it has everywhere.
        recall=Estimate(recall(total), rate_interval(wanted)),
        f1=estimate(f1, wanted),
        line_precision=estimate(lambda t: _share(t.line_matched, t.comments), said),
        line_recall=estimate(lambda t: _share(t.line_found, t.references), wanted),
        line_f1=estimate(line_f1, wanted),
        macro_precision=mean(precision),
        macro_recall=mean(recall),
        macro_f1=mean(f1),
        categories=_categories(verdicts),
        published=any(verdict.matching.get("published") is True for verdict in verdicts),
    )


def precision(tally: Tally) -> Fraction | None:
    """Matched comments of all comments: the lower bound."""
    return _share(tally.matched, tally.comments)


def recall(tally: Tally) -> Fraction | None:
    """References found of all references."""
    return _share(tally.found, tally.references)


def f1(tally: Tally) -> Fraction | None:
    """Harmonic mean of precision and recall; 0 for a reviewer that said nothing right."""
    return _harmonic(precision(tally), recall(tally))


def line_f1(tally: Tally) -> Fraction | None:
    """The same by place alone."""
    return _harmonic(_share(tally.line_matched, tally.comments), _share(tally.line_found, tally.references))


def _share(part: int, of: int) -> Fraction | None:
    return Fraction(part, of) if of else None


def _harmonic(first: Fraction | None, second: Fraction | None) -> Fraction | None:
    if second is None:
        return None
    if not first or not second:
        return Fraction(0)
    return 2 * first * second / (first + second)


def _reviews(verdicts: Iterable[Verdict]) -> dict[tuple[str, str, int], Tally]:
    """One tally per review: its checks counted, the rest taken once from whichever verdict knows it."""
    groups: dict[tuple[str, str, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.status.in_strict:
            groups[verdict.key.dataset, verdict.key.instance, verdict.key.repeat].append(verdict)
    return {name: _tally(group) for name, group in groups.items()}


def _tally(group: Sequence[Verdict]) -> Tally:
    told: Mapping[str, Any] = next((v.matching for v in group if v.matching), {})
    hunks = told.get("hunks")

    def count(name: str) -> int:
        value = told.get(name, 0)
        return value if isinstance(value, int) else 0

    return Tally(
        reviews=1 if told else 0,
        comments=count("comments"),
        references=len(group),
        found=sum(v.status is Status.PASSED for v in group),
        line_found=sum(v.matching.get("line") is True for v in group),
        matched=count("matched"),
        line_matched=count("line_matched"),
        rejected=count("rejected"),
        rejected_of=count("rejected_of"),
        duplicates=count("duplicates"),
        placeless=count("placeless"),
        unlabelled=count("unlabelled"),
        spoken=len(group) if count("comments") else 0,
        hunks=hunks if isinstance(hunks, int) else None,
    )


def _categories(verdicts: Iterable[Verdict]) -> dict[str, int]:
    found: Counter[str] = Counter()
    told = {(v.key.dataset, v.key.instance, v.key.repeat): v.matching for v in verdicts if v.matching}
    for matching in told.values():
        sorts = matching.get("categories")
        found.update(sorts if isinstance(sorts, dict) else {})
    return dict(sorted(found.items()))


def _by_pull_request(reviews: Mapping[tuple[str, str, int], Tally]) -> dict[tuple[str, str], Tally]:
    found: dict[tuple[str, str], list[Tally]] = defaultdict(list)
    for (dataset, instance, _), tally in reviews.items():
        found[dataset, instance].append(tally)
    return {name: _sum(tallies) for name, tallies in found.items()}


def _sum(tallies: Iterable[Tally]) -> Tally:
    whole = list(tallies)
    made = Tally(*(sum(column) for column in zip(*map(_counts, whole), strict=True)))
    hunks = [tally.hunks for tally in whole if tally.hunks is not None]
    return replace(made, hunks=sum(hunks) if len(hunks) == len(whole) else None)


def _counts(tally: Tally) -> tuple[int, ...]:
    """Everything but ``hunks``, in order."""
    return tuple(vars(tally).values())[:-1]


def _estimate(
    value: Callable[[Tally], Fraction | None],
    clusters: Sequence[Tally],
    total: Tally,
    trials: Sequence[tuple[int, int]],
) -> Estimate:
    """A ratio over all checks or comments, with the interval that resampled pull requests give.

    ``trials`` are what it counts, (right, of) per pull request: for a ratio of 0 or 1, of which every
    resample would say the same.
    """
    at = value(total)
    if at is None:
        return Estimate(None, None)
    if len(clusters) < 2 or at in (0, 1):
        every = [(of if at == 1 else 0, of) for _, of in trials]
        return Estimate(at, rate_interval(every if at in (0, 1) else trials))
    rows = [_counts(tally) for tally in clusters]
    chance = random.Random(0)
    found = []
    for _ in range(_RESAMPLES):
        columns = zip(*chance.choices(rows, k=len(rows)), strict=True)
        drawn = value(Tally(*map(sum, columns)))
        if drawn is not None:
            found.append(float(drawn))
    return Estimate(at, _percentiles(found, float(at)))


def _mean(value: Callable[[Tally], Fraction | None], clusters: Sequence[Tally]) -> Estimate:
    """The mean of the pull requests' own numbers, with the interval that resampling them gives."""
    numbers = [one for tally in clusters if (one := value(tally)) is not None]
    if not numbers:
        return Estimate(None, None)
    at = sum(numbers, Fraction(0)) / len(numbers)
    if len(numbers) < 2 or at in (0, 1):
        return Estimate(at, wilson(float(at), len(numbers)))
    floats = [float(number) for number in numbers]
    chance = random.Random(0)
    found = [sum(chance.choices(floats, k=len(floats))) / len(floats) for _ in range(_RESAMPLES)]
    return Estimate(at, _percentiles(found, float(at)))


def _percentiles(found: list[float], at: float) -> Interval:
    found.sort()
    cut = (1 - LEVEL) / 2
    low, high = found[int(cut * len(found))], found[min(int((1 - cut) * len(found)), len(found) - 1)]
    return Interval(min(low, at), max(high, at))
