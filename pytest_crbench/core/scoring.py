"""How a check is decided: what everything that knows of scorings asks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from ..text.printable import printable
from .errors import UsageError
from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction
    from pathlib import Path

    from .model import Check, Verdict
    from .settings import Settings

#: Which reviews a metric tells of: all selected ones, those with a result, those whose comments are known.
Of = Literal["selected", "decided", "known"]
#: Metrics of every scoring, and what they are.
METRICS = {
    "pass_rate": "passed / (passed + missed + reviewer_error + tampered), the default",
    "measured": "passed / (passed + missed)",
    "macro": "mean over pull requests of their pass rates",
    "comments_per_pr": "mean number of review comments per pull request",
}


class Numbers(Protocol):
    """What a scoring counts of some reviews beside the share of passed checks."""

    @property
    def reviews(self) -> int:
        """How many reviews' comments are known."""

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader of a table must know, in words."""

    def value(self, metric: str) -> Fraction | None:
        """Return one of the scoring's ``metrics``, from 0 to 1; None if there is nothing to make it of."""

    def lines(self) -> Iterable[tuple[str, str]]:
        """Yield name and sentence of what tables and summaries say; plain text."""

    def to_json(self) -> dict[str, Any]:
        """Return everything, as plain JSON."""


class Decider(Protocol):
    """A scoring that is ready to decide the checks of one run."""

    def verdict(self, evaluation: Any, check: Check) -> Verdict:
        """Return the verdict on one check; ``evaluation`` is an `evaluation.evaluation.Evaluation`.

        Raises:
            StageError: if there is no measurement; its status becomes the check's.
        """


class Scoring:
    """One way to decide checks. A subclass has a ``name`` and a ``decider``; all else has defaults.

    Other packages register an instance in the group ``pytest_crbench.scorings`` of their entry points.
    """

    #: What results, options and node ids call it.
    name: str = ""
    #: The stages whose time and usage are part of its verdicts, in order.
    stages: tuple[str, ...] = ("review",)
    #: Whether the coding agent revises the code first, in a sandbox, which then may run it.
    needs_agent = False
    #: Heading of the column that counts passed checks.
    passed = "passed"
    #: What the verdict line calls their share.
    rate = "overall"
    #: How its checks are decided, and what a dataset lacks of which it can decide none.
    decided = "decided by a scoring of another package"
    lacks = "no check that it applies to"
    #: Its own metrics, which a threshold can name, with their meanings; and those of the verdict line.
    metrics: ClassVar[Mapping[str, str]] = {}
    headline: tuple[str, ...] = ()
    #: Metrics that are not of all known reviews.
    tells: ClassVar[Mapping[str, Of]] = {}
    #: The key of its numbers in results, and what their intervals are, in words.
    json_key = "metrics"
    method = ""
    #: Which of a run's recorded options must be equal in two runs that are compared; how, in words; and what
    #: is unlike if they are not.
    options: tuple[str, ...] = ()
    alike = "options"
    unlike = "checks were decided in different ways"
    #: What to do where `look` refuses.
    advice = "Correct its options"
    #: ``module:function`` below this package that makes the tables of papers from some runs; "": it has none.
    tables = ""

    def applies(self, check: Check, *, file_level: bool) -> bool:
        """Whether a check can be decided so; ``file_level``: comments without lines can be matched."""
        return True

    def decider(self, settings: Settings, run: Path | None) -> Decider:
        """Return what decides the checks of a run, whose folder holds the budget of its models.

        Raises:
            UsageError: if a package, a model's name or a key is missing.
        """
        raise NotImplementedError

    def inputs(self, decider: Decider) -> dict[str, Any]:
        """Return what decides its verdicts beside review, code and version, as plain JSON by name."""
        return {}

    def look(self, settings: Settings) -> str:
        """Return in a few words how it would decide; "" if there is nothing to look at before a run.

        Raises:
            UsageError: as `decider`.
        """
        return ""

    def measure(self, verdicts: Sequence[Verdict]) -> Numbers | None:
        """Return its numbers over the verdicts of some pull requests; None without any."""
        return None


SCORINGS: Registry[Scoring] = Registry(
    "scoring",
    Scoring,
    "pytest_crbench.scorings",
    {"tests": "scoring.tests:SCORING", "matching": "scoring.matching:SCORING"},
)


@dataclass(frozen=True)
class NoNumbers:
    """Stands for the numbers of another package's scoring that raised while they were made."""

    why: str
    reviews: int = 0

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why there are none."""
        return (self.why,)

    def value(self, metric: str) -> None:
        """Return nothing: a gate on it is undecided."""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield why there are none."""
        yield "numbers", self.why

    def to_json(self) -> dict[str, Any]:
        """Return why there are none."""
        return {"error": self.why}


def numbers_of(scoring: Scoring, verdicts: Sequence[Verdict]) -> Numbers | None:
    """Return what a scoring makes of some verdicts; what another package's raises ends no report."""
    try:
        found = scoring.measure(verdicts)
        if found is not None and scoring.name not in SCORINGS.own:
            list(found.lines()), found.to_json(), [found.value(metric) for metric in scoring.metrics]
    except Exception as error:
        if scoring.name in SCORINGS.own:
            raise
        said = printable(f"{type(error).__name__}: {error}", 200)
        return NoNumbers(f"the scoring {printable(scoring.name, 80)} failed to make its numbers: {said}")
    return found


def scoring_of(name: str) -> Scoring:
    """Return a scoring; for one that is not installed here, whose results are read, what all have."""
    try:
        return SCORINGS.get(name)
    except UsageError:
        unknown = Scoring()
        unknown.name = name
        return unknown


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of scorings in the order of tables, each once."""
    known = SCORINGS.names()
    rank = {name: place for place, name in enumerate(known)}
    return tuple(sorted(set(names), key=lambda name: (rank.get(name, len(known)), name)))


def metrics_of_scorings() -> dict[str, str]:
    """Return the metrics of all scorings, with their meanings; one that cannot be loaded has none."""
    return {metric: text for name in SCORINGS.names() for metric, text in scoring_of(name).metrics.items()}


def owner_of(metric: str) -> str | None:
    """Return the scoring that a metric is one of; None for those that every scoring has."""
    if metric in METRICS:
        return None
    return next((name for name in SCORINGS.names() if metric in scoring_of(name).metrics), None)
