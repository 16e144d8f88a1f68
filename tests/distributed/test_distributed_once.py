"""One review and one revision per instance, whoever runs the checks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from support import benchmarks
from support.benchmarks import Pull, Run, write_dataset
from support.programs import Programs, write_programs

if TYPE_CHECKING:
    from pathlib import Path

DISTRIBUTIONS = {
    "serial": [],
    "load": ["-n", "2", "--dist", "load"],
    "loadscope": ["-n", "2", "--dist", "loadscope"],
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


@pytest.mark.network
def test_two_invocations_share_what_is_content_and_not_what_is_said(tmp_path: Path, several: Path) -> None:
    """Each run has reviews of its own; environment, trees and workspaces of a cold cache are made once."""
    cache = tmp_path / "cold"
    found: dict[str, tuple[Run, Programs]] = {}

    def start(name: str) -> None:
        place = tmp_path / name
        place.mkdir()
        (place / "pytest.ini").write_text("[pytest]\n")
        programs = write_programs(place / "programs", seconds=2)
        found[name] = benchmarks.run(place, several, cache, *programs.options), programs

    threads = [threading.Thread(target=start, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for done, programs in found.values():
        assert done.status == 0, done.output
        assert set(done.statuses().values()) == {"passed"}
        assert programs.reviews() == ["a", "b"]
        assert programs.revisions() == ["a", "b"]
    said = "".join(logs(done.runs[-1]) for done, _ in found.values())
    for done, _ in found.values():
        said += (done.runs[-1] / "logs" / "sandbox.log").read_text()
    assert said.count("building a virtual environment") == 1, said
    assert "waiting for another worker" in said, said
