"""How a reviewer's comments agree with reference comments: precision, recall, F1, and their bounds.

As in AACR-Bench (arXiv 2601.19494), except that what no expert has looked at is called unlabelled, not
wrong: precision has a lower bound (all of it is wrong) and an upper one (all of it is right).
docs/matching.md defines every number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..core.status import Status
from .bootstrap import mean_interval, ratio_interval, ratio_of
from .intervals import macro_interval, rate_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.model import Verdict
    from .bootstrap import Counts
    from .intervals import Interval

#: Facets that are properties of a pull request, not of a reference: a comment without a match has these too.
PULL_REQUEST_FACETS = ("dataset", "language", "repo", "size")
# (part, of) of each ratio, as names of `Tally`.
_PRECISION = ("matched", "comments")
_RECALL = ("found", "references")
_LINE_PRECISION = ("line_matched", "comments")
_LINE_RECALL = ("line_found", "references")


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
    ``line_matched`` are the same by place alone. ``reviews`` is the number of reviews whose comments are
    known; ``hunks`` counts in these, and is None where the diff of one is not known.
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
    #: References of known reviews that are not among these: comments that match one count as right too.
    unselected: int = 0
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
        tally = self.tally
        return ratio_of((tally.matched, tally.comments, tally.found, tally.spoken))

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

    def estimate(*names: str) -> Estimate:
        return _estimate([_pick(tally, names) for tally in clusters])

    def mean(*names: str) -> Estimate:
        return _mean([_pick(tally, names) for tally in clusters])

    found = [(tally.found, tally.references) for tally in clusters]
    highest = Fraction(total.matched + total.unlabelled, total.comments) if total.comments else None
    return Agreement(
        tally=total,
        precision=estimate(*_PRECISION),
        highest_precision=highest,
        # The rate of the checks, micro and macro, with the intervals that they have everywhere.
        recall=Estimate(_share(total.found, total.references), rate_interval(found)),
        f1=estimate(*_PRECISION, *_RECALL),
        line_precision=estimate(*_LINE_PRECISION),
        line_recall=estimate(*_LINE_RECALL),
        line_f1=estimate(*_LINE_PRECISION, *_LINE_RECALL),
        macro_precision=mean(*_PRECISION),
        macro_recall=replace(mean(*_RECALL), interval=macro_interval(found)),
        macro_f1=mean(*_PRECISION, *_RECALL),
        categories=_categories(verdicts),
        published=any(verdict.counts.get("published") is True for verdict in verdicts),
    )


def _share(part: int, of: int) -> Fraction | None:
    return Fraction(part, of) if of else None


def _reviews(verdicts: Iterable[Verdict]) -> dict[tuple[str, str, int], Tally]:
    """One tally per review: its checks counted, and what matching counted of it."""
    groups: dict[tuple[str, str, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.status.in_strict:
            groups[verdict.key.dataset, verdict.key.instance, verdict.key.repeat].append(verdict)
    return {name: _tally(group) for name, group in groups.items()}


def _tally(group: Sequence[Verdict]) -> Tally:
    told: Mapping[str, Any] = next((v.counts for v in group if v.counts), {})

    def count(name: str) -> int:
        return told.get(name) or 0

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
        unselected=max(count("references") - len(group), 0),
        hunks=told.get("hunks"),
    )


def _categories(verdicts: Iterable[Verdict]) -> dict[str, int]:
    found: Counter[str] = Counter()
    told = {(v.key.dataset, v.key.instance, v.key.repeat): v.counts for v in verdicts if v.counts}
    for counts in told.values():
        found.update(counts.get("categories") or {})
    return dict(sorted(found.items()))


def _by_pull_request(reviews: Mapping[tuple[str, str, int], Tally]) -> dict[tuple[str, str], Tally]:
    found: dict[tuple[str, str], list[Tally]] = defaultdict(list)
    for (dataset, instance, _), tally in reviews.items():
        found[dataset, instance].append(tally)
    return {name: _sum(tallies) for name, tallies in found.items()}


def _sum(tallies: Iterable[Tally]) -> Tally:
    whole = list(tallies)
    counts = [tuple(vars(tally).values())[:-1] for tally in whole]  # all but hunks, in order
    made = Tally(*map(sum, zip(*counts, strict=True)))
    # A review that failed has no comments to divide, so its hunks are not missing either.
    hunks = [tally.hunks for tally in whole if tally.reviews]
    known = [count for count in hunks if count is not None]
    return replace(made, hunks=sum(known) if known and len(known) == len(hunks) else None)


def _pick(tally: Tally, names: Sequence[str]) -> Counts:
    return tuple(getattr(tally, name) for name in names)


def _estimate(clusters: Sequence[Counts]) -> Estimate:
    """A ratio over all checks or comments, or the harmonic mean of two."""
    at = ratio_of(tuple(map(sum, zip(*clusters, strict=True))))
    if at is None:
        return Estimate(None, None)
    if at in (0, 1):
        # Every resample would say the same: the interval of a rate, of what it divides by last.
        return Estimate(at, rate_interval([(counts[-1] * int(at), counts[-1]) for counts in clusters]))
    return Estimate(at, ratio_interval(clusters))


def _mean(clusters: Sequence[Counts]) -> Estimate:
    """The mean of the pull requests' own numbers."""
    numbers = [one for counts in clusters if (one := ratio_of(counts)) is not None]
    if not numbers:
        return Estimate(None, None)
    return Estimate(sum(numbers, Fraction(0)) / len(numbers), mean_interval(numbers))
