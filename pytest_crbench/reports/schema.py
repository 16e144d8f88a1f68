"""The published shape of ``results.json``; the rows of the files of rows are in it.

``python -m pytest_crbench.reports.schema`` prints the JSON Schema that docs/results.schema.json holds; with
the argument ``run`` that of ``run.json`` (docs/run.schema.json).
Within one ``schema_version`` keys are only added; readers leave aside those they do not know.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping  # noqa: TC003  (pydantic resolves these)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ..core.model import Key, ReviewRecord, Verdict
from ..core.records import Text  # noqa: TC001
from ..core.run_record import Count, Record, RunRecord
from ..core.scoring import scoring_of
from ..text.plainjson import plain

if TYPE_CHECKING:
    from fractions import Fraction

    from ..statistics.intervals import Interval
    from ..statistics.score import Group, Rate, Summary

NAME = "crbench-results"
VERSION = 2

Share = Annotated[float, Field(ge=0, le=1)]
Bounds = Annotated[list[Share], Field(min_length=2, max_length=2)]
Numbers = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class NotRun(Key):
    """A selected check that has no verdict."""

    facets: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Unmeasured(Key):
    """A selected check without a measurement; ``not_run`` is one without a verdict."""

    status: str
    cause: str
    reason: str
    log: str | None


class RateInfo(Record):
    """A rate with its 95 % interval; null where nothing was counted."""

    passed: Count
    of: Count
    rate: Share | None
    interval: Bounds | None


class MacroInfo(Record):
    """The mean of the pull requests' own rates."""

    rate: Share | None
    interval: Bounds | None


class BoundsInfo(Record):
    """The rate if every unmeasured check had been missed, and if every one had passed."""

    lowest: Share | None
    highest: Share | None


class CommentInfo(Record):
    """Review comments, over the reviews that are known."""

    reviews: Count
    comments: Count
    outside_diff: Count
    duplicates: Count
    noted: dict[str, Count] = Field(
        default_factory=dict,
        description="what was unusual in reading the reviews, by kind",
    )
    per_pr: float | None


class GroupInfo(Record):
    """The verdicts that share one value of one facet (both "" for all of them)."""

    facet: str
    value: str
    selected: Count
    passed: Count
    missed: Count
    errors: dict[str, Count]
    not_run: Count
    checks: Count
    instances: Count
    passed_ever: Count
    passed_always: Count
    measured: RateInfo
    strict: RateInfo
    macro: MacroInfo
    coverage: Share | None
    detectable: Share | None = Field(
        default=None,
        description="smallest difference to another such run that the paired test finds at 80 % power",
    )
    bounds: BoundsInfo | None = Field(default=None, description="over all that was selected")
    comments: CommentInfo
    tokens: Count
    cost: float | None = Field(description="US dollars")
    usage: dict[str, Numbers]
    seconds: Numbers = Field(description="median per pull request and repeat, by stage")


class EstimateInfo(Record):
    """A number and its 95 % interval; null where there is nothing to make it of."""

    value: Share | None
    interval: Bounds | None


class AgreementInfo(Record):
    """Precision, recall and F1 of the pull requests of one facet value (docs/matching.md)."""

    facet: str
    value: str
    precision: EstimateInfo = Field(description="lower bound: unlabelled comments taken as wrong")
    highest_precision: Share | None = Field(description="upper bound: unlabelled comments taken as right")
    recall: EstimateInfo
    f1: EstimateInfo
    line_precision: EstimateInfo
    line_recall: EstimateInfo
    line_f1: EstimateInfo
    macro_precision: EstimateInfo
    macro_recall: EstimateInfo
    macro_f1: EstimateInfo
    noise: Bounds | None = Field(description="lower and upper bound")
    rejected: Share | None
    comments_per_hunk: float | None
    categories: dict[str, Count]
    published: dict[str, Share | None] | None = Field(
        default=None, description="recall and f1 as the published evaluator divides; only in legacy mode"
    )
    counts: dict[str, Count | None]


class SelfReportedInfo(Record):
    """Checks without a result for a reason that only the reviewer or agent gave; the gate's rates."""

    checks: Count
    strict: RateInfo = Field(description="with these as not passed")
    macro: Share | None = Field(description="with these as not passed")


class SummaryInfo(Record):
    """Rates of one scoring and arm."""

    scoring: str
    arm: str
    repeats: Count
    overall: GroupInfo
    self_reported: SelfReportedInfo | None = None
    facets: list[GroupInfo]
    agreement: list[AgreementInfo] = Field(default_factory=list, description="of the scoring matching")
    metrics: list[dict[str, Any]] = Field(
        default_factory=list, description="numbers of a scoring of another package, by facet and value"
    )


class CheckName(Record):
    """A check, whatever the scoring, repeat and arm."""

    dataset: str
    instance: str
    check: str


class ConditionInfo(Record):
    """One condition of the gate."""

    label: str
    outcome: Literal["met", "not-met", "undecided", "none"]
    text: str
    lost: list[CheckName] = Field(
        default_factory=list, description="checks that the baseline passed and this run did not"
    )


class GateInfo(Record):
    """The decision; ``verdict`` is the text of the last line of the run."""

    outcome: Literal["met", "not-met", "undecided", "none"]
    exit_status: Literal[0, 1, 10] | None
    verdict: str
    conditions: list[ConditionInfo]


class IntervalInfo(Record):
    """How the intervals were made (docs/statistics.md)."""

    method: str
    agreement_method: str = ""
    level: float


class ResultsFile(Record):
    """The results of one run of pytest-crbench."""

    schema_: Literal["crbench-results"] = Field(alias="schema")
    schema_version: Literal[2]
    crbench: str = Field(description="version of pytest-crbench that wrote the file")
    run: RunRecord
    summary: SummaryInfo = Field(description="of the run's first scoring")
    summaries: list[SummaryInfo] = Field(default_factory=list, description="of every scoring")
    gate: GateInfo | None
    interval: IntervalInfo
    reviews: list[ReviewRecord] = Field(description="sorted by identity; each is counted once")
    verdicts: list[Verdict] = Field(description="sorted by identity")
    not_run: list[NotRun] = Field(default_factory=list)
    unmeasured: list[Unmeasured] = Field(default_factory=list, description="every selected check of these")


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as plain JSON; rates as numbers with six decimals."""
    return {
        "scoring": summary.scoring,
        "arm": summary.arm,
        "repeats": summary.repeats,
        "overall": _group(summary.overall),
        "self_reported": {
            "checks": summary.self_reported,
            "strict": _rate(summary.gated.overall.strict),
            "macro": _number(summary.gated.overall.macro),
        },
        "facets": [_group(group) for group in summary.groups],
        "agreement": [],
        "metrics": [],
        scoring_of(summary.scoring).json_key: [
            {"facet": facet, "value": value, **found.to_json()}
            for (facet, value), found in sorted(summary.numbers.items())
        ],
    }


def _group(group: Group) -> dict[str, Any]:
    totals = group.totals
    return {
        "facet": group.facet,
        "value": group.value,
        "selected": group.selected,
        "passed": group.passed,
        "missed": group.missed,
        "errors": {status.value: count for status, count in group.errors.items()},
        "not_run": group.not_run,
        "checks": group.checks,
        "instances": group.instances,
        "passed_ever": group.passed_ever,
        "passed_always": group.passed_always,
        "measured": _rate(group.measured),
        "strict": _rate(group.strict),
        "macro": {"rate": _number(group.macro), "interval": _bounds(group.macro_interval)},
        "coverage": _number(group.coverage),
        "detectable": None if group.detectable is None else round(group.detectable, 6),
        "bounds": {"lowest": _number(group.lowest), "highest": _number(group.highest)},
        "comments": {
            "reviews": totals.reviews,
            "comments": totals.comments,
            "outside_diff": totals.outside_diff,
            "duplicates": totals.duplicates,
            "noted": plain(totals.noted),
            "per_pr": _number(totals.comments_per_pr),
        },
        "tokens": totals.tokens,
        "cost": None if totals.cost is None else round(totals.cost, 6),
        "usage": plain(totals.usage),
        "seconds": {stage: round(value, 3) for stage, value in totals.seconds.items()},
    }


def _rate(rate: Rate) -> dict[str, Any]:
    return {
        "passed": rate.passed,
        "of": rate.of,
        "rate": _number(rate.value),
        "interval": _bounds(rate.interval),
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), 6)


def _bounds(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [round(interval.low, 6), round(interval.high, 6)]


def json_schema(kind: type[Record] = ResultsFile, name: str = NAME) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``results.json``, or of another record."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{name}:{VERSION}",
        **kind.model_json_schema(by_alias=True),
    }


if __name__ == "__main__":
    asked = (RunRecord, "crbench-run") if sys.argv[1:] == ["run"] else (ResultsFile, NAME)
    sys.stdout.write(json.dumps(json_schema(*asked), indent=1) + "\n")
