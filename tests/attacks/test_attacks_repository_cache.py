"""Programs on the host, a reviewer say, that write into the cache or the store of a run.

They are trusted with their user's files, but what they change must be found, not measured.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.benchmarks import Pull, run, write_dataset

from pytest_crbench.core.errors import TamperedError
from pytest_crbench.core.model import Environment, Instance, Revision, Source, Tree, Trees
from pytest_crbench.core.sandbox import Limits
from pytest_crbench.evaluation.evaluator import Evaluator
from pytest_crbench.evaluation.store import Store
from pytest_crbench.host import digest, trees
from pytest_crbench.host.files import write_json
from pytest_crbench.sources import fetch
from pytest_crbench.workspace.repository import build
from pytest_crbench.workspace.revision import capture, changes

WRONG, RIGHT = "def tax():\n    return 1\n", "def tax():\n    return 2\n"


def overwrite(file: Path, text: str) -> None:
    """Change a read-only file so that size, permissions and time of change stay."""
    before = file.stat()
    file.chmod(0o644)
    file.write_text(text)
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "tax.py").write_text(WRONG)
    return Source(kind="tree", base=tmp_path / "base", head=tmp_path / "head")


def test_an_edit_of_the_cached_head_that_keeps_size_and_time(tmp_path: Path, source: Source) -> None:
    """A reviewer fixes the bug in the cached head, which all later runs take as the pull request, and
    sets the file's time back: what looks at size and time, as build tools do, goes on with the edited
    tree.

    Defence: time of status change (host/trees.py, sources/writer.py)
    """

    def looks(file: Path) -> tuple[int, int, int]:
        about = file.stat()
        return about.st_size, about.st_mode, about.st_mtime_ns

    head = fetch(source, cache=tmp_path / "cache").head
    before = looks(head.path / "tax.py")
    overwrite(head.path / "tax.py", RIGHT)
    assert looks(head.path / "tax.py") == before
    log: list[str] = []
    again = fetch(source, cache=tmp_path / "cache", log=log.append).head
    assert (again.path / "tax.py").read_text() == WRONG
    assert "the cached tree was changed; it is made again" in log[0]


@pytest.mark.parametrize("backend", ["local", pytest.param("docker", marks=pytest.mark.docker)])
def test_the_cached_head_is_fixed_between_fetching_and_testing(
    tmp_path: Path, source: Source, backend: str, request: pytest.FixtureRequest
) -> None:
    """A reviewer fixes the bug in the cached head while it reviews: the sandbox of the verdict is
    filled from there (and an image made of it would be kept under the digest of the true head), the
    test passes.

    Defence: trees are verified as they are read (host/digest.py, sandbox/local.py, sandbox/image.py)
    Holds: docker, local
    """
    from support.arena import ENVIRONMENT

    head = fetch(source, cache=tmp_path / "cache").head
    # Of a content of its own, so that no image of it was made before.
    text = WRONG + f"# {tmp_path}\n"
    overwrite(head.path / "tax.py", text)
    head = Tree(head.path, digest.of_tree(head.path))
    overwrite(head.path / "tax.py", text.replace("return 1", "return 2"))
    careless = shutil.copytree(head.path, tmp_path / "careless")
    assert "return 2" in (careless / "tax.py").read_text()
    chosen = request.getfixturevalue(f"{backend}_backend")
    ref = chosen.environment(ENVIRONMENT)
    with (
        pytest.raises(TamperedError, match="wrote to the cache") as caught,
        chosen.open(ref, head, limits=Limits()) as sandbox,
    ):
        done = sandbox.exec([sandbox.python, "-c", "import tax; print(tax.tax())"], timeout=60)
        pytest.fail(f"attack: the sandbox has the fix: {done.stdout!r}")
    assert caught.value.reason == "cache-changed"


REVIEWER = """
import json, pathlib, sys
for file in pathlib.Path(sys.argv[1]).glob("trees/*/tree/shop/pin_.py"):
    if "wrong" in (text := file.read_text()):
        file.chmod(0o644)
        file.write_text(text.replace("wrong", "pin"))
said = {"body": "Hm.", "path": "shop/pin_.py", "lines": [1, 1], "suggestion": "def pin():  # ok"}
print(json.dumps({"comments": [said]}))
"""


def test_a_reviewer_fixes_the_cached_head_in_a_run(tmp_path: Path, cache: Path) -> None:
    """A `cmd:` reviewer walks through the cache, puts the fix into the head's tree there, and writes a
    comment whose suggestion touches another line of that file: its revision, made from the cached
    head, holds the fix.

    Defence: trees are verified as they are read (host/digest.py, sandbox/local.py, sandbox/image.py)
    """
    dataset = write_dataset(tmp_path / "set", [Pull("one", hard=("pin",))])
    (tmp_path / "evil.py").write_text(REVIEWER)
    own = tmp_path / "cache"
    own.mkdir()
    # The environment may be there; trees are this test's own.
    for part in cache.iterdir() if cache.exists() else ():
        if part.name not in ("trees", "workspaces", "shared", "locks", "sandboxes"):
            (own / part.name).symlink_to(part)
    (tmp_path / "in").mkdir()
    reviewer = f"--crbench-reviewer=cmd:{sys.executable} {tmp_path}/evil.py {own}"
    done = run(tmp_path / "in", dataset, own, reviewer, "--crbench-agent=suggestions")
    poisoned = [p for p in own.glob("trees/*/tree/shop/pin_.py") if '"pin"' in p.read_text()]
    assert poisoned, "the attack is real: the head is fixed in the cache"
    assert done.statuses() == {"one::pin": "tampered"}, done.output
    reason = done.rows()[0]["reason"]
    assert "was changed after it was fetched" in reason
    assert reason[:60] in done.output


def test_the_fix_in_the_cached_head_becomes_a_part_of_the_revision(tmp_path: Path, source: Source) -> None:
    """The image of the true head is there already; a reviewer fixes the bug in the cached head, and suggests
    another line of that file. The file that is put into the sandbox is made from the cached one.

    Defence: head is verified after the revision (evaluation/evaluation.py)
    """
    more = "".join(f"# {n}\n" for n in range(20))
    (tmp_path / "head" / "tax.py").write_text(more + WRONG)
    head = fetch(source, cache=tmp_path / "cache").head
    edited = tmp_path / "edited"
    edited.mkdir()
    (edited / "tax.py").write_text("# Suggested.\n" + more + WRONG)
    patch = capture(head, edited)
    overwrite(head.path / "tax.py", more + RIGHT)
    naive = changes(head, patch).files[0].content
    assert naive.startswith(b"# Suggested.")
    assert b"return 2" in naive
    evaluator = Evaluator(
        reviewer=None,  # type: ignore[arg-type]
        agent=None,  # type: ignore[arg-type]
        backend=None,  # type: ignore[arg-type]
        trees=lambda *_: Trees(head, head),
        workspace=unused,
        capture=capture,
        changes=changes,
        deciders={},
        run=tmp_path / "run",
        store=Store(tmp_path / "run"),
        shared=Store(tmp_path / "s"),
        log=lambda *_: None,
        limits=Limits(),
    )
    instance = Instance(*"di", "Python", "release", source, "T", "", Environment(), (), "0" * 64)  # type: ignore[arg-type]
    evaluation = evaluator.at(instance)
    evaluation.__dict__["revision"] = Revision(patch, "a", "finished")
    try:
        found: Any = evaluation.changes
    except TamperedError as error:
        found = error.reason
    assert found == "cache-changed", "attack: the fix is in the revision"


def unused(*_given: Any) -> Any:
    raise AssertionError("not asked for")


@pytest.mark.parametrize("part", ["diff", "tree/tax.py", "tree/.git/config", "tree/.git/refs/heads/base"])
def test_the_cached_repository_of_another_reviewer_is_edited(
    tmp_path: Path, source: Source, part: str
) -> None:
    """A reviewer edits the two-commit repository in the cache that the next reviewer gets a copy of:
    its diff shows another change, or its configuration runs a program there.

    Defence: workspaces are verified when they are taken (workspace/repository.py)
    """
    (tmp_path / "head" / "tax.py").write_text(RIGHT)
    sides = fetch(source, cache=tmp_path / "cache")

    def take(log: list[str]) -> Any:
        both = Trees(sides.base, sides.head)
        return build(both, title="T", body="", cache=tmp_path / "cache", log=log.append)

    first = take([])
    file = first.path.parent / part
    good = file.read_bytes()
    evil = good.replace(b"return 2", b"return 3").replace(b"fsmonitor = false", b"fsmonitor = evil ")
    overwrite(file, (evil if evil != good else good[::-1].strip() + b"\n").decode())
    assert file.stat().st_size == len(good)
    assert shutil.copytree(first.path.parent, tmp_path / "careless").joinpath(part).read_bytes() != good
    log: list[str] = []
    second = take(log)
    assert (second.path.parent / part).read_bytes() == good
    assert (second.base, second.head, second.diff) == (first.base, first.head, first.diff)
    assert [line for line in log if "changed" in line]


def test_a_reviewer_destroys_what_it_was_given(tmp_path: Path, source: Source) -> None:
    """A reviewer works in place: it edits, commits and deletes in its workspace, through hard links
    and modes. Were that the cached repository, or linked to it, the next one would review what is
    left.

    Defence: a private copy for each program (workspace/repository.py)
    """
    sides = fetch(source, cache=tmp_path / "cache")
    made = build(Trees(sides.base, sides.head), title="T", body="", cache=tmp_path / "cache")
    careless = shutil.copytree(made.path, tmp_path / "links", copy_function=os.link)
    made.copy_to(tmp_path / "copy")
    for place in (tmp_path / "copy", careless):
        assert place.stat().st_mode & 0o200
        before = trees.stamp(made.path)
        for file in [p for p in place.rglob("*") if p.is_file()]:
            file.chmod(0o666)
            file.write_bytes(b"gone")
        harmed = trees.stamp(made.path) != before
        assert harmed == (place == careless)


def forge(folder: Path, name: str, key: str) -> None:
    """Write a record as the store itself does: all that goes into it can be known."""
    value = {"status": "passed", "reason": "", "seconds": 0.1, "warnings": []}
    record = {"key": key, "invocation": "i", "value": value, "digest": digest.of(value), "seconds": 0.1}
    write_json(folder / f"{name}.json", record)


def test_a_verdict_is_forged_in_the_store(tmp_path: Path) -> None:
    """A reviewer writes checks/pin.json, with a pass under the key that the stage will ask for, into
    the run's folder before the test is run: the stage is not run at all.

    Defence: records are sealed (evaluation/store.py, plugin/session.py, plugin/distributed.py)
    """
    forge(tmp_path, "checks/pin", "k")
    forged = Store(tmp_path, invocation="i").stage("checks/pin", "k", lambda: {"status": "missed"})
    assert forged.value["status"] == "passed"
    ours = Store(tmp_path, invocation="i", secret="s" * 64)
    outcome = ours.stage("checks/pin", "k", lambda: {"status": "missed"})
    assert isinstance(outcome.error, TamperedError), "attack: the forged pass is taken"
    assert "was not written by this run" in str(outcome.error)
    assert "s" * 64 not in repr(ours)


def test_a_record_is_moved_to_another_check(tmp_path: Path) -> None:
    """A reviewer copies the record of a check that passed over that of one that did not, key and all,
    or edits the status in a record that the run itself wrote.

    Defence: records are sealed (evaluation/store.py, plugin/session.py, plugin/distributed.py)
    """
    ours = Store(tmp_path, invocation="i", secret="s" * 64)
    ours.stage("checks/a", "k", lambda: {"status": "passed"})
    ours.stage("checks/b", "k", lambda: {"status": "missed"})
    ours.stage("checks/c", "k", lambda: {"status": "missed"})
    shutil.copy(tmp_path / "checks/a.json", tmp_path / "checks/b.json")
    edited = json.loads((tmp_path / "checks/c.json").read_bytes())
    edited["value"] = {"status": "passed"}
    edited["digest"] = digest.of(edited["value"])
    write_json(tmp_path / "checks/c.json", edited)
    for name in ("checks/b", "checks/c"):
        naive = Store(tmp_path, invocation="i").peek(name, "k")
        assert naive is not None
        assert naive.value == {"status": "passed"}
        found = ours.peek(name, "k")
        assert found is not None
        assert isinstance(found.error, TamperedError), "attack: the changed record is taken"
    assert ours.peek("checks/a", "k").value == {"status": "passed"}  # type: ignore[union-attr]
