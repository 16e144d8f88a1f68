"""The disk under the cache or under the run directory is full, or cannot be written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.engine_rig import Rig, pulls
from support.mounts import full, read_only, small_disk
from support.stories import own_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from support.benchmarks import Run
    from support.faults import Told
    from support.stories import Story

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.fixture
def box(tmp_path: Path, cache: Path) -> Iterator[Rig]:
    """Two pull requests in the local sandbox, on a cache of the test's own."""
    dataset = pulls(tmp_path / "dataset", {}, ("a1", "b1"))
    rig = Rig(tmp_path / "vendor", dataset, own_cache(tmp_path / "cache", cache), sandbox="local")
    (rig.folder / ".crbench/runs").mkdir(parents=True)
    yield rig
    rig.end()


def run_into(box: Rig, trouble: AbstractContextManager[None], *arguments: str) -> Run:
    """Run until the second pull request is under review, and let the rest of the run meet the trouble."""
    gate = box.gate("b1")
    process = box.start("--crbench-limit=min-free=0", *arguments)
    box.until_reviewing(process, "b1")
    with trouble:
        gate.unlink()
        done = box.finish(process)
    return done


def assert_unwritten(box: Rig, done: Run, fault: Told) -> None:
    """The run ended by itself and told the verdicts; resumed, it measures what is missing and writes all."""
    fault.assert_told(done.output)
    assert "Traceback" not in done.output
    assert "INTERNALERROR" not in done.output
    assert f"1 {fault.status}" in done.output
    assert done.verdict.startswith("crbench: overall")
    assert "results.json" in done.output
    box.assert_recovers("--crbench-limit=min-free=0", reviews=("a1", "b1", "b1"))


def test_the_disk_under_the_cache_is_full(box: Rig, cache: Path, tmp_path: Path, fault: Told) -> None:
    """The disk under the cache gets full in the middle of a run.

    Status: infra_error
    Message: No space left on device
    """
    with small_disk(tmp_path / "disk", "8M") as disk:
        box.cache = own_cache(disk / "cache", cache)
        done = run_into(box, full(disk))
        box.assert_hit(done, fault, "b1")
        assert "--crbench-cache" in done.output
        box.assert_recovers("--crbench-limit=min-free=0")


def test_the_cache_becomes_read_only(box: Rig, fault: Told) -> None:
    """The cache becomes read-only in the middle of a run.

    Status: infra_error
    Message: Read-only file system
    """
    done = run_into(box, read_only(box.cache))
    box.assert_hit(done, fault, "b1")
    box.assert_recovers("--crbench-limit=min-free=0")


def test_the_cache_is_read_only_from_the_start(box: Rig, fault: Told) -> None:
    """The cache is read-only.

    Status: none
    Message: Read-only file system. Choose another one: --crbench-cache
    """
    with read_only(box.cache):
        done = box.run()
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    fault.assert_told(done.output)
    assert not list(box.folder.glob(".crbench/runs/*"))
    assert box.reviews() == []


def test_the_disk_under_the_run_directory_is_full(box: Rig, fault: Told) -> None:
    """The disk under the run directory gets full in the middle of a run.

    Status: infra_error
    Message: No space left on device. Free some space or choose another
    """
    with small_disk(box.folder / ".crbench/runs", "4M") as runs:
        assert_unwritten(box, run_into(box, full(runs)), fault)


def test_the_run_directory_becomes_read_only(box: Rig, fault: Told) -> None:
    """The run directory becomes read-only in the middle of a run.

    Status: infra_error
    Message: Read-only file system
    """
    assert_unwritten(box, run_into(box, read_only(box.folder / ".crbench/runs")), fault)


def test_the_run_directory_is_read_only_from_the_start(box: Rig, fault: Told) -> None:
    """The run directory is read-only.

    Status: none
    Message: Read-only file system. Choose another place (--crbench-run-dir
    """
    with read_only(box.folder / ".crbench/runs"):
        done = box.run()
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    fault.assert_told(done.output)
    assert not list(box.folder.glob(".crbench/runs/*"))
    assert box.reviews() == []


@pytest.fixture
def blocked(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> Story:
    """A run of which no report can be written at its end, and the same run resumed."""
    return once("blocked", lambda story: _block(story, cache))


def _block(story: Story, cache: Path) -> None:
    dataset = pulls(story.folder / "dataset", {}, ("a1", "b1"))
    box = Rig(story.vendor, dataset, own_cache(story.folder / "cache", cache), sandbox="local")
    gate = box.gate("b1")
    process = box.start()
    box.until_reviewing(process, "b1")
    with read_only(story.run / "results.jsonl"):
        for name in ("results.json", "summary.md"):
            (story.run / name).mkdir()
        gate.unlink()
        done = box.finish(process)
        for name in ("results.json", "summary.md"):
            (story.run / name).rmdir()
    story.keep("first", done)
    story.keep("again", box.assert_recovers())


def _look(story: Story, fault: Told, name: str) -> str:
    """What holds of each file: the run ended well, said so, and the file is there after resuming."""
    told = story.told("first")
    assert told["status"] == pytest.ExitCode.OK, told["output"]
    assert "2 passed" in told["output"]
    assert told["output"].strip().splitlines()[-1].startswith("crbench: overall 1.000")
    fault.assert_told(told["output"])
    assert "incomplete in" in told["output"]
    assert set(story.statuses("again").values()) == {fault.status}
    return (story.run / name).read_text()


def test_the_rows_cannot_be_appended(blocked: Story, fault: Told) -> None:
    """Something makes results.jsonl read-only in the middle of a run.

    Status: passed
    Message: results.jsonl: Read-only file system
    """
    assert '"b1"' in _look(blocked, fault, "results.jsonl")


def test_the_results_cannot_be_written(blocked: Story, fault: Told) -> None:
    """Something stands where results.json is to be written.

    Status: passed
    Message: results.json: Is a directory
    """
    assert '"b1"' in _look(blocked, fault, "results.json")


def test_the_summary_cannot_be_written(blocked: Story, fault: Told) -> None:
    """Something stands where summary.md is to be written.

    Status: passed
    Message: summary.md: Is a directory
    """
    assert "100.0" in _look(blocked, fault, "summary.md")
