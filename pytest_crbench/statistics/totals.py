"""What reviews and revisions amounted to: comments, tokens, money, seconds; each evaluation counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from statistics import median
from typing import TYPE_CHECKING

from ..core.model import ReviewRecord, added
from ..core.scoring import scoring_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.model import Verdict

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
    """Add up what the evaluations of ``verdicts`` recorded: a shared stage once, others for each check."""
    evaluations: dict[tuple[str, str, int], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        evaluations[verdict.dataset, verdict.instance, verdict.repeat].append(verdict)
    reviews: list[ReviewRecord] = []
    usage: dict[str, dict[str, float]] = {}
    seconds: dict[str, list[float]] = defaultdict(list)
    for group in evaluations.values():
        took: dict[str, float] = {}
        # Other scorings of the same review may have had more stages.
        stages = {stage for verdict in group for stage in scoring_of(verdict.scoring).stages}
        known = [verdict.review for verdict in group if verdict.review is not None]
        shared = [reduce(ReviewRecord.merged, known).within(stages)] if known else []
        reviews += shared
        parts: list[ReviewRecord | Verdict] = [*shared, *group]
        for part in parts:
            for stage, duration in part.durations.items():
                took[stage] = took.get(stage, 0) + duration
            for stage, used in part.usage.items():
                if used:
                    usage[stage] = added(usage.get(stage, {}), used)
        for stage, duration in took.items():
            seconds[stage].append(duration)
    read = [review for review in reviews if review.comments is not None]
    noted: Counter[str] = Counter()
    for review in read:
        noted.update(review.noted)
    return Totals(
        evaluations=len(evaluations),
        reviews=len(read),
        comments=sum(review.comments or 0 for review in read),
        outside_diff=sum(review.outside_diff for review in read),
        duplicates=sum(review.duplicates for review in read),
        noted=dict(sorted(noted.items(), key=lambda one: (-one[1], one[0]))),
        usage=usage,
        unchanged=sum(review.stop_reason == "unchanged" for review in reviews),
        seconds={stage: median(values) for stage, values in seconds.items()},
    )


def _tokens(used: Mapping[str, float]) -> float:
    if "total_tokens" in used:
        return used["total_tokens"]
    return sum(next((used[name] for name in names if name in used), 0.0) for names in (_INPUT, _OUTPUT))
