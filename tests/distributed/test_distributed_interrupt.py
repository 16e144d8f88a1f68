"""However a run ends, nothing of it goes on: no process, no container; what was measured is there."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from support import benchmarks
from support.strays import until

if TYPE_CHECKING:
    import subprocess

    from support.benchmarks import Run

    from .conftest import Hanging

pytestmark = [pytest.mark.network, pytest.mark.slow]
WORKERS = {"serial": [], "workers": ["-n", "2"]}


def assert_interrupted(hanging: Hanging, done: Run) -> None:
    """Status 2, the first check's verdict, the second named as not run, nothing left."""
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    results = done.results()
    assert results["run"]["interrupted"] is True
    assert done.statuses() == {"first::a1": "passed"}
    assert len(results["not_run"]) == 1
    hanging.assert_clean()


@pytest.mark.parametrize(
    ("hanging", "number", "how"),
    [
        ("review", signal.SIGINT, "serial"),
        ("review", signal.SIGTERM, "workers"),
        ("revision", signal.SIGTERM, "serial"),
        ("revision", signal.SIGINT, "workers"),
        ("test", signal.SIGINT, "serial"),
        ("test", signal.SIGTERM, "serial"),
        ("test", signal.SIGINT, "workers"),
        ("test", signal.SIGTERM, "workers"),
        ("review", signal.SIGHUP, "serial"),
    ],
    indirect=["hanging"],
)
def test_a_signal_to_the_controller(hanging: Hanging, number: int, how: str) -> None:
    with hanging.started(*WORKERS[how]) as process:
        process.send_signal(number)
        assert_interrupted(hanging, hanging.finish(process))


@pytest.mark.parametrize("how", WORKERS)
@pytest.mark.parametrize("hanging", ["test"], indirect=True)
def test_ctrl_c_twice(hanging: Hanging, how: str) -> None:
    """A terminal sends it to the whole group: to the workers as well."""
    with hanging.started(*WORKERS[how]) as process:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        assert_interrupted(hanging, hanging.finish(process))


@pytest.mark.parametrize("hanging", ["revision"], indirect=True)
def test_standard_input_closed(hanging: Hanging) -> None:
    with hanging.started("-n", "2", closed_stdin=True) as process:
        process.send_signal(signal.SIGINT)
        assert_interrupted(hanging, hanging.finish(process))


@pytest.mark.parametrize("how", WORKERS)
@pytest.mark.parametrize("hanging", ["revision"], indirect=True)
def test_what_a_killed_controller_leaves_ends_at_the_next_start(hanging: Hanging, how: str) -> None:
    with hanging.started(*WORKERS[how]) as process:
        workers = _workers(hanging, process)
        process.kill()
        process.communicate()
        until(lambda: not any(_alive(pid) for pid in workers))
        # Any other run that starts on this machine may end it before ours does.
        again = benchmarks.run(
            hanging.folder,
            hanging.dataset,
            hanging.cache,
            "--crbench-resume",
            "-k",
            "a1",
            *hanging.programs.options,
        )
        assert again.status == 0, again.output
        assert again.statuses() == {"first::a1": "passed"}
        hanging.assert_clean()
    assert hanging.programs.reviews() == ["a", "b"], "what was measured is not made again"


def _workers(hanging: Hanging, process: subprocess.Popen[str]) -> list[int]:
    return sorted({*hanging.programs.parents(), *hanging.programs.parents("revisions")} - {process.pid})


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
