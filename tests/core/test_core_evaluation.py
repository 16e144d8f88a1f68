"""An instance through its stages, in a real local sandbox: what each failure becomes, and what is kept."""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.benchmarks import Pull, write_dataset

from pytest_crbench import OutsideFailure
from pytest_crbench.core.errors import (
    AgentError,
    InfraError,
    InvalidInstanceError,
    ReviewerError,
    StageError,
)
from pytest_crbench.core.model import Dataset, Review, ReviewComment, Revision
from pytest_crbench.core.status import Status
from pytest_crbench.datasets import open_dataset
from pytest_crbench.evaluation.evaluator import Evaluator
from pytest_crbench.host.trees import writable_copy
from pytest_crbench.run import assemble
from pytest_crbench.run.settings import read
from pytest_crbench.sandbox import bubblewrap


@dataclass
class Says:
    """A reviewer that says what it is told to, or fails."""

    comments: tuple[ReviewComment, ...] = (ReviewComment(id="c1", body="wrong"),)
    error: StageError | OutsideFailure | None = None
    calls: list[str] = field(default_factory=list)
    name: str = "says"
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"kind": "says"})
    shareable: bool = False

    def review(self, task: Any) -> Review:
        self.calls.append(task.instance.id)
        if self.error:
            raise self.error
        return Review(comments=self.comments, reviewer=self.name, raw="raw.txt")


@dataclass
class Writes:
    """An agent that writes files into a copy of head, or fails."""

    files: dict[str, str] = field(default_factory=dict)
    error: StageError | OutsideFailure | None = None
    calls: list[int] = field(default_factory=list)
    name: str = "writes"
    runs_on_clean_review: bool = False
    stop_reason: str = "finished"

    @property
    def fingerprint(self) -> dict[str, Any]:
        return {"files": self.files}

    def revise(self, task: Any) -> Revision:
        self.calls.append(len(task.review.comments))
        if self.error:
            raise self.error
        edited = Path(tempfile.mkdtemp(dir=task.directory)) / "edited"
        writable_copy(task.head.path, edited)
        for path, text in self.files.items():
            (edited / path).parent.mkdir(parents=True, exist_ok=True)
            (edited / path).write_text(text)
        return Revision(patch=task.capture(edited), agent=self.name, stop_reason=self.stop_reason)


FIX = {"shop/price_.py": 'def price():\n    return "price"\n'}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return open_dataset(str(write_dataset(tmp_path / "data", [Pull("one", hard=("price", "tax"))])))


def evaluator(
    tmp_path: Path, cache: Path, reviewer: Any, agent: Any, run: str = "run", **options: str
) -> Evaluator:
    given = {"cache": str(cache), "run_dir": str(tmp_path), "sandbox": "local", **options}
    settings = read(given.get, tmp_path)
    session = secrets.token_hex(8)
    backend = assemble.make_backend(settings, "local", session, lambda _line: None)
    invocation = assemble.Invocation(tmp_path / run, session, "local")
    return assemble.make_evaluator(settings, invocation, reviewer, agent, backend)


def judge(made: Evaluator, dataset: Dataset, check: int = 0) -> Any:
    (instance,) = dataset.instances
    return made.verdict(instance, instance.checks[check])


def test_a_fix_passes_and_the_other_check_is_missed(tmp_path: Path, cache: Path, dataset: Dataset) -> None:
    reviewer, agent = Says(), Writes(FIX)
    made = evaluator(tmp_path, cache, reviewer, agent)
    assert judge(made, dataset).status is Status.PASSED
    missed = judge(made, dataset, 1)
    assert missed.status is Status.MISSED
    assert "assert 'wrong' == 'tax'" in missed.reason
    assert (reviewer.calls, agent.calls) == (["one"], [1])
    assert missed.review.stop_reason == "finished"
    assert set(missed.review.keys) == {"review", "agent", "revision"}
    assert set(missed.keys) == {"tests"}
    patch = (tmp_path / "run/evaluations/small/one/review-1/revision.patch").read_bytes()
    assert b'+    return "price"' in patch


def test_a_limit_that_was_reached_is_measured(tmp_path: Path, cache: Path, dataset: Dataset) -> None:
    verdict = judge(evaluator(tmp_path, cache, Says(), Writes(FIX, stop_reason="step-limit")), dataset)
    assert (verdict.status, verdict.review.stop_reason) == (Status.PASSED, "step-limit")


def test_a_clean_review_runs_the_tests_without_the_agent(
    tmp_path: Path, cache: Path, dataset: Dataset
) -> None:
    agent = Writes(FIX)
    verdict = judge(evaluator(tmp_path, cache, Says(comments=()), agent), dataset)
    assert (verdict.status, verdict.review.stop_reason) == (Status.MISSED, "clean-review")
    assert agent.calls == []


@pytest.mark.parametrize(
    ("reviewer", "agent", "status"),
    [
        (Says(error=ReviewerError("it crashed")), Writes(FIX), Status.REVIEWER_ERROR),
        (Says(error=InfraError("no disk")), Writes(FIX), Status.INFRA_ERROR),
        (Says(), Writes(error=AgentError("it broke")), Status.AGENT_ERROR),
        (Says(), Writes(error=InfraError("no model")), Status.INFRA_ERROR),
    ],
)
def test_a_failure_is_its_status_once_for_all_checks(
    tmp_path: Path, cache: Path, dataset: Dataset, reviewer: Says, agent: Writes, status: Status
) -> None:
    made = evaluator(tmp_path, cache, reviewer, agent)
    assert [judge(made, dataset, n).status for n in (0, 1)] == [status, status]
    again = evaluator(tmp_path, cache, reviewer, agent)
    assert judge(again, dataset).status is status
    assert len(reviewer.calls) == 1
    assert len(agent.calls) <= 1


@pytest.mark.parametrize(
    ("reviewer", "agent", "cause"),
    [
        (Says(error=OutsideFailure("429")), Writes(FIX), "reviewer-outside"),
        # A vendor's object may name any status; none takes it out of the rate unseen.
        (Says(error=InfraError("429", reason="disk")), Writes(FIX), "reviewer-outside"),
        (Says(error=AgentError("429")), Writes(FIX), "reviewer-outside"),
        (Says(error=InvalidInstanceError("429")), Writes(FIX), "reviewer-outside"),
        (Says(), Writes(error=OutsideFailure("429")), "agent-outside"),
    ],
)
def test_an_outside_failure_is_self_reported(
    tmp_path: Path, cache: Path, dataset: Dataset, reviewer: Says, agent: Writes, cause: str
) -> None:
    verdict = judge(evaluator(tmp_path, cache, reviewer, agent), dataset)
    assert (verdict.status, verdict.cause, verdict.self_reported) == (Status.INFRA_ERROR, cause, True)


def test_a_limit_that_leaves_a_fix_little_time_is_a_warning(tmp_path: Path, cache: Path) -> None:
    test = (
        "import time\nfrom shop.price_ import price\n\n\n"
        "def test_price():\n    time.sleep(8)\n    assert price() == 'price'\n"
    )
    folder = write_dataset(tmp_path / "data", [Pull("one", hard=("price",), tests={"price": test})])
    made = evaluator(tmp_path, cache, Says(), Writes(FIX), test_timeout="24")
    verdict = judge(made, open_dataset(str(folder)))
    assert verdict.status is Status.PASSED
    (said,) = verdict.warnings
    assert "at head, and its limit is 24 s" in said
    assert "--crbench-limit test-timeout" in said


def test_what_would_steer_the_run_is_put_back_and_told(tmp_path: Path, cache: Path, dataset: Dataset) -> None:
    forged = "def dumps(x):\n    return '{}'\n"
    verdict = judge(evaluator(tmp_path, cache, Says(), Writes({**FIX, "json.py": forged})), dataset)
    assert verdict.status is Status.PASSED
    assert any("json.py" in warning and "put back" in warning for warning in verdict.warnings)


def test_a_file_that_a_comment_is_about_is_not_put_back(tmp_path: Path, cache: Path) -> None:
    source = "import pathlib\n\n\ndef test_it():\n    assert pathlib.Path('json.py').exists()\n"
    folder = write_dataset(tmp_path / "data", [Pull("one", hard=("price",), tests={"price": source})])
    file = folder / "one" / "instance.toml"
    plain = open_dataset(str(folder))
    assert judge(evaluator(tmp_path, cache, Says(), Writes({"json.py": ""})), plain).status is Status.MISSED
    file.write_text(file.read_text().replace('path = "shop/price_.py"', 'path = "json.py"'))
    about = open_dataset(str(folder))
    made = evaluator(tmp_path, cache, Says(), Writes({"json.py": ""}), run="other")
    assert judge(made, about).status is Status.PASSED


def test_a_check_that_passes_at_head_is_invalid(tmp_path: Path, cache: Path) -> None:
    source = "def test_it():\n    pass\n"
    folder = write_dataset(tmp_path / "data", [Pull("one", hard=("price",), tests={"price": source})])
    verdict = judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), open_dataset(str(folder)))
    assert verdict.status is Status.INVALID
    assert "passes at the unmodified head" in verdict.reason


def test_a_patch_that_was_changed_later_is_not_used(tmp_path: Path, cache: Path, dataset: Dataset) -> None:
    assert judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), dataset).status is Status.PASSED
    patch = tmp_path / "run/evaluations/small/one/review-1/revision.patch"
    patch.write_bytes(patch.read_bytes() + b"\n")
    review, revise = Says(), Writes(FIX)
    assert judge(evaluator(tmp_path, cache, review, revise), dataset).status is Status.PASSED
    assert (review.calls, revise.calls) == ([], [1]), "the revision, and nothing else, is made again"


def test_another_revision_is_another_verdict_in_the_same_run(
    tmp_path: Path, cache: Path, dataset: Dataset
) -> None:
    assert judge(evaluator(tmp_path, cache, Says(), Writes({})), dataset).status is Status.MISSED
    assert judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), dataset).status is Status.PASSED


@pytest.mark.parametrize(
    ("limit", "status"),
    [({"test_timeout": "0.05"}, Status.INFRA_ERROR), ({"memory": "16m"}, Status.INVALID)],
)
def test_a_limit_that_head_does_not_run_under_is_no_miss(
    tmp_path: Path, cache: Path, dataset: Dataset, limit: dict[str, str], status: Status
) -> None:
    assert judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), dataset).status is Status.PASSED
    tight = evaluator(tmp_path, cache, Says(), Writes(FIX), run="tight", **limit)
    verdict = judge(tight, dataset)
    assert verdict.status is status, verdict.reason
    assert status is not Status.INVALID or "--crbench-limit memory" in verdict.reason
    # Finishing the first run under the new limit does not mix what was measured under two.
    resumed = evaluator(tmp_path, cache, Says(), Writes(FIX), **limit)
    assert judge(resumed, dataset).status is status


def test_a_cache_behind_a_link_is_no_foreign_place(
    tmp_path: Path, cache: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_crbench.sandbox.bubblewrap.find", lambda: None)
    cache.mkdir(parents=True, exist_ok=True)
    link = tmp_path / "link"
    link.symlink_to(cache, target_is_directory=True)
    verdict = judge(evaluator(tmp_path, link, Says(), Writes(FIX)), dataset)
    assert (verdict.status, verdict.reason) == (Status.PASSED, "")


def test_another_version_takes_over_no_verdict(
    tmp_path: Path, cache: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), dataset)
    again = judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), dataset)
    monkeypatch.setattr("pytest_crbench.scoring.tests.hidden_tests.__version__", "99")
    newer = judge(evaluator(tmp_path, cache, Says(), Writes(FIX)), dataset)
    assert first.keys["tests"] == again.keys["tests"] != newer.keys["tests"]


@dataclass
class Looks(Writes):
    """An agent whose commands look for the hidden tests."""

    places: tuple[Path, ...] = ()
    seen: str = ""

    def revise(self, task: Any) -> Revision:
        with task.sandbox() as box:
            done = box.exec(["find", *map(str, self.places)], timeout=30)
        self.seen = done.stdout.decode()
        return Revision(patch=b"", agent=self.name, stop_reason="finished")


@pytest.mark.skipif(bubblewrap.find() is None, reason="nothing is hidden without bubblewrap")
def test_a_dataset_in_a_system_folder_is_out_of_the_agents_sight(
    tmp_path: Path, cache: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not below /tmp, which is the sandbox's own in there.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        system = Path(name)
        (system / "shown").write_text("")
        write_dataset(system / "data", [Pull("one", hard=("price",))])
        monkeypatch.setattr(bubblewrap, "SYSTEM", (*bubblewrap.SYSTEM, name))
        agent = Looks(places=(system,))
        judge(evaluator(tmp_path, cache, Says(), agent, dataset=f"{name}/data"), dataset)
    assert f"{name}/shown" in agent.seen
    assert "test_price.py" not in agent.seen
