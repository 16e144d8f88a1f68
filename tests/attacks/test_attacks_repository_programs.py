"""An agent's repository that makes the host run programs or read its files.

The naive harness asks the repository that the agent left what has changed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_crbench.core.model import Changes, File, Tree
from pytest_crbench.host import digest
from pytest_crbench.workspace.revision import capture, changes

START = {"a.py": b"a = 1\n", "pkg/b.py": b"b = 1\n"}
SECRET = b"the host's own key\n"
FIXED = Changes((File("a.py", b"a = 2\n"),))


def git(folder: Path, *arguments: str) -> bytes:
    """Run git as careless programs do: in the caller's environment, with the repository's configuration."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=20).stdout


def naive(edited: Path) -> bytes:
    git(edited, "add", "-A")
    return git(edited, "diff", "--cached", "HEAD")


def write(root: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


@pytest.fixture
def head(tmp_path: Path) -> Tree:
    root = write(tmp_path / "head", START)
    return Tree(root, digest.of_tree(root))


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """The agent's repository, after the agent's honest part of the work."""
    root = write(tmp_path / "edited", START)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "head")
    (root / "a.py").write_bytes(b"a = 2\n")
    return root


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Another repository of the host, with a secret in its one commit."""
    root = write(tmp_path / "host", {"key": SECRET})
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "secret")
    return root


def configure(edited: Path, text: str) -> None:
    with (edited / ".git" / "config").open("a") as stream:
        stream.write(text)


@pytest.mark.parametrize("how", ["fsmonitor", "include", "hooksPath", "clean filter", "textconv", "external"])
def test_git_configuration_names_a_program_to_run(tmp_path: Path, head: Tree, edited: Path, how: str) -> None:
    """The agent's .git/config names a program as fsmonitor (also by include.path), hook folder, clean
    filter, textconv or diff driver; who asks that repository for a diff runs the program on the host,
    with all its keys.

    Defence: own git directory (workspace/git.py, workspace/revision.py)
    """
    trap = tmp_path / "sprung"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    evil.chmod(0o755)
    if how in ("clean filter", "textconv", "external"):
        (edited / ".gitattributes").write_text("*.py filter=e diff=e\n")
    if how == "include":
        write(edited, {"x.cfg": f'[core]\nfsmonitor = "{evil} </dev/null; false"\n'.encode()})
    if how == "hooksPath":
        write(edited, {"h/post-index-change": evil.read_bytes()})
        (edited / "h/post-index-change").chmod(0o755)
    configure(
        edited,
        {
            "fsmonitor": f'[core]\nfsmonitor = "{evil} </dev/null; false"\n',
            "include": f"[include]\npath = {edited}/x.cfg\n",
            "hooksPath": f"[core]\nhooksPath = {edited}/h\n",
            "clean filter": f'[filter "e"]\nclean = {evil}\n',
            "textconv": f'[diff "e"]\ntextconv = {evil}\n',
            "external": f'[diff "e"]\ncommand = {evil}\n',
        }[how],
    )
    naive(edited)
    assert trap.exists(), "the attack is real"
    trap.unlink()
    patch = capture(head, edited)
    assert not trap.exists()
    assert FIXED.files[0] in changes(head, patch).files


def test_alternates_borrow_a_commit_of_the_host(head: Tree, edited: Path, host: Path) -> None:
    """The agent writes a path of the host into .git/objects/info/alternates and points a branch at a
    commit there (the fixed state in a cache, say): a diff made in its repository carries the host's
    content.

    Defence: own git directory (workspace/git.py, workspace/revision.py)
    """
    (edited / ".git/objects/info/alternates").write_text(f"{host}/.git/objects\n")
    borrowed = git(host, "rev-parse", "HEAD").decode().strip()
    first = git(edited, "rev-parse", "HEAD").decode().strip()
    branch = git(edited, "symbolic-ref", "HEAD").decode().strip()
    (edited / ".git" / branch).write_text(borrowed + "\n")
    assert SECRET.strip() in git(edited, "diff", first, "HEAD")
    patch = capture(head, edited)
    assert SECRET.strip() not in patch
    assert changes(head, patch) == FIXED


@pytest.mark.parametrize("how", ["core.worktree", "gitdir file", "commondir"])
def test_a_repository_that_points_elsewhere(head: Tree, edited: Path, host: Path, how: str) -> None:
    """The agent makes .git a file that names a repository of the host, or its config a core.worktree,
    or its commondir another place: the diff is then that of the host's files, and git add writes to
    the host's index.

    Defence: own git directory (workspace/git.py, workspace/revision.py)
    """
    (host / "key").write_bytes(SECRET + b"new\n")
    before = (host / ".git/index").read_bytes()
    if how == "core.worktree":
        configure(edited, f"[core]\nworktree = {host}\n")
    elif how == "gitdir file":
        (edited / ".git").rename(edited.parent / "own")
        (edited / ".git").write_text(f"gitdir: {host}/.git\n")
    else:
        (edited / ".git/commondir").write_text(f"{host}/.git\n")
        (edited / ".git/HEAD").write_text(git(host, "rev-parse", "HEAD").decode())
    assert SECRET.strip() in naive(edited)
    (host / ".git/index").write_bytes(before)
    patch = capture(head, edited)
    assert SECRET.strip() not in patch
    assert changes(head, patch) == FIXED
    assert (host / ".git/index").read_bytes() == before


def test_git_variables_of_the_caller_lead_elsewhere(
    head: Tree, edited: Path, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pytest is run by a hook or an alias of git, which sets GIT_DIR and GIT_INDEX_FILE (or somebody
    sets GIT_EXTERNAL_DIFF): git takes another repository, writes to its index, or runs a program.

    Defence: empty environment for git (workspace/git.py)
    """
    trap = host.parent / "sprung"
    before = (host / ".git/index").read_bytes()
    for name, value in {
        "GIT_DIR": str(host / ".git"),
        "GIT_INDEX_FILE": str(host / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(host / ".git/objects"),
        "GIT_WORK_TREE": str(host),
        "GIT_EXTERNAL_DIFF": f"touch {trap};",
        "GIT_TRACE": str(host.parent / "trace"),
    }.items():
        monkeypatch.setenv(name, value)
    (host / "key").write_bytes(b"changed\n")
    naive(edited)
    assert (host / ".git/index").read_bytes() != before
    assert trap.exists()
    trap.unlink()
    trace = host.parent / "trace"
    trace.unlink()
    (host / ".git/index").write_bytes(before)
    assert changes(head, capture(head, edited)) == FIXED
    assert (host / ".git/index").read_bytes() == before
    assert not trap.exists()
    assert not trace.exists()


def test_a_nested_repository_swallows_what_is_in_it(head: Tree, edited: Path) -> None:
    """The agent runs git init in a folder of the tree: git add records a submodule's commit, and the
    files in it, part of the work, are lost. With a hostile configuration of its own the inner one
    would run a program.

    Defence: files listed from the disk (host/trees.py, workspace/revision.py)
    """
    inner = write(edited / "lib", {"new.py": b"n = 1\n"})
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "inner")
    trap = edited.parent / "sprung"
    configure(inner, f'[core]\nfsmonitor = "touch {trap}; false"\n')
    assert b"n = 1" not in naive(edited)
    trap.unlink(missing_ok=True)
    found = changes(head, capture(head, edited))
    assert found.paths == ("a.py", "lib/new.py")
    assert not trap.exists()


FLAGS = ["assume-unchanged", "skip-worktree"]
HIDES = ["gitignore", "info/exclude", *FLAGS, "committed", "rewritten", "no .git"]


@pytest.mark.parametrize("how", HIDES)
def test_edits_hidden_from_git(head: Tree, edited: Path, how: str) -> None:
    """An agent's work is ignored (by .gitignore or info/exclude), marked as not to be looked at,
    committed on another branch, or its repository is gone: git diff shows nothing, and a fix counts as
    none.

    Defence: files listed from the disk (host/trees.py, workspace/revision.py)
    """
    wanted = {"a.py": b"a = 2\n"}
    if how in ("gitignore", "info/exclude"):
        git(edited, "checkout", "-q", "--", "a.py")
        wanted = {"made.py": b"m\n"}
        write(edited, wanted)
        place = edited / (".gitignore" if how == "gitignore" else ".git/info/exclude")
        place.parent.mkdir(exist_ok=True)
        place.write_text("made.py\n.gitignore\n")
        if how == "gitignore":
            wanted = {".gitignore": place.read_bytes(), **wanted}
    elif how in FLAGS:
        git(edited, "update-index", f"--{how}", "a.py")
    elif how == "committed":
        git(edited, "checkout", "-qb", "mine")
        git(edited, "commit", "-qam", "done")
    elif how == "rewritten":
        git(edited, "commit", "-q", "--amend", "-am", "head")
        git(edited, "reflog", "expire", "--expire=now", "--all")
    else:
        subprocess.run(["rm", "-rf", str(edited / ".git")], check=True)
    assert naive(edited) == b""
    found = changes(head, capture(head, edited))
    assert {file.path: file.content for file in found.files} == wanted


def test_attributes_of_the_tree_change_what_is_recorded(head: Tree, edited: Path) -> None:
    """The agent adds a .gitattributes: text and eol rewrite line ends, ident and a working-tree-
    encoding the content, binary hides the hunks. What is recorded is not what the agent left, or
    cannot be read.

    Defence: attributes taken away (workspace/git.py)
    """
    odd = b"# $Id$\r\nc = 1\r\n"
    (edited / "c.py").write_bytes(odd)
    (edited / ".gitattributes").write_bytes(b"*.py text eol=crlf ident -diff\n")
    recorded = naive(edited)
    assert b"Binary files" in recorded
    assert git(edited, "show", ":c.py") != odd
    patch = capture(head, edited)
    assert {f.path: f.content for f in changes(head, patch).files}["c.py"] == odd
    assert b"+c = 1\r\n" in patch
    assert os.fsencode("Binary") not in patch
