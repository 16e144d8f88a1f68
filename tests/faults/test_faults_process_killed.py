"""SIGKILL of workers and of the controller, in each stage; then the run is resumed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from support.benchmarks import Run, run
from support.stages import NOTHING, STAGES, gone, in_every_stage, wait_for, workers
from support.stories import RESUME, Story

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from support.faults import Told
    from support.stages import Stages

    Once = Callable[[str, Callable[[Story], None]], Story]

pytestmark = [pytest.mark.network, pytest.mark.slow]
WHERE = dict(zip(STAGES, "bcd", strict=True))


def _resume(stages: Stages, *arguments: str) -> Any:
    env = {"TMPDIR": str(stages.temporary)}
    return run(stages.story.vendor, stages.dataset, stages.cache, *RESUME, *arguments, env=env)


def _counts(stages: Stages) -> dict[str, list[str]]:
    return {"reviews": stages.programs.reviews(), "revisions": stages.programs.revisions()}


@pytest.fixture
def killed_workers(once: Once, cache: Path) -> Story:
    """A run whose workers are killed, one in each stage, and the resumed one."""
    return once("workers", lambda story: _kill_workers(story, cache))


def _kill_workers(story: Story, cache: Path) -> None:
    stages = in_every_stage(story, cache, nap=6)
    with stages.started("-n", "3") as process:
        killed: set[str] = set()
        wait_for(lambda: _kill_in_turn(stages, process, killed))
        done = stages.finish(process)
        story.keep("first", done, left=stages.left(), **_counts(stages))
    stages.heal()
    done = _resume(stages)
    story.keep("again", done, left=stages.left(), **_counts(stages))


def _kill_in_turn(stages: Stages, process: subprocess.Popen[str], killed: set[str]) -> bool:
    assert process.poll() is None, process.communicate()[0]
    for stage in STAGES:
        worker = None if stage in killed else stages.worker(stage, process.pid)
        if worker is not None:
            assert worker != process.pid
            os.kill(worker, signal.SIGKILL)
            killed.add(stage)
    return len(killed) == len(STAGES)


def _look_at_worker(story: Story, stage: str, fault: Told) -> None:
    letter = WHERE[stage]
    row = story.rows("first")[letter]
    assert row["status"] == fault.status
    fault.assert_told(row["reason"])
    assert story.statuses("first")["a"] == "passed"
    assert story.told("first")["left"] == NOTHING
    assert story.statuses("again") == dict.fromkeys("abcd", "passed")
    told = story.told("again")
    assert told["left"] == NOTHING
    # Once more for what was killed in flight, and for nothing else.
    assert told["reviews"].count(letter) == (2 if stage == "review" else 1)
    assert told["revisions"].count(letter) == (2 if stage == "revision" else 1)
    assert told["reviews"].count("a") == told["revisions"].count("a") == 1
    # The dead held their locks: the system has freed them, although the files are there.
    assert list((story.run / ".locks").iterdir())


def test_a_worker_is_killed_while_it_reviews(killed_workers: Story, fault: Told) -> None:
    """A worker is killed (SIGKILL) while its reviewer runs.

    Status: infra_error
    Message: the worker crashed
    """
    _look_at_worker(killed_workers, "review", fault)


def test_a_worker_is_killed_while_it_revises(killed_workers: Story, fault: Told) -> None:
    """A worker is killed (SIGKILL) while its coding agent runs.

    Status: infra_error
    Message: the worker crashed
    """
    _look_at_worker(killed_workers, "revision", fault)


def test_a_worker_is_killed_while_it_tests(killed_workers: Story, fault: Told) -> None:
    """A worker is killed (SIGKILL) while its hidden test runs.

    Status: infra_error
    Message: the worker crashed
    """
    _look_at_worker(killed_workers, "test", fault)


@pytest.fixture
def killed_controller(once: Once, cache: Path) -> Story:
    """A run with workers whose controller is killed, and the resumed one."""
    return once("controller", lambda story: _kill_controller(story, cache))


def _kill_controller(story: Story, cache: Path) -> None:
    stages = in_every_stage(story, cache, nap=5, reviewed=("b1", "b2"))
    with stages.started("-n", "4", "-k", "not d1") as process:
        wait_for(lambda: stages.hangs(process, "review", "revision"))
        # Another worker waits for the review of "b"; it would make it at once.
        wait_for(lambda: "review: waiting for another worker" in story.log("b"))
        own = workers(process.pid)
        assert len(own) == 4
        reviewing = stages.worker("review", process.pid)
        assert reviewing is not None
        process.kill()
        process.wait()
        os.kill(reviewing, signal.SIGKILL)
        process.communicate()
        # They notice by themselves; the programs that they leave are ended by whoever starts next.
        wait_for(lambda: gone(own))
        story.keep("killed", Run(process.returncode, "", story.vendor), **_counts(stages))
        stages.heal()
    done = _resume(stages)
    story.keep("again", done, left=stages.left(), **_counts(stages))


def test_the_controller_is_killed_while_workers_review_and_revise(
    killed_controller: Story, fault: Told
) -> None:
    """The controller is killed (SIGKILL) while its workers review and revise.

    The workers end by themselves, and begin nothing more that nobody would take; what they had started is
    ended by the next run that starts.

    Status: passed
    Message: overall 1.000, coverage 1.000
    """
    _look_at_controller(killed_controller, fault, "abc")
    told = killed_controller.told("killed")
    assert (told["reviews"], told["revisions"]) == (["a", "b", "c"], ["a", "c"])
    told = killed_controller.told("again")
    assert (told["reviews"], told["revisions"]) == (["a", "b", "b", "c"], ["a", "b", "c", "c"])


def test_the_only_process_is_killed_while_it_tests(once: Once, cache: Path, fault: Told) -> None:
    """The only process of a run is killed (SIGKILL) while a hidden test runs.

    Status: passed
    Message: overall 1.000, coverage 1.000
    """
    story = once("alone", lambda story: _kill_the_only_process(story, cache))
    _look_at_controller(story, fault, "ad")
    told = story.told("again")
    assert (told["reviews"], told["revisions"]) == (["a", "d"], ["a", "d"])


def _kill_the_only_process(story: Story, cache: Path) -> None:
    stages = in_every_stage(story, cache, nap=5)
    with stages.started("-k", "a1 or d1") as process:
        wait_for(lambda: stages.hangs(process, "test"))
        process.kill()
        process.communicate()
    done = _resume(stages)
    story.keep("again", done, left=stages.left(), **_counts(stages))


def _look_at_controller(story: Story, fault: Told, letters: str) -> None:
    assert story.statuses("again") == dict.fromkeys(letters, fault.status)
    told = story.told("again")
    fault.assert_told(told["output"])
    assert told["left"] == NOTHING
