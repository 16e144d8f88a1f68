"""One review and one revision per instance, whoever runs the checks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from support import benchmarks
from support.benchmarks import Pull, write_dataset
from support.programs import Programs, write_programs

if TYPE_CHECKING:
    from pathlib import Path

DISTRIBUTIONS = {
    "serial": [],
    "load": ["-n", "2", "--dist", "load"],
    # Workers need not be what `-n` makes of this interpreter.
    "loadscope": ["--tx", f"2*popen//python={sys.executable}", "--dist", "loadscope"],
    "worksteal": ["-n", "2", "--dist", "worksteal"],
}


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """Two pull requests; whichever way the checks are cut in two halves, both halves hold the first one."""
    return write_dataset(
        tmp_path / "several",
        [Pull("first", fixable=("a1", "a2", "a3", "a4")), Pull("second", fixable=("b1", "b2"))],
    )


@pytest.fixture
def slow(tmp_path: Path) -> Programs:
    """A reviewer that takes two seconds."""
    return write_programs(tmp_path / "programs", seconds=2)


def logs(run: Path) -> str:
    """All instance logs of a run, each line after the name of its file."""
    return "".join(
        f"{path.stem}: {line}\n"
        for path in sorted((run / "logs" / "small").glob("*.log"))
        for line in path.read_text().splitlines()
    )


@pytest.mark.network
@pytest.mark.parametrize("how", DISTRIBUTIONS)
def test_one_review_and_one_revision_per_instance(
    folder: Path, several: Path, cache: Path, slow: Programs, how: str
) -> None:
    done = benchmarks.run(folder, several, cache, *slow.options, *DISTRIBUTIONS[how])
    assert done.status == 0, done.output
    assert done.outcomes() == {"passed": 6}
    assert slow.reviews() == ["a", "b"]
    assert slow.revisions() == ["a", "b"]
    assert set(done.statuses().values()) == {"passed"}
    # With --dist=loadscope a worker has an instance to itself: there is nothing to wait for.
    if how in ("load", "worksteal"):
        assert "review: waiting for another worker" in logs(done.runs[-1]), logs(done.runs[-1])
