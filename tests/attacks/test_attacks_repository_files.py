"""Files that an agent leaves in its tree to reach others, or to wear the harness out.

Naive is what most programs do: walk, open and copy whatever is there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.revised import materialise

from pytest_crbench.core.errors import AgentError, InfraError
from pytest_crbench.core.model import Tree
from pytest_crbench.host import digest, trees
from pytest_crbench.sandbox import beneath
from pytest_crbench.workspace.revision import capture, changes

SECRET = "the host's own key"


@pytest.fixture
def head(tmp_path: Path) -> Tree:
    root = tmp_path / "head"
    (root / "pkg").mkdir(parents=True)
    (root / "a.py").write_text("a = 1\n")
    (root / "pkg" / "b.py").write_text("b = 1\n")
    return Tree(root, digest.of_tree(root))


@pytest.fixture
def edited(tmp_path: Path, head: Tree) -> Path:
    return Path(shutil.copytree(head.path, tmp_path / "edited"))


@pytest.fixture
def swept(edited: Path) -> Iterator[None]:
    """Whatever becomes of the test, pytest must be able to remove its folders."""
    yield
    subprocess.run(["rm", "-rf", str(edited)], check=True)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "b.py").write_text(SECRET)
    return folder


def naive(root: Path) -> dict[str, bytes]:
    """Read every file of a tree."""
    found = {}
    for here, _names, files in os.walk(root, followlinks=True):
        for name in files:
            path = Path(here, name)
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def taken(head: Tree, edited: Path) -> bytes:
    """The revision; that there is none is what an attacker wants."""
    try:
        return capture(head, edited)
    except (AgentError, InfraError, MemoryError, RecursionError) as error:
        pytest.fail(f"attack: {type(error).__name__}: {error}")


def refused(head: Tree, edited: Path, **limits: int | trees.Bounds) -> AgentError:
    try:
        capture(head, edited, **limits)  # type: ignore[arg-type]
    except AgentError as error:
        return error
    except (MemoryError, RecursionError) as error:
        pytest.fail(f"attack: {type(error).__name__}")
    pytest.fail("attack: the tree is taken")


def test_a_link_to_a_file_of_the_host(head: Tree, edited: Path, outside: Path) -> None:
    """The agent leaves a link to a file of the host (a key, a hidden test), or puts one in place of a
    folder: whoever reads the tree through it makes the file a part of the revision, which goes into
    reports and sandboxes.

    Defence: links are never followed (host/trees.py)
    """
    (edited / "stolen").symlink_to(outside / "b.py")
    shutil.rmtree(edited / "pkg")
    (edited / "pkg").symlink_to(outside)
    assert SECRET.encode() in naive(edited).values()
    patch = taken(head, edited)
    assert SECRET.encode() not in patch
    modes = {f.path: f.mode for f in changes(head, patch).files}
    assert modes == {"pkg": "120000", "stolen": "120000"}
    materialise(head, patch, edited.parent / "out")
    assert (edited.parent / "out" / "stolen").is_symlink()


def test_the_whole_tree_becomes_a_link(head: Tree, edited: Path, outside: Path) -> None:
    """A `cmd:` agent removes its checkout and puts a link to somebody's home folder in its place: the
    folder's files are the revision, and are published with the results.

    Defence: an edited tree must be a folder (workspace/revision.py)
    """
    shutil.rmtree(edited)
    edited.symlink_to(outside)
    assert SECRET.encode() in naive(edited).values()
    error = refused(head, edited)
    assert error.reason == "unreadable"
    assert "no folder any more" in str(error)
    assert SECRET not in str(error)


def test_a_pipe_that_nobody_writes_to(tmp_path: Path, head: Tree, edited: Path) -> None:
    """The agent replaces a file by a named pipe, and leaves a socket: who opens the pipe to read it
    waits for ever, and with it the worker.

    Defence: special files are no files (host/trees.py)
    """
    (edited / "a.py").unlink()
    os.mkfifo(edited / "a.py")
    place = Path(os.path.relpath(edited / "s"))  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as stream:
        stream.bind(str(place) if len(str(place)) < 100 else f"/proc/self/fd/{os.open(edited, 0)}/s")
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(["cat", str(edited / "a.py")], timeout=0.2, check=False)
        began = time.monotonic()
        patch = taken(head, edited)
    assert time.monotonic() - began < 10
    assert changes(head, patch).deleted == ("a.py",)
    beneath.copy_tree(edited, tmp_path / "out", 10**6)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["pkg"]


NAMES = [
    "-rf",
    "--help",
    ":(top)x",
    ":!a.py",
    "*.py",
    "new\nline",
    "a.py\nD  b.py",
    'quo"te',
    "back\\slash",
    "tab\t.py",
    "\x1b[2J.py",
    "\udcff\udcfe.py",
    "A.PY",
    ".git ",
    "git~1",
    "é.py",
]


def test_names_that_are_read_as_something_else(tmp_path: Path, head: Tree, edited: Path) -> None:
    """Names that are options, pathspecs, several lines, not UTF-8, or quoted by git: programs that
    read git's lists line by line, or pass names on, lose the file, see another one deleted, or stop.

    Defence: names are bytes (workspace/git.py, workspace/revision.py)
    """
    for name in NAMES:
        (edited / name).write_bytes(b"x\n")

    def run(*arguments: str) -> list[str]:
        command = ["git", "-C", str(edited), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace").splitlines()

    run("init", "-q")
    seen = {line[3:] for line in run("status", "--porcelain", "-uall")}
    assert len(seen & set(NAMES)) < len(NAMES) / 2
    patch = taken(head, edited)
    assert sorted(f.path for f in changes(head, patch).files) == sorted(NAMES)
    materialise(head, patch, tmp_path / "out")
    assert naive(tmp_path / "out") == {k: v for k, v in naive(edited).items() if not k.startswith(".git/")}


def test_a_sparse_file_of_a_terabyte(head: Tree, edited: Path) -> None:
    """The agent leaves a file that says it has a terabyte, and no block on the disk: who reads it runs
    out of memory, who copies it out of disk.

    Defence: size before content (workspace/revision.py, sandbox/beneath.py)
    """
    with (edited / "big").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(MemoryError), (edited / "big").open("rb") as stream:
        stream.read(1 << 50)  # what `read()` comes to
    tracemalloc.start()
    try:
        assert refused(head, edited).reason == "too-large"
        with pytest.raises(InfraError, match="larger than") as caught:
            beneath.copy_tree(edited, edited.parent / "out", 10**9)
        assert caught.value.reason == "too-large"
        assert tracemalloc.get_traced_memory()[1] < 20 * 1024**2
    finally:
        tracemalloc.stop()


def test_a_million_tiny_files(head: Tree, edited: Path) -> None:
    """The agent leaves files without content, which no limit of bytes sees, until listing them fills
    the memory of the worker. (Here it is a few, and the bound is lower by as much).

    Defence: bounds of an edited tree (host/trees.py, workspace/revision.py, sandbox/beneath.py)
    """
    folder = edited / "many"
    folder.mkdir()
    for number in range(1200):
        (folder / f"{number}").touch()
    assert len(naive(edited)) > 1200
    few = trees.Bounds(entries=1000)
    error = refused(head, edited, bounds=few)
    assert (error.reason, "more than 1000 files" in str(error)) == ("too-large", True)
    with pytest.raises(InfraError, match="more than 1000 files"):
        beneath.copy_tree(edited, edited.parent / "out", 10**9, few)
    assert trees.Bounds().entries < 10**6
    assert trees.scan(head.path, few)


def test_folders_too_deep_to_be_walked(head: Tree, edited: Path, swept: None) -> None:
    """The agent nests folders until no path can name the inmost (or until a program that calls itself
    for each level gives up): the revision is lost by an internal error, and the folder stays on the
    disk for ever.

    Defence: bounds of an edited tree (host/trees.py, workspace/revision.py, sandbox/beneath.py)
    Defence: deep folders are lifted before removal (host/trees.py)
    """
    here = os.open(edited, os.O_RDONLY)
    for _ in range(1050):
        os.mkdir("dd", dir_fd=here)
        inner = os.open("dd", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with pytest.raises(RecursionError):
        shutil.rmtree(edited)
    error = refused(head, edited)
    assert (error.reason, "deep" in str(error)) == ("too-large", True)
    with pytest.raises(InfraError, match="deep") as caught:
        beneath.copy_tree(edited, edited.parent / "out", 10**9)
    assert caught.value.reason == "too-large"
    try:
        assert trees.remove(edited)
    except RecursionError:
        pytest.fail("attack: the folder stays")


def _adds(path: str) -> bytes:
    header = f"diff --git a/{path} b/{path}\nnew file mode 100755\nindex 0000000..d95f3ad\n"
    return (header + f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+content\n").encode()


def careless(patch: bytes, root: Path) -> None:
    """Apply a patch that adds one file, as a small program of one's own does."""
    lines = patch.decode().splitlines()
    place = root / next(line[6:] for line in lines if line.startswith("+++ b/"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(f"{line[1:]}\n" for line in lines if line[0] == "+" and line[:3] != "+++"))


@pytest.mark.parametrize("path", ["../out.py", "pkg/../../out.py", "/out.py", "./../out.py"])
def test_a_recorded_patch_that_leaves_the_tree(tmp_path: Path, head: Tree, path: str) -> None:
    """A recorded run from elsewhere is replayed; its revision.patch names a file outside of the tree,
    which is written on the host.

    Defence: unsafe paths of a patch (workspace/revision.py, workspace/revision.py)
    """
    root = tmp_path / "deep" / "tree"
    shutil.copytree(head.path, root)
    named = path if path != "/out.py" else str(tmp_path / "deep" / "out.py")
    careless(_adds(named), root)
    assert [p.parent != root for p in (tmp_path / "deep").rglob("out.py")] == [True]
    with pytest.raises(AgentError) as caught:
        materialise(head, _adds(named), tmp_path / "safe" / "tree")
    assert caught.value.reason == "unsafe-path"
    assert not (tmp_path / "safe").exists()


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", "pkg/.GIT/config", "sub/.git/config"])
def test_a_recorded_patch_that_writes_a_hook(tmp_path: Path, head: Tree, path: str) -> None:
    """The patch of a replayed run adds .git/hooks/post-checkout (or .GIT, which is the same on some
    disks): the next git command there runs it on the host.

    Defence: unsafe paths of a patch (workspace/revision.py, workspace/revision.py)
    """
    root = tmp_path / "tree"
    shutil.copytree(head.path, root)
    careless(_adds(path), root)
    assert (root / path).exists()
    with pytest.raises(AgentError) as caught:
        changes(head, _adds(path))
    assert caught.value.reason == "unsafe-path"
