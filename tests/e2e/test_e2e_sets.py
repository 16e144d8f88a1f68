"""Which checks pass is the same everywhere: whole runs over the bundled pull requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import Run, run, sample
from support.endpoint import DOCKER, LOCAL

from pytest_crbench.datasets import open_dataset
from pytest_crbench.evaluation.plan import Plan

pytestmark = [pytest.mark.network, pytest.mark.slow]

LISTED = frozenset((Path(__file__).parents[2] / "fixtures/suggestions-pass.txt").read_text().split())
SUGGESTIONS = ("--crbench-reviewer=human", "--crbench-agent=suggestions")
#: One environment, five checks of which three are listed: enough for the ways to run that are not whole.
HANDFUL = ("releases::tomlkit-0.12.0", "releases::tomlkit-0.12.5", "releases::pyjwt-2.10.0")

docker = pytest.mark.docker


def known() -> set[str]:
    return {planned.node for planned in Plan().all_of([open_dataset("releases")])}


def passed(done: Run) -> set[str]:
    """The checks that passed; all that were selected must have been measured."""
    statuses = done.statuses()
    assert set(statuses.values()) <= {"passed", "missed"}, done.output
    assert not done.results()["not_run"]
    return {f"releases::{name}" for name, status in statuses.items() if status == "passed"}


def handful() -> set[str]:
    return {node for node in known() if node.startswith(tuple(f"{name}::" for name in HANDFUL))}


@docker
def test_the_bundled_checks_in_containers_on_two_workers(folder: Path, cache: Path) -> None:
    chosen = tuple(f"releases::{instance.id}" for instance in sample(open_dataset("releases").instances))
    wanted = {node for node in known() if node.startswith(tuple(f"{name}::" for name in chosen))}
    done = run(folder, None, cache, *SUGGESTIONS, *DOCKER, "-n", "2", *chosen, timeout=1200)
    assert done.status == 0, done.output
    assert len(done.statuses()) == len(wanted) >= 6
    assert passed(done) == LISTED & wanted
    assert 0 < len(passed(done)) < len(wanted)


@pytest.mark.parametrize(
    ("sandbox", "workers"),
    [
        pytest.param(DOCKER, (), id="docker-serial", marks=docker),
        pytest.param(LOCAL, (), id="local-serial"),
        pytest.param(LOCAL, ("-n", "2"), id="local-two-workers"),
    ],
)
def test_a_handful_gives_the_listed_set_in_every_way(
    folder: Path, cache: Path, sandbox: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    done = run(folder, None, cache, *SUGGESTIONS, *sandbox, *workers, *HANDFUL)
    assert done.status == 0, done.output
    assert len(done.statuses()) == len(handful()) == 5
    assert passed(done) == LISTED & handful()
    assert 0 < len(passed(done)) < 5


@docker
def test_the_reference_passes_everything(folder: Path, cache: Path) -> None:
    done = run(
        folder,
        None,
        cache,
        *("--crbench-reviewer=human", "--crbench-agent=reference"),
        *DOCKER,
        *("-n", "2"),
        *HANDFUL,
    )
    assert done.status == 0, done.output
    assert passed(done) == handful()
    assert "harness" in done.output, "a run of the reference agent must say that it is no result"


@docker
@pytest.mark.parametrize(
    ("gate", "status"), [((), 0), (("--crbench-fail-under=0.1",), 1)], ids=["no-gate", "gate"]
)
def test_no_review_and_no_agent_miss_everything(
    folder: Path, cache: Path, gate: tuple[str, ...], status: int
) -> None:
    nothing = ("--crbench-reviewer=none", "--crbench-agent=none")
    done = run(folder, None, cache, *nothing, *DOCKER, *gate, *HANDFUL)
    assert done.status == status, done.output
    assert done.outcomes() == {"missed": 5}
