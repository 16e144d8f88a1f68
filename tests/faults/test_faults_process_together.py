"""Runs that share a cache: a cold one, and a warm one while one of them is killed again and again."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import Pull, Run, environment, run, write_dataset
from support.programs import write_programs

if TYPE_CHECKING:
    from pathlib import Path

    from support.faults import Told
    from support.programs import Programs

pytestmark = [pytest.mark.network, pytest.mark.slow]


def test_two_runs_at_once_on_a_cold_cache(tmp_path: Path, fault: Told) -> None:
    """Two runs start at once on a cold cache.

    Environment, trees and workspaces are made once; each run has reviews of its own.

    Status: passed
    Message: waiting for another worker
    """
    dataset = write_dataset(tmp_path / "pulls", [Pull("a", fixable=("a1", "a2")), Pull("b", fixable=("b1",))])

    def start(name: str) -> tuple[Run, Programs]:
        place = tmp_path / name
        place.mkdir()
        (place / "pytest.ini").write_text("[pytest]\n")
        programs = write_programs(place / "programs", seconds=1)
        return run(place, dataset, tmp_path / "cold", *programs.options, "-p", "no:xdist"), programs

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(start, ("one", "two")))
    said = ""
    for done, programs in found:
        assert set(done.statuses().values()) == {fault.status}, done.output
        assert (programs.reviews(), programs.revisions()) == (["a", "b"], ["a", "b"])
        said += "".join(path.read_text() for path in done.runs[-1].glob("logs/**/*.log"))
    assert said.count("building a virtual environment") == 1, said
    fault.assert_told(said)


@pytest.mark.long
def test_a_run_is_killed_again_and_again_beside_another(
    tmp_path: Path, repo_root: Path, cache: Path, fault: Told
) -> None:
    """One of two runs on one cache is killed three times at random, and resumed each time.

    A small share of ``bench/killed_runs.py``, which says what it asserts.

    Status: passed, missed
    Message: "problems": []
    """
    pulls = [Pull(letter, (f"{letter}1",), (f"{letter}2",) if letter in "bd" else ()) for letter in "abcd"]
    dataset = write_dataset(tmp_path / "pulls", pulls)
    for about in dataset.glob("*/instance.toml"):
        about.write_text(about.read_text().replace("Add prices", f"Add prices to {about.parent.name}"))
    cache.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [
            *(sys.executable, str(repo_root / "bench" / "killed_runs.py"), f"--dataset={dataset}"),
            *(f"--cache={cache}", "--kills=3", "--review-seconds=0.5", "--spread=1"),
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    fault.assert_told(done.stdout)
    found = json.loads(done.stdout.splitlines()[-1])
    assert sorted(found["statuses"]) == sorted(fault.statuses)
    assert found["reviews"]["undisturbed"] == found["reviews"]["beside"] == len(pulls)
    assert len(found["kills"]) == 3
