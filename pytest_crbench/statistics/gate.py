"""Thresholds -> one decision: met, not met, or too little measured to decide.

The rules, in this order (docs/gating.md):

1. Nothing asked for: no decision.
2. Measured less than the wanted share of the selected checks: undecided, whatever the rates are.
3. Any condition not met: not met.
4. Any condition that cannot be decided: undecided.
5. Else: met.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.scoring import owner_of, scoring_of
from .conditions import Condition, Outcome, regression, shown
from .thresholds import Threshold, Tolerance, parse_share, parse_threshold, parse_tolerance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.scoring import Numbers, Of, Scoring
    from .results import Results
    from .score import Group, Summary

#: Exit statuses; pytest keeps 2 to 9 for itself.
EXIT: dict[Outcome, int | None] = {"met": 0, "not-met": 1, "undecided": 10, "none": None}
_WORD: dict[Outcome, str] = {"met": "PASSED", "not-met": "FAILED", "undecided": "UNDECIDED", "none": ""}
MIN_COVERAGE = Fraction(95, 100)


@dataclass(frozen=True)
class Gate:
    """What was asked for.

    Raises:
        UsageError: a regression was asked about without a baseline.
    """

    thresholds: tuple[Threshold, ...] = ()
    min_coverage: Fraction = MIN_COVERAGE
    #: Whether the coverage was asked for by itself.
    coverage_asked: bool = False
    baseline: Results | None = None
    fail_if_regressed: Tolerance | None = None

    def __post_init__(self) -> None:
        if self.fail_if_regressed is not None and self.baseline is None:
            raise UsageError(
                "asking whether the rate regressed needs something to compare with: name the results.json of "
                "an earlier run as the baseline"
            )

    @property
    def asked(self) -> bool:
        """Whether there is anything to decide."""
        return bool(self.thresholds) or self.coverage_asked or self.fail_if_regressed is not None


@dataclass(frozen=True)
class Decision:
    """The one decision of a run. ``verdict`` is the text of the last line, after ``crbench: ``."""

    outcome: Outcome
    exit_status: int | None
    verdict: str
    conditions: tuple[Condition, ...]

    @property
    def lost(self) -> tuple[tuple[str, str, str], ...]:
        """The checks that a baseline passed and this run did not."""
        return tuple(name for condition in self.conditions for name in condition.lost)

    @property
    def lines(self) -> tuple[str, ...]:
        """Why, one condition a line."""
        return tuple(condition.text for condition in self.conditions)

    def to_json(self) -> dict[str, Any]:
        """The decision as plain JSON, as result files hold it."""
        return {
            "outcome": self.outcome,
            "exit_status": self.exit_status,
            "verdict": self.verdict,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


def make_gate(
    *,
    fail_under: Sequence[str] = (),
    fail_over: Sequence[str] = (),
    min_coverage: str | None = None,
    baseline: Results | None = None,
    fail_if_regressed: str | None = None,
    prefix: str = "--crbench-",
) -> Gate:
    """Read a gate from the texts of its options; ``prefix`` is that of the options, for messages.

    Raises:
        UsageError: naming the option, what was found and what is possible.
    """
    return Gate(
        thresholds=(
            *(parse_threshold(text, "under", prefix) for text in fail_under),
            *(parse_threshold(text, "over", prefix) for text in fail_over),
        ),
        min_coverage=MIN_COVERAGE
        if min_coverage is None
        else parse_share(min_coverage, f"{prefix}min-coverage={min_coverage}"),
        coverage_asked=min_coverage is not None,
        baseline=baseline,
        fail_if_regressed=None
        if fail_if_regressed is None
        else parse_tolerance(fail_if_regressed, f"{prefix}fail-if-regressed={fail_if_regressed}"),
    )


def check_metrics(gate: Gate, scorings: Sequence[str], prefix: str = "--crbench-") -> None:
    """Refuse a threshold on a number that a run does not have.

    Raises:
        UsageError: naming the threshold, and the scoring that has the number.
    """
    for threshold in gate.thresholds:
        owner = owner_of(threshold.metric)
        if owner is not None and owner not in scorings:
            raise UsageError(
                f"{prefix}fail-{threshold.direction}={threshold.label}:{threshold.text}: "
                f"{threshold.metric} is a number of the scoring {owner}, and the run is scored by "
                f"{', '.join(scorings)}; see --crbench-scoring"
            )


def decide(
    gate: Gate, summary: Summary, current: Results | None = None, others: Sequence[Summary] = ()
) -> Decision:
    """Decide once.

    Args:
        gate: what was asked for.
        summary: of the run at hand, in its first scoring: what a threshold without a metric is about.
        current: the run itself, for what the verdict says of it, and for a comparison with a baseline.
        others: of the run's other scorings, for thresholds on their metrics; they must be covered as well.

    Raises:
        UsageError: a comparison was asked for without ``current``.
    """
    summaries = (summary, *others)
    marks = current.marks if current is not None else ()
    if not gate.asked:
        said = "; ".join(map(_ungated, summaries))
        said = ", ".join([said, *marks])
        return Decision("none", EXIT["none"], f"{said} (no gate asked for)", ())
    conditions = [
        _judge(threshold, _meant(threshold, summaries), gate.min_coverage) for threshold in gate.thresholds
    ]
    if gate.fail_if_regressed is not None:
        if gate.baseline is None or current is None:
            raise UsageError("a comparison with a baseline needs the results of both runs")
        conditions.append(regression(gate.baseline, gate.fail_if_regressed, gate.min_coverage, current))
    covered = _covered(summaries, gate.min_coverage)
    outcomes = {condition.outcome for condition in conditions}
    outcome: Outcome
    if covered.outcome == "undecided":
        outcome, conditions = "undecided", [covered, *conditions]
    else:
        outcome = next((o for o in ("not-met", "undecided") if o in outcomes), "met")
        # What decided comes first, so that a cut line still says why.
        conditions.sort(key=lambda condition: condition.outcome != outcome)
        conditions.append(covered)
    texts = [condition.text for condition in conditions]
    other = [] if any(c.label == "measured" for c in conditions) else _measured(summary.overall)
    verdict = ", ".join([_WORD[outcome], *texts, *other, *_without_reported(summary), *marks])
    return Decision(outcome, EXIT[outcome], verdict, tuple(conditions))


def _meant(threshold: Threshold, summaries: Sequence[Summary]) -> Summary | None:
    """The scoring that a threshold is about: its metric's, or the run's first."""
    owner = owner_of(threshold.metric)
    if owner is None:
        return summaries[0]
    return next((summary for summary in summaries if summary.scoring == owner), None)


def _covered(summaries: Sequence[Summary], wanted: Fraction) -> Condition:
    """The coverage of the scoring that is measured least."""
    least = min(summaries, key=lambda s: Fraction(-1) if s.overall.coverage is None else s.overall.coverage)
    return _coverage(least.overall, wanted)


def _judge(threshold: Threshold, summary: Summary | None, min_coverage: Fraction) -> Condition:
    label = threshold.label
    if summary is None:
        said = f"{label}: the run was not scored by {owner_of(threshold.metric)}"
        return Condition(label, "undecided", said)
    group = summary.group(threshold.facet, threshold.value) if threshold.facet else summary.overall
    if group is None or group.selected == 0:
        return Condition(label, "undecided", f"{label}: no check selected{_known(threshold, summary)}")
    value = _worst(threshold, summary)
    if value is None:
        return Condition(label, "undecided", f"{label}: nothing measured")
    holds = threshold.holds(value)
    sign = (">=" if holds else "<") if threshold.direction == "under" else ("<=" if holds else ">")
    text = f"{label} {shown(value, threshold.bound)} {sign} {threshold.text}"
    if threshold.facet:
        covered = _coverage(group, min_coverage)
        if covered.outcome == "undecided":
            return Condition(label, "undecided", f"{text}, but its {covered.text}")
    numbers = summary.numbers.get((threshold.facet, threshold.value))
    known, what = _told(threshold.metric, group, scoring_of(summary.scoring), numbers)
    if Fraction(known, group.evaluations) < min_coverage:
        return Condition(label, "undecided", f"{text}, but only {known} of {group.evaluations} {what}")
    return Condition(label, "met" if holds else "not-met", text)


def _worst(threshold: Threshold, summary: Summary) -> Fraction | None:
    """Of the rates with and without self-reported failures, the one that is further from meeting it."""
    place = (threshold.facet, threshold.value)
    values = []
    for view in (summary, summary.gated):
        group = view.group(*place) if threshold.facet else view.overall
        if group is not None:
            values.append(_value(threshold.metric, group, scoring_of(view.scoring), view.numbers.get(place)))
    known = [value for value in values if value is not None]
    return (min if threshold.direction == "under" else max)(known, default=None)


def _value(metric: str, group: Group, scoring: Scoring, numbers: Numbers | None) -> Fraction | None:
    match metric:
        case "measured":
            return group.measured.value
        case "macro":
            return group.macro
        case "comments_per_pr":
            return group.totals.comments_per_pr
        case _ if metric in scoring.metrics and metric != scoring.rate:
            return None if numbers is None else numbers.value(metric)
        case _:
            return group.strict.value


def _told(metric: str, group: Group, scoring: Scoring, numbers: Numbers | None) -> tuple[int, str]:
    """How many of the group's reviews tell what the metric counts, and what they do in words.

    A number of comments, or a mean over pull requests, can be that of a few of them although nearly all
    checks are covered: pull requests have one check or a hundred.
    """
    match metric:
        case "pass_rate" | "measured":
            of: Of = "selected"
        case "macro":
            of = "decided"
        case "comments_per_pr":
            return group.totals.reviews, "reviews are known"
        case _:
            of = scoring.tells.get(metric, "known")
    if of == "selected":
        return group.evaluations, ""
    if of == "decided":
        return group.decided, "reviews have a result"
    return numbers.reviews if numbers else 0, "reviews are known"


def _known(threshold: Threshold, summary: Summary) -> str:
    """What the user may have meant."""
    facets = summary.facets()
    if not facets:
        return ""
    if threshold.facet not in facets:
        return f" (no facet {threshold.facet!r}; there are {', '.join(facets)})"
    values = [group.value for group in facets[threshold.facet]]
    more = ", ..." if len(values) > 10 else ""
    return f" (values of {threshold.facet}: {', '.join(values[:10])}{more})"


def _coverage(group: Group, wanted: Fraction) -> Condition:
    coverage = group.coverage
    if coverage is None:
        return Condition("coverage", "undecided", "no check selected")
    bound = f"{float(wanted):g}"
    if coverage >= wanted:
        return Condition("coverage", "met", f"coverage {shown(coverage, wanted)} >= {bound}{causes(group)}")
    return Condition("coverage", "undecided", f"coverage {shown(coverage, wanted)} < {bound}{causes(group)}")


def causes(group: Group) -> str:
    """Say what was not measured: `` (1 infra_error, 2 not run)``; "" if nothing."""
    found = [f"{count} {status.value}" for status, count in group.errors.items()]
    if group.not_run:
        found.append(f"{group.not_run} not run")
    return f" ({', '.join(found)})" if found else ""


def _measured(group: Group) -> list[str]:
    """The other bound, where the reviewer's own errors set the two apart."""
    if not group.differs:
        return []
    value = group.measured.value
    of = f"{group.measured.passed} of {group.measured.of}"
    return [f"measured {shown(value)} ({of})" if value is not None else "nothing measured"]


def _without_reported(summary: Summary) -> list[str]:
    """The rate that the gate did not decide on, where programs reported outside failures of their own."""
    if not summary.self_reported:
        return []
    without, value = f"without {summary.self_reported} self-reported", summary.overall.strict.value
    return [f"{shown(value)} {without}" if value is not None else f"nothing measured {without}"]


def _ungated(summary: Summary) -> str:
    overall = summary.overall
    if overall.strict.value is None:
        return f"nothing measured{causes(overall)}"
    parts = [f"{scoring_of(summary.scoring).rate} {shown(overall.strict.value)}", *_measured(overall)]
    if summary.self_reported:
        as_missed = shown(summary.gated.overall.strict.value or Fraction(0))
        parts.append(f"{as_missed} with {summary.self_reported} self-reported outside failures as missed")
    if summary.own is not None:
        for name in scoring_of(summary.scoring).headline:
            value = summary.own.value(name)
            parts += [f"{name} {shown(value)}"] if value is not None else []
    if overall.coverage is not None:
        parts.append(f"coverage {shown(overall.coverage, Fraction(1))}{causes(overall)}")
    return ", ".join(parts)
