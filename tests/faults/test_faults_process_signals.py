"""Signals that end a run in order, in all of its stages at once, and one that only holds it up."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import Pull, run, write_dataset
from support.programs import write_programs
from support.stages import NOTHING, STAGES, Stages, in_every_stage, wait_for
from support.stories import RESUME, Story, own_cache
from support.strays import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.benchmarks import Run
    from support.faults import Told

pytestmark = [pytest.mark.network, pytest.mark.slow]


def _look(stages: Stages, done: Run, fault: Told) -> None:
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    assert done.statuses() == {"a": fault.status} or done.statuses() == {"a::a1": fault.status}
    assert len(done.results()["not_run"]) == 3
    assert done.results()["run"]["interrupted"] is True
    fault.assert_told(done.output)
    assert stages.left() == NOTHING


def test_sigterm(tmp_path: Path, cache: Path, fault: Told) -> None:
    """The controller is told to end (SIGTERM) while its workers review, revise and test.

    Status: passed
    Message: 1 of 4 measured (3 not run)
    """
    stages = in_every_stage(Story(tmp_path), cache, nap=100)
    with stages.started("-n", "4") as process:
        wait_for(lambda: stages.hangs(process, *STAGES))
        process.send_signal(signal.SIGTERM)
        _look(stages, stages.finish(process), fault)
    stages.heal()
    again = run(stages.story.vendor, stages.dataset, stages.cache, *RESUME, "-k", "not d1")
    assert again.statuses() == {f"{letter}::{letter}1": "passed" for letter in "abc"}, again.output
    assert stages.programs.reviews() == ["a", "b", "b", "c", "d"]
    assert stages.programs.revisions() == ["a", "b", "c", "c", "d"]


def test_ctrl_c_twice(tmp_path: Path, cache: Path, fault: Told) -> None:
    """Ctrl-C is pressed twice in a terminal that is then closed: controller and workers get it at once.

    Status: passed
    Message: 1 of 4 measured (3 not run)
    """
    stages = in_every_stage(Story(tmp_path), cache, nap=100)
    with stages.started("-n", "4", closed_stdin=True) as process:
        wait_for(lambda: stages.hangs(process, *STAGES))
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        _look(stages, stages.finish(process), fault)


def test_a_worker_is_stopped_for_a_while(tmp_path: Path, cache: Path, fault: Told) -> None:
    """A worker is stopped (SIGSTOP) while it holds a lock that another waits for, and goes on later.

    Status: passed
    Message: review: waiting for another worker
    """
    story = Story(tmp_path)
    dataset = write_dataset(tmp_path / "small", [Pull("a", fixable=("a1", "a2"))])
    programs = write_programs(tmp_path / "programs", seconds=1)
    own = own_cache(tmp_path / "cache", cache)
    stages = Stages(story, dataset, own, programs, {})
    (tmp_path / "tmp").mkdir()
    with stages.started("-n", "2") as process:
        until(programs.reviews)
        (worker,) = programs.parents()
        os.kill(worker, signal.SIGSTOP)
        try:
            wait_for(lambda: "waiting for another worker" in _log(story))
            # Many times longer than a lock is polled, and than the reviewer takes.
            time.sleep(2)
            assert programs.reviews() == ["a"]
        finally:
            os.kill(worker, signal.SIGCONT)
        done = stages.finish(process)
    assert done.statuses() == dict.fromkeys(("a::a1", "a::a2"), fault.status), done.output
    fault.assert_told(_log(story))
    assert (programs.reviews(), programs.revisions()) == (["a"], ["a"])
    assert stages.left() == NOTHING


def _log(story: Story) -> str:
    return "".join(path.read_text() for path in story.vendor.glob(".crbench/runs/*/logs/small/a.log"))
