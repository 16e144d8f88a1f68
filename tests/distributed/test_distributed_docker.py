"""The same with containers: an interrupted run leaves none of its own, in whichever stage it was."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from support import benchmarks
from support.openai_server import OpenAIServer, run
from support.strays import containers, until

if TYPE_CHECKING:
    from .conftest import Hanging

pytestmark = [pytest.mark.network, pytest.mark.docker, pytest.mark.slow]
BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")
DOCKER = ("--crbench-sandbox=docker", f"--crbench-base-image={BASE_IMAGE}")
WORKERS = {"serial": [], "workers": ["-n", "2"]}


def assert_interrupted(hanging: Hanging, done: benchmarks.Run, first: str) -> None:
    """Status 2, what was measured is there, no container and no process is left."""
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    assert done.results()["run"]["interrupted"] is True
    assert done.statuses() == {"first::a1": first}
    hanging.assert_clean()


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (signal.SIGINT, "serial"),
        (signal.SIGTERM, "serial"),
        (signal.SIGINT, "workers"),
        (signal.SIGTERM, "workers"),
    ],
)
@pytest.mark.parametrize("hanging", ["test"], indirect=True)
def test_during_a_hidden_test(hanging: Hanging, number: int, how: str) -> None:
    hanging.docker = True
    with hanging.started(*DOCKER, *WORKERS[how]) as process:
        assert containers(hanging.programs.session()), (
            "there is nothing to clean up: the test would show nothing"
        )
        process.send_signal(number)
        assert_interrupted(hanging, hanging.finish(process), "passed")


@pytest.mark.parametrize(("number", "how"), [(signal.SIGINT, "serial"), (signal.SIGTERM, "workers")])
@pytest.mark.parametrize("hanging", ["llm"], indirect=True)
def test_during_a_command_of_the_llm_agent(hanging: Hanging, number: int, how: str) -> None:
    """The first pull request's review is clean, so that only the second calls the model."""
    hanging.docker = True
    with OpenAIServer([run(f"setsid sleep {hanging.nap} & sleep {hanging.nap}")], forever=True) as server:
        model = ["--crbench-agent=llm", "--crbench-model=scripted", f"--crbench-base-url={server.base_url}"]
        with hanging.started(*model, *DOCKER, *WORKERS[how]) as process:
            assert containers(hanging.programs.session())
            process.send_signal(number)
            assert_interrupted(hanging, hanging.finish(process), "missed")


@pytest.mark.parametrize("hanging", ["test"], indirect=True)
def test_a_killed_controllers_container_goes_at_the_next_start(hanging: Hanging) -> None:
    hanging.docker = True
    with hanging.started(*DOCKER) as process:
        process.kill()
        process.communicate()
        session = hanging.programs.session()
        # Any other run that starts on this machine may remove it before ours does.
        again = benchmarks.run(
            hanging.folder, hanging.dataset, hanging.cache, "--crbench-resume", "-k", "a1", *DOCKER
        )
        assert again.status == 0, again.output
        assert containers(session) == []
        hanging.assert_clean()


@pytest.mark.parametrize("hanging", ["test"], indirect=True)
def test_a_killed_workers_container_goes_while_the_others_work(hanging: Hanging) -> None:
    """The worker that hangs is the owner that the container's label names."""
    hanging.docker = True
    with hanging.started(*DOCKER, "-n", "2") as process:
        (container,) = containers(hanging.programs.session())
        os.kill(int(container["Labels"]["crbench.owner"].split(":")[1]), signal.SIGKILL)
        gone = lambda: container["Id"] not in {c["Id"] for c in containers(hanging.programs.session())}  # noqa: E731
        until(gone)
        output, _ = process.communicate(timeout=120)
        done = benchmarks.Run(process.returncode, output, hanging.folder)
        assert done.statuses() == {"first::a1": "passed", "second::b1": "infra_error"}, output
        hanging.assert_clean()
