"""A run that a program makes, without pytest."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.benchmarks import Pull, run, write_dataset

from pytest_crbench import ReviewComment, Run, Settings, load_results
from pytest_crbench.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Settings:
    data = write_dataset(tmp_path / "data", [Pull("first", fixable=("price",), hard=("tax",))])
    return Settings(
        reviewer="human",
        agent="suggestions",
        sandbox="local",
        dataset=(str(data),),
        cache=cache,
        run_dir=tmp_path / "runs",
        fail_under=("0.4",),
    )


@pytest.mark.network
def test_its_results_are_those_of_pytest(settings: Settings, folder: Path, cache: Path) -> None:
    with Run(settings) as made:
        statuses = {one.node: made.verdict(one).status.value for one in made.planned()}
        results, decision = made.finish()
    assert statuses == {"small::first::price": "passed", "small::first::tax": "missed"}
    assert decision.verdict.startswith("PASSED, overall 0.500 >= 0.4")
    written = json.loads((settings.run_dir / results.run.name / "results.json").read_text())
    assert load_results(settings.run_dir / results.run.name).summary() == results.summary()
    same = run(
        folder,
        settings.datasets[0],  # type: ignore[arg-type]
        cache,
        "--crbench-reviewer=human",
        "--crbench-agent=suggestions",
        "--crbench-fail-under=0.4",
    ).results()
    assert _of(written) == _of(same)
    assert "TASK_SESSION" not in os.environ


def _of(results: dict[str, Any]) -> Any:
    kept = ("instance", "check", "status", "reason", "review", "check_digest", "environment", "facets")
    rows = [{key: row[key] for key in kept} for row in results["verdicts"]]
    return rows, results["gate"]["outcome"], results["summary"]["overall"]["strict"]


@pytest.mark.network
def test_a_callable_reviews_and_the_run_is_resumed(settings: Settings) -> None:
    asked: list[str] = []

    def review(pull_request: Any, workspace: Path) -> list[ReviewComment]:
        asked.append(pull_request.title)
        return []

    with Run(settings, reviewer=review) as made:
        first = [made.verdict(one).status.value for one in made.planned()]
        results, decision = made.finish()
    assert (first, decision.outcome, len(asked)) == (["missed", "missed"], "not-met", 1)
    with Run(replace(settings, resume=results.run.name), reviewer=review) as again:
        assert [again.verdict(one).status.value for one in again.planned()] == first
        assert again.finish()[0].run.resumed
    assert len(asked) == 1


def test_what_is_missing_is_told_before_any_work(settings: Settings) -> None:
    wrong = Run(replace(settings, agent="llm", model=None))
    with pytest.raises(UsageError, match="--crbench-model"):
        wrong.start()
    wrong.close()
    with pytest.raises(RuntimeError, match="call start"):
        _ = wrong.evaluator
    assert not settings.run_dir.exists()
