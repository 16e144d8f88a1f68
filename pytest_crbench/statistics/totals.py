"""What reviews and revisions amounted to: comments, tokens, money, seconds; each evaluation counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from ..core.scoring import scoring_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.model import Verdict

#: Stages that an evaluation runs once, whatever the number of its checks and scorings; a scoring has more.
_SHARED = ("review", "revision")
_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


@dataclass(frozen=True)
class Totals:
    """Sums over evaluations (one pull request in one repeat).

    ``reviews`` is the number of the ``evaluations`` whose review is known; comment counts are over these.
    ``noted`` counts what was unusual in reading them, by kind.
    ``usage`` holds sums by stage and name as recorded; ``seconds`` medians per evaluation by stage.
    """

    evaluations: int
    reviews: int
    comments: int
    outside_diff: int
    duplicates: int
    noted: Mapping[str, int]
    usage: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float]
    #: Evaluations whose coding agent ended well and changed no file.
    unchanged: int = 0

    @property
    def comments_per_pr(self) -> Fraction | None:
        """Mean number of comments per review; None without a review."""
        return Fraction(self.comments, self.reviews) if self.reviews else None

    @property
    def tokens(self) -> int:
        """Tokens in and out, of every stage; 0 if none were recorded."""
        return round(sum(_tokens(used) for used in self.usage.values()))

    @property
    def cost(self) -> float | None:
        """US dollars, or None if no stage recorded a cost."""
        costs = [used["cost"] for used in self.usage.values() if "cost" in used]
        return sum(costs) if costs else None


def totals(verdicts: Iterable[Verdict]) -> Totals:
    """Add up what the evaluations of ``verdicts`` recorded."""
    evaluations: dict[tuple[str, str, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        evaluations[verdict.key.dataset, verdict.key.instance, verdict.key.repeat].append(verdict)
    reviews = [review for group in evaluations.values() if (review := _review(group)) is not None]
    usage: dict[str, dict[str, float]] = {}
    seconds: dict[str, list[float]] = defaultdict(list)
    for group in evaluations.values():
        for stage, used in _usage(group).items():
            mine = usage.setdefault(stage, {})
            for name, value in used.items():
                mine[name] = mine.get(name, 0) + value
        for stage, duration in _seconds(group).items():
            seconds[stage].append(duration)
    return Totals(
        evaluations=len(evaluations),
        reviews=len(reviews),
        comments=sum(_count(review, "comments") for review in reviews),
        outside_diff=sum(_count(review, "outside_diff") for review in reviews),
        duplicates=sum(_count(review, "duplicates") for review in reviews),
        noted=_noted(reviews),
        usage=usage,
        unchanged=sum(any(v.stop_reason == "unchanged" for v in group) for group in evaluations.values()),
        seconds={stage: median(values) for stage, values in seconds.items()},
    )


def _review(group: Sequence[Verdict]) -> Mapping[str, object] | None:
    return next((v.review for v in group if _is_count(v.review.get("comments"))), None)


def _noted(reviews: Iterable[Mapping[str, object]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for review in reviews:
        found = review.get("noted")
        if isinstance(found, dict):
            counts.update({str(kind): n for kind, n in found.items() if _is_count(n)})
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _count(review: Mapping[str, object], name: str) -> int:
    value = review.get(name)
    return value if isinstance(value, int) else 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _usage(group: Sequence[Verdict]) -> dict[str, dict[str, float]]:
    """Usage of one evaluation: shared stages once, others (of single checks) added up."""
    found: dict[str, dict[str, float]] = {}
    for verdict in group:
        shared = (*_SHARED, *scoring_of(verdict.key.scoring).stages)
        for stage, used in verdict.usage.items():
            if stage in shared:
                if used:
                    found.setdefault(stage, dict(used))
                continue
            mine = found.setdefault(stage, {})
            for name, value in used.items():
                mine[name] = mine.get(name, 0) + value
    return found


def _seconds(group: Sequence[Verdict]) -> dict[str, float]:
    found: dict[str, float] = {}
    for verdict in group:
        shared = (*_SHARED, *scoring_of(verdict.key.scoring).stages)
        for stage, duration in verdict.durations.items():
            if stage in shared:
                found[stage] = max(found.get(stage, 0.0), duration)
            else:
                found[stage] = found.get(stage, 0.0) + duration
    return found


def _tokens(used: Mapping[str, float]) -> float:
    if "total_tokens" in used:
        return used["total_tokens"]
    return sum(next((used[name] for name in names if name in used), 0.0) for names in (_INPUT, _OUTPUT))
