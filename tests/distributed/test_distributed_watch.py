"""A process that works for another one ends with it; what runs elsewhere is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.benchmarks import environment

from pytest_crbench.host.processes import own_token
from pytest_crbench.host.signals import must_be_there
from pytest_crbench.plugin.distributed import invocation_of_worker, to_worker
from pytest_crbench.run.assemble import Invocation

_WORKS = """
import sys, time
from pytest_crbench.host.signals import interrupt_without, terminate_as_interrupt

terminate_as_interrupt()
stop = interrupt_without(sys.argv[1])
if sys.argv[2] == "done":
    stop()
print("ready", flush=True)
try:
    time.sleep(float(sys.argv[3]))
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""


def _token(process: subprocess.Popen[Any]) -> str:
    """What the process itself would give."""
    give = f"from pytest_crbench.host import processes; print(processes.started_at({process.pid}))"
    started = subprocess.run([sys.executable, "-c", give], env=environment(), capture_output=True, text=True)
    return f"{own_token().rsplit(':', 2)[0]}:{process.pid}:{started.stdout.strip()}"


@pytest.mark.parametrize(
    ("watch", "seconds", "said"), [("on", "60", "interrupted"), ("done", "1", "went on")]
)
def test_it_is_interrupted_when_its_owner_is_killed(watch: str, seconds: str, said: str) -> None:
    owner = subprocess.Popen(["sleep", "600"])
    token = _token(owner)
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKS, token, watch, seconds],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    must_be_there(token)
    owner.kill()
    # Not collected: nobody may, for as long as the worker lives.
    os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(KeyboardInterrupt):
        must_be_there(token)
    assert worker.communicate(timeout=30)[0] == f"{said}\n"
    owner.wait()


def test_a_controller_that_is_not_seen_from_here_is_not_watched(tmp_path: Any) -> None:
    invocation = Invocation(run=tmp_path, session="s", sandbox="local", secret="x")
    told = to_worker(invocation)
    host, pid, started = told["controller"].rsplit(":", 2)

    def controller(token: str) -> str:
        given = {"crbench": {**told, "controller": token}, "workerid": "gw0"}
        found = invocation_of_worker(SimpleNamespace(workerinput=given))  # type: ignore[arg-type]
        assert found is not None
        return found.controller

    assert controller(told["controller"]) == own_token()
    assert controller(f"another-machine:{pid}:{started}") == ""
    assert controller(f"{host}:{pid}:{int(started) + 1}") == "", "the id is another process's in a container"
    must_be_there("")
