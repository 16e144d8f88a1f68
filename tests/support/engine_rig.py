"""Runs whose second pull request gets into trouble, on a Docker engine that a test may break.

The pull requests have one check each: ``a1``, ``b1`` (and ``c1``), and all pass in an undisturbed run. The
hidden test of ``b1`` knows whether trouble is wanted by the lifetime of its container, which follows from an
option that plays no part in any key: so the same run can be resumed without it.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.sandbox.clean import clean

from .benchmarks import Pull, Run, command, environment, write_dataset
from .small_image import small_image
from .strays import processes, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .engines import Engine
    from .faults import Told

#: Seconds of an agent's time limit that make trouble, and the lifetime that a container has then.
_TROUBLE, _LIFETIME = 777, 2154
_TEST = """\
import os, subprocess, sys, time
from shop.{check}_ import {check}

TROUBLE = b"{lifetime}" in open("/proc/1/cmdline", "rb").read()
REVISED = {check}() == "{check}"


def trouble():
{trouble}


def test_{check}():
    if TROUBLE and {when}:
        trouble()
    assert {check}() == "{check}"
"""
_REVIEWER = """\
check=$(sed -n 's:^+++ b/shop/\\([a-z0-9]*\\)_.py$:\\1:p' "$1")
echo "$check" >> {folder}/reviews
while [ -e {folder}/gate-$check ]; do sleep 0.05; done
printf '{{"comments": [{{"path": "shop/%s_.py", "lines": [2, 2], "body": "Wrong.", ' "$check"
printf '"suggestion": "    return \\\\"%s\\\\""}}]}}' "$check"
"""


def prepared_images(cache: Path) -> list[str]:
    """Build the environment of these pull requests in the shared engine; the names of its images."""
    from pytest_crbench.core.model import Environment
    from pytest_crbench.sandbox.choose import choose

    settings = SandboxSettings(cache=cache, session=secrets.token_hex(8), base_image=small_image(), log=print)
    backend = choose("docker", settings_from_environment(settings))
    return [small_image(), backend.environment(Environment(python=">=3.8")).handle.tag]


@dataclass(frozen=True)
class Trouble:
    """What a hidden test does where trouble is wanted: statements, run if ``when`` holds; what it wants."""

    does: str = ""
    when: str = "REVISED"
    requires: tuple[str, ...] = ()


def troubled_test(check: str, trouble: Trouble) -> str:
    """A hidden test that gets into trouble."""
    body = "\n".join(f"    {line}" for line in trouble.does.splitlines())
    return _TEST.format(check=check, lifetime=_LIFETIME, trouble=body, when=trouble.when)


def instance_of(check: str) -> str:
    """The id of a check's pull request: in the order of the checks, which is that of a serial run."""
    return {"a1": "first", "b1": "second", "c1": "third"}.get(check, f"with-{check}")


def pulls(folder: Path, troubles: Mapping[str, Trouble], checks: Iterable[str]) -> Path:
    """Write the dataset: one pull request for each of ``checks``, some with troubles."""
    made = []
    for check in checks:
        trouble = troubles.get(check, Trouble())
        tests = {check: troubled_test(check, trouble)} if trouble.does else {}
        made.append(Pull(instance_of(check), (check,), tests=tests, requirements=trouble.requires))
    return write_dataset(folder, made)


@dataclass
class Rig:
    """One vendor's folder, a dataset and an engine."""

    folder: Path
    dataset: Path
    cache: Path
    engine: Engine | None = None
    nap: str = ""
    base_image: str = ""
    sandbox: str = "docker"
    checks: tuple[str, ...] = ("a1", "b1")
    #: Measurements that the faults make, which resuming does not repeat.
    kept_as: dict[str, str] = field(default_factory=dict)
    environ_too: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        (self.folder / "reviewer.sh").write_text(_REVIEWER.format(folder=self.folder))

    @property
    def undisturbed(self) -> dict[str, str]:
        """What a run without the fault gives."""
        return {f"{instance_of(check)}::{check}": self.kept_as.get(check, "passed") for check in self.checks}

    @property
    def environ(self) -> dict[str, str]:
        """Variables of the runs."""
        docker = {"DOCKER_HOST": self.engine.url} if self.engine else {}
        return {
            **environment(),
            **docker,
            **self.environ_too,
            "CRBENCH_API_KEY": "sk-for-the-scripted-server",
        }

    def argv(self, *arguments: str, trouble: bool = True) -> list[str]:
        """The command line of a run; what ``arguments`` give comes last and wins."""
        given = [f"--crbench-reviewer=cmd:sh {self.folder}/reviewer.sh {{diff}}"]
        given += [
            "--crbench-agent=suggestions",
            f"--crbench-sandbox={self.sandbox}",
            "--crbench-limit=test-timeout=90",
        ]
        if self.base_image:
            given += [f"--crbench-base-image={self.base_image}"]
        given += [f"--crbench-agent-timeout={_TROUBLE if trouble else 600}"]
        return command(self.dataset, self.cache, *given, *arguments)

    def start(
        self, *arguments: str, trouble: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a run."""
        process = subprocess.Popen(
            self.argv(*arguments, trouble=trouble),
            cwd=self.folder,
            env={**self.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str, trouble: bool = True, env: dict[str, str] | None = None) -> Run:
        """Run to the end."""
        return self.finish(self.start(*arguments, trouble=trouble, env=env))

    def finish(self, process: subprocess.Popen[str], timeout: float = 300) -> Run:
        """Wait for a run's own end."""
        output, _ = process.communicate(timeout=timeout)
        return Run(process.returncode, output, self.folder)

    def until_it_naps(self, process: subprocess.Popen[str], nap: str = "") -> list[int]:
        """Wait until the command that naps runs and the first check is recorded; its process ids."""
        command = f"sleep {nap or self.nap}"
        until(
            lambda: (
                process.poll() is not None
                or (processes(command) and (self.checks[0] != "a1" or self.measured("a1")))
            ),
            300,
        )
        assert process.poll() is None, process.communicate()[0]
        return processes(command)

    def until_reviewing(self, process: subprocess.Popen[str], check: str, after: str = "a1") -> None:
        """Wait until the reviewer is at the pull request of ``check``, and ``after`` is recorded."""
        until(
            lambda: process.poll() is not None or (self.measured(after) and check in self.reviews()),
            300,
        )

    def measured(self, check: str) -> bool:
        """Whether the controller has a verdict on a check."""
        return any(f'"{check}"' in p.read_text() for p in self.folder.glob(".crbench/runs/*/results.jsonl"))

    def gate(self, check: str) -> Path:
        """Let the review of a check's pull request wait until the returned file is removed."""
        path = self.folder / f"gate-{check}"
        path.touch()
        return path

    def containers(self) -> list[str]:
        """Ids of our containers in the engine, running or not."""
        assert self.engine is not None
        return self.engine.docker("ps", "-aq", "--no-trunc", "--filter", "label=crbench=1").stdout.split()

    def reviews(self) -> list[str]:
        """Which checks' pull requests were reviewed, once for each start of the reviewer."""
        path = self.folder / "reviews"
        return sorted(path.read_text().split()) if path.exists() else []

    def kept(self) -> dict[Path, bytes]:
        """The store's records that hold a result, of the latest run."""
        run = sorted(self.folder.glob(".crbench/runs/*"), key=lambda p: p.stat().st_mtime)[-1]
        found = {path: path.read_bytes() for path in (run / "evaluations").rglob("*.json")}
        return {path: data for path, data in found.items() if "value" in json.loads(data)}

    def assert_hit(self, done: Run, fault: Told, *hit: str, output: str | None = None) -> None:
        """The checks ``hit`` have the fault's status, the others passed, and its message is told."""
        bad = {f"{instance_of(check)}::{check}": fault.status for check in hit}
        assert done.statuses() == {**self.undisturbed, **bad}, done.output
        fault.assert_told(done.output if output is None else output)

    def assert_recovers(self, *arguments: str, reviews: tuple[str, ...] | None = None) -> Run:
        """Resumed without the fault, all is as in an undisturbed run; what was measured is not repeated."""
        before = self.kept()
        done = self.run("--crbench-resume", "--crbench-rerun-errors", *arguments, trouble=False)
        assert done.statuses() == self.undisturbed, done.output
        after = self.kept()
        assert {path: after.get(path) for path in before} == before
        assert self.reviews() == sorted(reviews or self.checks)
        self.assert_clean()
        return done

    def assert_clean(self, *, images: bool = False) -> None:
        """After ``crbench clean`` no container, folder or process of ours is left, and if asked no image."""
        if images:
            argv = [sys.executable, "-m", "pytest_crbench.cli", "clean", f"--cache={self.cache}"]
            said = subprocess.run(argv, check=True, capture_output=True, text=True, env=self.environ)
            assert "in use" not in said.stdout
        else:
            with mock.patch.dict(os.environ, self.environ):
                cleaned = clean(SandboxSettings(self.cache, session=""), images=False)
            # In the shared engine others may have something.
            assert self.engine is None or (cleaned.in_use, cleaned.notes) == (0, ())
        if self.engine is None:
            listed = ["docker", "ps", "-a", "--filter=label=crbench=1", '--format={{.Label "crbench.owner"}}']
            owners = subprocess.run(listed, check=False, capture_output=True, text=True).stdout
            assert not [process.pid for process in self.started if f":{process.pid}:" in owners]
        else:
            assert self.containers() == []
            if images:
                assert self.engine.docker("images", "-q", "--filter", "label=crbench=1").stdout == ""
        sandboxes = self.cache / "sandboxes"
        assert not sandboxes.is_dir() or not list(sandboxes.iterdir())
        assert not self.nap or processes(f"sleep {self.nap}") == []

    def end(self) -> None:
        """End what still runs, so that a failed test disturbs no other."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
