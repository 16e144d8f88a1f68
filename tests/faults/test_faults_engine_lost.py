"""The whole engine goes away, hangs, comes back, or was never there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.strays import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.engine_rig import Rig
    from support.engines import Engine
    from support.faults import Told

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]


def test_the_engine_is_stopped_and_started_in_the_middle_of_a_run(
    rig: Callable[..., Rig], own_engine: Engine, fault: Told
) -> None:
    """The engine is stopped in the middle of a run, as a service manager does, and started again.

    What comes after the restart is measured in the same run.

    Status: infra_error
    Message: the Docker engine does not answer // the sandbox's container has ended
    """
    box = rig(checks=("a1", "b1", "c1"))
    gate = box.gate("c1")
    process = box.start()
    box.until_it_naps(process)
    own_engine.stop()
    until(lambda: process.poll() is not None or "c1" in box.reviews())
    own_engine.start()
    gate.unlink()
    box.assert_hit(box.finish(process), fault, "b1")
    box.assert_recovers()


def test_the_engine_is_killed_in_the_middle_of_a_command(
    rig: Callable[..., Rig], own_engine: Engine, fault: Told
) -> None:
    """The engine is killed while a hidden test runs, and its container lives on.

    The next run on the engine that is started again removes the container.

    Status: infra_error
    Message: the Docker engine does not answer // the sandbox's container has ended
    """
    box = rig()
    process = box.start()
    box.until_it_naps(process)
    own_engine.stop(kill=True)
    try:
        done = box.finish(process)
    finally:
        own_engine.start()
    box.assert_hit(done, fault, "b1")
    assert "run `crbench clean` later" in done.output
    assert box.containers()
    box.assert_recovers()


def test_the_engine_hangs(rig: Callable[..., Rig], own_engine: Engine, fault: Told) -> None:
    """The engine hangs: it takes connections and answers nothing.

    Status: infra_error
    Message: the Docker engine does not answer
    """
    box = rig(checks=("a1", "b1", "c1"))
    process = box.start(env={"DOCKER_CLIENT_TIMEOUT": "2"})
    box.until_it_naps(process)
    with own_engine.hanging():
        done = box.finish(process, timeout=60)
    box.assert_hit(done, fault, "b1", "c1")
    box.assert_recovers()


def test_no_engine_answers_where_docker_was_asked_for(
    rig: Callable[..., Rig], tmp_path: Path, fault: Told
) -> None:
    """No engine answers, and --crbench-sandbox=docker was given.

    Status: none
    Message: the socket does not exist. Install and start a Docker engine, or correct DOCKER_HOST, or use
        --crbench-sandbox=local
    """
    box = rig(checks=("a1",))
    done = box.run(env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}, trouble=False)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    fault.assert_told(done.output)
    assert not list(box.folder.glob(".crbench/runs/*"))


def test_no_engine_answers_where_any_sandbox_will_do(
    rig: Callable[..., Rig], tmp_path: Path, fault: Told
) -> None:
    """No engine answers, and the sandbox is chosen automatically.

    The run takes the local sandbox and says so; resumed when an engine is there, it keeps to that.

    Status: passed
    Message: sandbox local
    """
    box = replace(rig(checks=("a1",)), sandbox="auto")
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = box.run(env=nowhere, trouble=False)
    box.assert_hit(done, fault, "a1")
    assert done.results()["run"]["sandbox"]["name"] == "local"
    kept = box.kept()
    again = box.run("--crbench-resume", trouble=False)
    assert again.statuses() == {"first::a1": "passed"}, again.output
    assert box.kept() == kept


def test_the_engine_of_an_automatic_choice_is_gone_when_the_run_is_resumed(
    rig: Callable[..., Rig], tmp_path: Path, fault: Told
) -> None:
    """A run that chose docker by itself is resumed where no engine answers.

    It does not go on in another sandbox.

    Status: none
    Message: no Docker engine answers
    """
    box = replace(rig(), sandbox="auto")
    process = box.start()
    box.until_it_naps(process)
    box.engine.docker("kill", *box.containers())
    assert box.finish(process).statuses() == {"first::a1": "passed", "second::b1": "infra_error"}
    lost = box.run("--crbench-resume", env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert lost.status == pytest.ExitCode.USAGE_ERROR
    fault.assert_told(lost.output)
    box.assert_recovers()


def test_the_engine_is_restarted_between_two_runs(
    rig: Callable[..., Rig], own_engine: Engine, fault: Told
) -> None:
    """A run is killed, and the engine is restarted before it is resumed.

    What the first run left in the engine is removed by the second.

    Status: passed
    Message: coverage 2 of 2 measured
    """
    box = rig()
    process = box.start()
    box.until_it_naps(process)
    process.kill()
    process.communicate()
    own_engine.restart()
    assert box.containers()
    fault.assert_told(box.assert_recovers().output)


def test_a_run_is_resumed_on_another_engine(rig: Callable[..., Rig], fault: Told) -> None:
    """A run is finished on another engine than it was started on, with the same cache.

    What the cache says of images is not taken for what the other engine has.

    Status: passed
    Message: coverage 2 of 2 measured
    """
    box = rig()
    process = box.start()
    box.until_it_naps(process)
    box.engine.docker("kill", *box.containers())
    assert box.finish(process).statuses()["second::b1"] == "infra_error"
    box.assert_clean()
    box.engine = None  # the shared one
    fault.assert_told(box.assert_recovers().output)
