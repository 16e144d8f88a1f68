"""Runs of the scoring ``matching`` without pytest around them: a whole dataset in some seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.records import run_record

from pytest_crbench.agents.load import NoAgent
from pytest_crbench.evaluation.plan import plan_of
from pytest_crbench.run import assemble
from pytest_crbench.run.settings import read
from pytest_crbench.sandbox.choose import AbsentBackend
from pytest_crbench.statistics.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_crbench.core.model import Review


class Says:
    """A reviewer that says what a function makes of an instance."""

    name = "says"
    shareable = False
    needs_repository = False

    def __init__(self, review: Callable[[Any], Review]) -> None:
        self.review_of = review
        self.fingerprint = {"kind": "says"}

    def review(self, task: Any) -> Review:
        return self.review_of(task.instance)


def offline(folder: Path, reviewer: Any, **options: Any) -> Results:
    """Score a reviewer's comments on whole datasets; what a run with ``--crbench-offline`` records.

    ``options`` are fields of `Settings`; ``dataset`` must be among them.
    """
    given = {"offline": True, "matcher": "exact", "cache": str(folder / "cache"), **options}
    settings = read(given.get, folder)
    datasets = assemble.open_datasets(settings)
    invocation = assemble.Invocation(folder / "run", "session", "none", scorings=("matching",))
    evaluator = assemble.make_evaluator(settings, invocation, reviewer, NoAgent(), AbsentBackend())
    verdicts, planned = [], {}
    for one in plan_of(settings).all_of(datasets):
        planned[one.key] = one.instance.facets(one.check)
        verdicts.append(evaluator.verdict(one.instance, one.check, one.key.repeat, scoring=one.key.scoring))
    return Results(run_record(reviewer={"name": "says"}), tuple(verdicts), planned)
