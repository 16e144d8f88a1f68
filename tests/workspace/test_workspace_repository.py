"""The two-commit repository: exactly two commits, byte for byte, and nothing else in it."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import Tree, Trees
from pytest_crbench.host import digest
from pytest_crbench.workspace import git
from pytest_crbench.workspace.repository import Workspace, build

HOSTILE = {
    ".gitattributes": b"* text=auto eol=lf ident filter=evil\n"
    b"*.py diff=evil working-tree-encoding=UTF-16\n*.md -diff\n",
    ".gitignore": b"*\n!.gitignore\n",
    ".gitmodules": b'[submodule "x"]\n\tpath = sub\n\turl = file:///nowhere\n',
    "crlf.py": b"a = 1\r\nb = 2\r\n# $Id$\r\n",
    "mixed.txt": b"one\r\ntwo\nthree",
    "data.bin": bytes(range(256)),
    "README.md": b"hello\n",
    "pkg/ignored.log": b"log\n",
    'odd/"quoted" \\ and\ttab\nnewline \xc3\xa9'.encode("latin-1").decode("utf-8"): b"odd\n",
    "git~1": b"short name\n",
}


def put(root: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return root


def tree(root: Path) -> Tree:
    return Tree(root, digest.of_tree(root))


def pair(root: Path, base: dict[str, bytes], head: dict[str, bytes]) -> Trees:
    (root / "base").mkdir(parents=True)
    (root / "head").mkdir()
    return Trees(tree(put(root / "base", base)), tree(put(root / "head", head)))


def ask(where: Path, *args: str) -> bytes:
    """Run git as a user would: with a plain environment, in the checkout."""
    done = subprocess.run(["git", *args], cwd=where, env=git.environment(), capture_output=True, check=True)
    return done.stdout


@pytest.fixture
def hostile(tmp_path: Path) -> Trees:
    trees = pair(
        tmp_path / "trees", HOSTILE, {**HOSTILE, "crlf.py": b"a = 1\r\nb = 3\r\n", "new.log": b"x\n"}
    )
    head = trees.head.path
    (head / "crlf.py").chmod(0o755)
    (head / "link").symlink_to("README.md")
    (head / "dangling").symlink_to("/nowhere/at/all")
    return Trees(trees.base, tree(head))


def build_in(place: Path, trees: Trees) -> Workspace:
    return build(trees, title="Add things", body="Because.\n\nReally.", cache=place)


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def closure(root: Path) -> set[str]:
    """Compute the ids of a tree's blobs and folders here, without git."""

    def folder(place: Path) -> str:
        rows, here = [], []
        for entry in place.iterdir():
            name = os.fsencode(entry.name)
            if entry.is_symlink():
                here.append(blob(os.fsencode(entry.readlink())))
                rows.append((name, b"120000", here[-1]))
            elif entry.is_dir():
                rows.append((name + b"/", b"40000", folder(entry)))
            else:
                here.append(blob(entry.read_bytes()))
                mode = b"100755" if entry.stat().st_mode & 0o100 else b"100644"
                rows.append((name, mode, here[-1]))
        found.update(here)
        body = b"".join(
            m + b" " + n.removesuffix(b"/") + b"\0" + bytes.fromhex(i) for n, m, i in sorted(rows)
        )
        found.add(hashlib.sha1(b"tree %d\0" % len(body) + body).hexdigest())
        return hashlib.sha1(b"tree %d\0" % len(body) + body).hexdigest()

    found: set[str] = set()
    folder(root)
    return found


def test_the_object_set_is_the_closure_of_the_two_commits(tmp_path: Path, hostile: Trees) -> None:
    made = build_in(tmp_path / "cache", hostile)
    listed = ask(made.path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered")
    expected = closure(hostile.base.path) | closure(hostile.head.path) | {made.base, made.head}
    assert set(listed.decode().split()) == expected
    counts = dict(line.split(": ") for line in ask(made.path, "count-objects", "-v").decode().splitlines())
    assert counts["count"] == "0"
    assert counts["packs"] == "1"
    assert int(counts["in-pack"]) == len(expected)
    assert ask(made.path, "fsck", "--unreachable", "--no-reflogs", "--full") == b""


def test_two_branches_two_commits_and_no_other_name(tmp_path: Path, hostile: Trees) -> None:
    made = build_in(tmp_path / "cache", hostile)
    refs = ask(made.path, "for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
    assert refs == [f"refs/heads/base {made.base}", f"refs/heads/head {made.head}"]
    assert ask(made.path, "rev-list", "--parents", "--all").decode().splitlines() == [
        f"{made.head} {made.base}",
        made.base,
    ]
    assert ask(made.path, "symbolic-ref", "HEAD") == b"refs/heads/head\n"
    assert ask(made.path, "log", "-1", "--format=%B").decode() == "Add things\n\nBecause.\n\nReally.\n\n"
    assert ask(made.path, "remote") == b""
    there = {p.relative_to(made.git_dir).as_posix() for p in made.git_dir.rglob("*") if p.is_file()}
    packs = {name for name in there if name.startswith("objects/pack/")}
    assert there - packs <= {
        *("HEAD", "config", "index", "info/attributes", "info/exclude", "info/refs", "objects/info/packs"),
        *("refs/heads/base", "refs/heads/head"),
    }
    assert not list(made.git_dir.rglob("*hooks*"))
    assert not (made.git_dir / "logs").exists()


def test_ids_depend_on_content_alone(tmp_path: Path, hostile: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    one = build_in(tmp_path / "one", hostile)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    two = build_in(tmp_path / "two", hostile)
    assert (one.base, one.head, one.diff) == (two.base, two.head, two.diff)
    other = build(hostile, title="Add things", body="Because.", cache=tmp_path / "one")
    assert other.base == one.base
    assert other.head != one.head


def test_the_copy_is_byte_exact_and_clean_whatever_the_tree_configures(
    tmp_path: Path, hostile: Trees
) -> None:
    made = build_in(tmp_path / "cache", hostile)
    for copy in (tmp_path / "copy", tmp_path / "another"):
        made.copy_to(copy)
        assert digest.of_tree(copy) == hostile.head.digest
        assert ask(copy, "status", "--porcelain", "--ignored", "--untracked-files=all") == b""
        assert ask(copy, "diff-index", "--name-only", "HEAD") == b""
        assert ask(copy, "diff", "--no-color", "base", "head") == made.diff
    (tmp_path / "copy" / "README.md").write_bytes(b"changed\n")
    assert ask(tmp_path / "copy", "status", "--porcelain") == b" M README.md\n"
    assert digest.of_tree(made.path) == hostile.head.digest


def test_the_diff_keeps_carriage_returns_and_shows_what_attributes_hide(
    tmp_path: Path, hostile: Trees
) -> None:
    diff = build_in(tmp_path / "cache", hostile).diff
    assert b"-b = 2\r\n-# $Id$\r\n+b = 3\r\n" in diff
    assert b"+++ b/new.log\n" in diff
    assert b"old mode 100644\nnew mode 100755\n" in diff


def test_a_rename_is_shown_as_one(tmp_path: Path) -> None:
    text = b"".join(b"line %d\n" % n for n in range(50))
    trees = pair(tmp_path / "trees", {"old.py": text}, {"new.py": text + b"end\n"})
    assert b"rename from old.py\nrename to new.py\n" in build_in(tmp_path / "cache", trees).diff


def test_generated_metadata_is_in_neither_commit_nor_the_checkout(tmp_path: Path) -> None:
    generated = {"PKG-INFO": b"x", "src/p.egg-info/SOURCES.txt": b"y", "p.egg-info": b"z"}
    kept = {"src/p.py": b"1\n", "docs/PKG-INFO": b"an own file\n"}
    trees = pair(tmp_path / "trees", {**generated, **kept}, {**generated, **kept, "src/p.py": b"2\n"})
    made = build_in(tmp_path / "cache", trees)
    for side in ("base", "head"):
        names = ask(made.path, "ls-tree", "-r", "--name-only", side).decode().split()
        assert names == ["docs/PKG-INFO", "src/p.py"]
    assert not (made.path / "PKG-INFO").exists()
    put(made.path, generated)  # as in a sandbox, whose tree has them
    assert ask(made.path, "status", "--porcelain") == b""


def test_a_nested_git_folder_is_left_out_and_named(tmp_path: Path) -> None:
    """A vendored clone's own configuration would run programs of its choice in whoever looks at it."""
    inner = {"vendor/.git/config": b"[core]\n\tfsmonitor = touch /tmp/pwned\n", "vendor/a.py": b"1\n"}
    trees = pair(tmp_path / "trees", {"a.py": b"1\n"}, {"a.py": b"2\n", **inner})
    said: list[str] = []
    made = build(trees, title="t", body="", cache=tmp_path / "cache", log=said.append)
    assert ask(made.path, "ls-files").decode().split() == ["a.py", "vendor/a.py"]
    assert not (made.path / "vendor" / ".git").exists()
    assert any("vendor/.git/config" in line for line in said)


def test_equal_and_empty_sides_are_fine(tmp_path: Path) -> None:
    trees = pair(tmp_path / "trees", {}, {})
    made = build_in(tmp_path / "cache", trees)
    assert made.diff == b""
    assert made.base != made.head
    trees = pair(tmp_path / "again", {}, {"a": b"1"})
    assert build_in(tmp_path / "cache", trees).diff.endswith(b"+1\n\\ No newline at end of file\n")


def test_the_callers_git_variables_do_not_leak_in(
    tmp_path: Path, hostile: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pre-commit hook that runs pytest sets GIT_DIR and GIT_INDEX_FILE; we must not write there."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    ask(theirs, "init", "-q")
    before = digest.of_tree(theirs / ".git")
    (tmp_path / "gitconfig").write_text(
        "[core]\n\tautocrlf = true\n[diff]\n\tnoprefix = true\n\texternal = false\n"
    )
    monkeypatch.setenv("GIT_DIR", str(theirs / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(theirs))
    monkeypatch.setenv("GIT_INDEX_FILE", str(theirs / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(theirs / ".git" / "objects"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.autocrlf=true'")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    leaked = build_in(tmp_path / "leaky", hostile)
    assert digest.of_tree(theirs / ".git") == before
    monkeypatch.undo()
    clean = build_in(tmp_path / "clean", hostile)
    assert (leaked.base, leaked.head, leaked.diff) == (clean.base, clean.head, clean.diff)


def _worker(cache: str, base: str, head: str, queue: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    said: list[str] = []
    trees = Trees(tree(Path(base)), tree(Path(head)))
    made = build(trees, title="t", body="b", cache=Path(cache), log=said.append)
    queue.put((made.head, made.git_dir.stat().st_ino))


def test_many_processes_build_it_once(tmp_path: Path, hostile: Trees) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    args = (str(tmp_path / "cache"), str(hostile.base.path), str(hostile.head.path), queue)
    workers = [context.Process(target=_worker, args=args) for _ in range(3)]
    for worker in workers:
        worker.start()
    answers = {queue.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(answers) == 1
    left = [p.name for p in (tmp_path / "cache" / "workspaces").iterdir() if p.name.endswith(".tmp")]
    assert left == []


def test_a_half_deleted_cache_entry_is_built_again(tmp_path: Path, hostile: Trees) -> None:
    first = build_in(tmp_path / "cache", hostile)
    (first.path.parent / "diff").unlink()
    (first.git_dir / "index").unlink()
    again = build_in(tmp_path / "cache", hostile)
    assert (again.head, again.diff) == (first.head, first.diff)
    again.copy_to(tmp_path / "copy")
    assert digest.of_tree(tmp_path / "copy") == hostile.head.digest


def test_a_gitmodules_file_that_git_cannot_read_does_not_stop_the_build(tmp_path: Path) -> None:
    trees = pair(tmp_path / "trees", {"a": b"1\n"}, {"a": b"2\n", ".gitmodules": b"[not a section\n"})
    made = build_in(tmp_path / "cache", trees)
    made.copy_to(tmp_path / "copy")
    assert digest.of_tree(tmp_path / "copy") == trees.head.digest


def test_without_git_the_error_says_what_to_install(
    tmp_path: Path, hostile: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = tmp_path / "bin"
    only.mkdir()
    env = shutil.which("env")
    assert env is not None
    (only / "env").symlink_to(env)
    build_in(tmp_path / "cache", hostile)  # GitPython is imported while git is there
    monkeypatch.setenv("PATH", str(only))
    with pytest.raises(InfraError, match="Install git") as caught:
        build_in(tmp_path / "other", hostile)
    assert caught.value.reason == "git"


def test_a_cache_that_cannot_be_written_is_infrastructure(tmp_path: Path, hostile: Trees) -> None:
    (tmp_path / "cache").write_bytes(b"a file, not a folder")
    with pytest.raises(InfraError) as caught:
        build_in(tmp_path / "cache", hostile)
    assert caught.value.reason == "disk"
    made = build_in(tmp_path / "good", hostile)
    (tmp_path / "copy").write_bytes(b"in the way")
    with pytest.raises(InfraError, match="cannot copy the workspace"):
        made.copy_to(tmp_path / "copy")
