"""Damaged files of a run and of the cache: all in one story of a run, its damage, and the resumed run."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.benchmarks import Pull, run, write_dataset
from support.programs import write_programs
from support.stories import RESUME, Story, crbench_clean

from pytest_crbench.reports.results import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faults import Told

pytestmark = [pytest.mark.network, pytest.mark.slow]
LETTERS = "abcdef"


@pytest.fixture
def story(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> Story:
    """A whole run on a cache of its own; then everything is damaged at once, and the run is resumed twice."""
    # The cache of the session is not used: its environments are not to be damaged.
    return once("records", _tell)


def _tell(story: Story) -> None:
    pulls = [Pull(letter, fixable=(f"{letter}1",)) for letter in LETTERS]
    dataset = write_dataset(story.folder / "small", pulls)
    programs = write_programs(story.folder / "programs")
    own = story.folder / "cache"
    story.keep("whole", run(story.vendor, dataset, own, *programs.options, "-p", "no:xdist"))
    _damage_run(story.run)
    _damage_cache(own)
    done = run(story.vendor, dataset, own, *RESUME, "-p", "no:xdist")
    rows = len(read_rows(story.run / "results.jsonl"))
    story.keep("first", done, reviews=programs.reviews(), revisions=programs.revisions(), rows=rows)
    _lock(story.run).rmdir()
    story.keep("again", run(story.vendor, dataset, own, *RESUME, "-p", "no:xdist"))
    crbench_clean(own)


def _of(run: Path, letter: str) -> Path:
    return run / "evaluations" / "small" / letter / "review-1"


def _lock(run: Path) -> Path:
    return run / ".locks" / "evaluations~small~f~review-1~checks~f1.lock"


def _damage_run(run: Path) -> None:
    _cut(_of(run, "a") / "review.json")
    (_of(run, "b") / "checks" / "b1.json").write_bytes(b"")
    (_of(run, "c") / "revision.json").write_bytes(b"\xff\xfe\x00 garbage")
    _cut(_of(run, "d") / "revision.patch")
    review = _of(run, "e") / "review.json"
    record = json.loads(review.read_text("utf-8"))
    record["value"]["comments"] = []
    review.write_text(json.dumps(record), "utf-8")
    for letter in "acdf":  # judged again, by controls that are damaged as well
        (_of(run, letter) / "checks" / f"{letter}1.json").unlink()
    lock = _lock(run)
    lock.unlink()
    lock.mkdir()
    with (run / "results.jsonl").open("ab") as stream:
        stream.write(b'{"dataset": "small", "instance": "f", "che')


def _damage_cache(cache: Path) -> None:
    controls = {_control_of(path): path for path in cache.glob("shared/controls/local/*/*.json")}
    _cut(controls["a1"])
    controls["b1"].write_text("[[[[[[[[")
    record = json.loads(controls["c1"].read_text("utf-8"))
    controls["c1"].write_text(json.dumps({**record, "key": "0" * 64}))
    controls["d1"].write_bytes(b"\xff\xfe\x00")
    (tree,) = (path for path in cache.glob("trees/*/tree/shop/a1_.py") if "wrong" in path.read_text("utf-8"))
    tree.chmod(0o644)
    tree.write_text('def a1():\n    return "a1"\n')
    (workspace,) = cache.glob("workspaces/*/tree/shop/a1_.py")
    workspace.write_text('def a1():\n    return "a1"\n')
    (pins,) = cache.glob("pins/*.json")
    record = json.loads(pins.read_text("utf-8"))
    pins.write_text(json.dumps({**record, "pins": ["pytest"]}))
    (environment,) = cache.glob("environments/*")
    (environment / "bin" / "python").unlink()


def _control_of(path: Path) -> str:
    message: str = json.loads(path.read_text("utf-8"))["value"]["message"]
    return next(f"{letter}1" for letter in LETTERS if f"'{letter}1'" in message)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _look(story: Story, letter: str, fault: Told, *, reviews: int, revisions: int) -> None:
    assert story.statuses("first")[letter] == fault.status, story.rows("first")[letter]["reason"]
    assert story.statuses("again") == story.statuses("whole") == dict.fromkeys(LETTERS, "passed")
    told: dict[str, Any] = story.told("first")
    assert told["reviews"].count(letter) == reviews
    assert told["revisions"].count(letter) == revisions


def test_half_a_review(story: Story, fault: Told) -> None:
    """The record of a review is cut off (review.json).

    Status: passed
    Message: review: the recorded result is damaged; it is made again
    """
    _look(story, "a", fault, reviews=2, revisions=1)
    fault.assert_told(story.log("a"))


def test_an_empty_verdict(story: Story, fault: Told) -> None:
    """The record of a verdict is empty (checks/b1.json).

    Status: passed
    Message: b1: the recorded result is damaged; it is made again
    """
    _look(story, "b", fault, reviews=1, revisions=1)
    fault.assert_told(story.log("b"))


def test_a_revision_of_garbage(story: Story, fault: Told) -> None:
    """The record of a revision is garbage, not even UTF-8 (revision.json).

    Status: passed
    Message: revision: the recorded result is damaged; it is made again
    """
    _look(story, "c", fault, reviews=1, revisions=2)
    fault.assert_told(story.log("c"))


def test_half_a_patch(story: Story, fault: Told) -> None:
    """The patch of a recorded revision is cut off (revision.patch).

    Status: passed
    Message: revision 1: finished
    """
    _look(story, "d", fault, reviews=1, revisions=2)
    assert story.log("d").count(fault.message) == 2
    fault.assert_told(story.log("d"))


def test_a_review_that_was_changed(story: Story, fault: Told) -> None:
    """The record of a review holds other comments than were written (review.json).

    Status: passed
    Message: review: the recorded result is damaged; it is made again
    """
    _look(story, "e", fault, reviews=2, revisions=1)
    fault.assert_told(story.log("e"))


def test_a_folder_for_a_lock(story: Story, fault: Told) -> None:
    """A folder lies where a lock file should be.

    Status: infra_error
    Message: Remove it: a lock is a file
    """
    _look(story, "f", fault, reviews=1, revisions=1)
    fault.assert_told(story.rows("first")["f"]["reason"])


def test_a_torn_line(story: Story, fault: Told) -> None:
    """The last line of results.jsonl is torn.

    Status: passed
    Message: 5 of 6 measured (1 infra_error)
    """
    assert story.statuses("first")["a"] == fault.status
    fault.assert_told(story.told("first")["output"])
    assert story.told("first")["rows"] == 2 * len(LETTERS), "the torn line is gone, every other one is there"


def test_controls_are_damaged(story: Story, fault: Told) -> None:
    """What the cache knows of tests at head is cut off, garbage, of another check, or not UTF-8.

    Status: passed
    Message: the recorded result is damaged; it is made again
    """
    for letter in "abcd":
        assert story.statuses("first")[letter] == fault.status
        record = next(
            path
            for path in (story.folder / "cache").glob("shared/controls/local/*/*.json")
            if _control_of(path) == f"{letter}1"
        )
        assert json.loads(record.read_text("utf-8"))["key"] == record.stem
    assert story.log("b").count(fault.message) == 2, "the verdict, and the control"
    fault.assert_told(story.log("b"))


def test_a_tree_in_the_cache_was_changed(story: Story, fault: Told) -> None:
    """A file of a tree in the cache was changed, so that head has what the review asks for.

    Status: passed
    Message: the cached tree was changed; it is made again
    """
    assert story.statuses("first")["a"] == fault.status
    fault.assert_told(story.log("a"))


def test_a_workspace_in_the_cache_was_changed(story: Story, fault: Told) -> None:
    """A file of the repository that reviewers are shown was changed in the cache.

    Status: passed
    Message: workspace: the cached one was changed; it is made again
    """
    assert story.statuses("first")["a"] == fault.status
    fault.assert_told(story.log("a"))
    (workspace,) = (story.folder / "cache").glob("workspaces/*/tree/shop/a1_.py")
    assert "wrong" in workspace.read_text("utf-8")


def test_an_environment_without_its_interpreter(story: Story, fault: Told) -> None:
    """The interpreter of a virtual environment in the cache is gone.

    Status: passed
    Message: was damaged; it is made again
    """
    assert story.statuses("first")["b"] == fault.status
    fault.assert_told((story.run / "logs" / "sandbox.log").read_text())


def test_pins_that_were_changed(story: Story, fault: Told) -> None:
    """The resolved pins in the cache are not what was written.

    Status: passed
    Message: resolving the test runner
    """
    assert story.statuses("first")["b"] == fault.status
    said = (story.run / "logs" / "sandbox.log").read_text()
    assert said.count(fault.message) == 2
    fault.assert_told(said)
    before = {row["environment"] for row in story.told("whole")["results"]["verdicts"]}
    assert {row["environment"] for row in story.told("again")["results"]["verdicts"]} == before


@pytest.mark.parametrize("damage", ["gone", "half"])
def test_no_record_of_the_run(story: Story, tmp_path: Path, damage: str, fault: Told) -> None:
    """The record of the run itself (run.json) is gone or cut off: it cannot be resumed.

    Status: none
    Message: no run // start a new run
    """
    vendor = tmp_path / "vendor"
    shutil.copytree(story.vendor, vendor)
    (record,) = vendor.glob(".crbench/runs/*/run.json")
    if damage == "gone":
        record.unlink()
    else:
        _cut(record)
    name = record.parent.name
    done = run(vendor, story.folder / "small", story.folder / "cache", f"--crbench-resume={name}")
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    fault.assert_told(done.output)
    assert "Traceback" not in done.output
