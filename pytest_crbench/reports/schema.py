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
from typing import Annotated, Any, Literal

from pydantic import Field

from ..core.model import Key, ReviewRecord, Verdict
from ..core.records import Text  # noqa: TC001
from ..core.run_record import Count, Record, RunRecord

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
