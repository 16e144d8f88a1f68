"""A worker that is killed loses at most the check it was on; a resumed run makes only what is missing."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from support import benchmarks
from support.benchmarks import Pull, Run, command, environment, write_dataset
from support.programs import write_programs
from support.strays import processes, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.network, pytest.mark.slow]
CHECKS = {"first::a1", "first::a2", "second::b1", "second::b2", "third::c1", "third::c2"}


@pytest.mark.parametrize("distribution", ["load", "worksteal"])
def test_a_killed_worker(tmp_path: Path, folder: Path, cache: Path, distribution: str) -> None:
    """It dies while it reviews the second pull request; what it had started dies with it."""
    dataset = write_dataset(
        tmp_path / "three",
        [
            Pull("first", fixable=("a1", "a2")),
            Pull("second", fixable=("b1", "b2")),
            Pull("third", fixable=("c1", "c2")),
        ],
    )
    nap = "7654321"
    programs = write_programs(tmp_path / "programs", hang="review", instance="b", nap=nap)
    whole = command(dataset, cache, *programs.options, "-n", "2", "--dist", distribution)
    process = subprocess.Popen(
        whole,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        until(lambda: process.poll() is not None or len(processes(f"sleep {nap}")) >= 2)
        assert process.poll() is None, process.communicate()[0]
        worker = next(
            p for name, p in zip(_names(programs.log), programs.parents(), strict=True) if name == "b"
        )
        # The reviewer that runs next on it has nothing to wait for.
        write_programs(tmp_path / "programs")
        os.kill(worker, signal.SIGKILL)
        output, _ = process.communicate(timeout=240)
    finally:
        left = processes(f"sleep {nap}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    done = Run(process.returncode, output, folder)
    assert left == [], "the reviewer of the killed worker went on"
    statuses = done.statuses()
    lost = {check for check, status in statuses.items() if status != "passed"}
    assert set(statuses) == CHECKS, output
    assert len(lost) == 1, output
    (check,) = lost
    assert check.startswith("second::"), lost
    assert statuses[check] == "infra_error"
    # Twice for the one whose reviewer was killed with its worker.
    assert programs.reviews() == ["a", "b", "b", "c"]
    assert programs.revisions() == ["a", "b", "c"]

    before = _records(done.runs[-1])
    again = benchmarks.run(folder, dataset, cache, "--crbench-resume", "-n", "2", "--dist", distribution)
    assert again.status == 0, again.output
    assert len(again.runs) == 1
    assert again.statuses() == dict.fromkeys(CHECKS, "passed")
    assert programs.reviews() == ["a", "b", "b", "c"], "a review was made again"
    assert programs.revisions() == ["a", "b", "c"], "a revision was made again"
    after = _records(again.runs[-1])
    made = {name for name in after if after[name] != before.get(name)}
    assert [name.rsplit("/", 1)[1] for name in made] == [f"{check.split('::')[1]}.json"]


def _names(log: Path) -> list[str]:
    return [line[0] for line in (log / "reviews").read_text().splitlines()]


def _records(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.glob("evaluations/**/*.json")}
