"""Runs that hang in one stage, and the signals that end them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import Pull, Run, command, environment, write_dataset
from support.programs import Programs, napping_test, write_programs
from support.strays import containers, processes, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Hanging:
    """Two pull requests: the check of the first is measured, the second hangs in one stage for ever.

    Whatever hangs there sleeps for ``nap`` seconds, a number that occurs nowhere else on this machine.
    """

    folder: Path
    dataset: Path
    cache: Path
    programs: Programs
    nap: str
    docker: bool = False

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start a run and wait until it hangs and the first check is recorded; at the end nothing is left."""
        whole = command(self.dataset, self.cache, *self.programs.options, *arguments)
        process = subprocess.Popen(
            whole,
            cwd=self.folder,
            env={**environment(), "CRBENCH_API_KEY": "sk-for-the-scripted-server"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            # Under nohup the signal is ignored, also by all that is started.
            preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),
        )
        try:
            until(lambda: process.poll() is not None or (self.measured() and self.hangs()))
            assert process.poll() is None, process.communicate()[0]
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            for pid in self.strays():
                os.kill(pid, signal.SIGKILL)

    def measured(self) -> bool:
        """Whether the controller has the verdict on the first pull request's check."""
        return any('"a1"' in path.read_text() for path in self.folder.glob(".crbench/runs/*/results.jsonl"))

    def hangs(self) -> bool:
        """Whether both processes that sleep are there (of containers: on this machine, too)."""
        return len(processes(f"sleep {self.nap}")) >= 2

    def strays(self) -> list[int]:
        """Processes of the run that still run, its controller included."""
        named = processes(f"sleep {self.nap}")
        session = self.programs.reviews() and self.programs.session()
        return [*named, *(processes(f"TASK_SESSION={session}") if session else [])]

    def finish(self, process: subprocess.Popen[str]) -> Run:
        """Wait for the end of an interrupted run."""
        output, _ = process.communicate(timeout=120)
        return Run(process.returncode, output, self.folder)

    def assert_clean(self) -> None:
        """No process and no container of the run is left."""
        assert self.strays() == []
        if self.docker:
            assert containers(self.programs.session()) == []
        sandboxes = self.cache / "sandboxes"
        assert not sandboxes.exists() or list(sandboxes.iterdir()) == []


@pytest.fixture
def hanging(tmp_path: Path, folder: Path, cache: Path, request: pytest.FixtureRequest) -> Hanging:
    """A run that hangs in the stage that ``request.param`` names (llm: a command of its model)."""
    stage = request.param
    nap = f"6{random.randrange(10**9):09d}"
    tests = {"b1": napping_test("b1", nap)} if stage == "test" else {}
    dataset = write_dataset(
        tmp_path / "hanging", [Pull("first", fixable=("a1",)), Pull("second", fixable=("b1",), tests=tests)]
    )
    quiet = "a" if stage == "llm" else ""
    programs = write_programs(tmp_path / "programs", hang=stage, instance="b", nap=nap, quiet=quiet)
    # A cache of its own for what is asserted about it; the environments are shared.
    own = tmp_path / "cache"
    own.mkdir()
    for name in ("environments", "pins", "locks"):
        (cache / name).mkdir(parents=True, exist_ok=True)
        (own / name).symlink_to(cache / name)
    return Hanging(folder, dataset, own, programs, nap)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three checks on two pull requests."""
    return write_dataset(
        tmp_path / "mixed",
        [Pull("first", fixable=("price",), hard=("tax",)), Pull("second", fixable=("name",))],
    )
