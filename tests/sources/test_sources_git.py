"""Commits as byte-exact trees, from real repositories made here, hostile to careless checkouts."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest

from pytest_crbench.core.errors import InfraError, InvalidInstanceError
from pytest_crbench.core.model import Source
from pytest_crbench.host import digest
from pytest_crbench.sources import fetch

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE_ATTRIBUTES = b"""*.txt text eol=lf
*.ident ident
*.filtered filter=evil
secret/** export-ignore
*.sub export-subst
*.utf16 working-tree-encoding=UTF-16
"""

FILES: dict[bytes, tuple[str, bytes]] = {
    b".gitattributes": ("100644", HOSTILE_ATTRIBUTES),
    b".gitignore": ("100644", b"ignored/\n*.log\n"),
    b"binary.bin": ("100644", bytes(range(256)) * 3),
    b"crlf.txt": ("100644", b"one\r\ntwo\r\nthree"),
    b"empty": ("100644", b""),
    b"ignored/kept.log": ("100644", b"tracked although ignored\n"),
    b"link": ("120000", b"crlf.txt"),
    b"lone.ident": ("100644", b"$Id$\n"),
    b'odd "quoted" \t name\n.py': ("100644", b"x = 1\n"),
    b"caf\xe9.py": ("100644", b"# not UTF-8: \xe9\n"),
    b"run.sh": ("100755", b"#!/bin/sh\n"),
    b"secret/exported.py": ("100644", b"export-ignore must not hide me\n"),
    b"some.sub": ("100644", b"$Format:%H$\n"),
    b"text.filtered": ("100644", b"as committed\n"),
    b"wide.utf16": ("100644", "é\n".encode()),
}


def git(repo: Path, *arguments: str, data: bytes | None = None, strip: bool = True) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "t@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        **{f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    }
    done = subprocess.run(["git", *arguments], cwd=repo, env=env, input=data, capture_output=True, check=True)
    text = done.stdout.decode("utf-8", "surrogateescape")
    return text.strip() if strip else text


def commit(repo: Path, files: dict[bytes, tuple[str, bytes]], *parents: str, extra: bytes = b"") -> str:
    """Make a commit of exactly these bytes, by plumbing: no filter of the test's machine takes part."""
    index = b""
    for path, (mode, content) in files.items():
        identity = git(repo, "hash-object", "-w", "--no-filters", "--stdin", data=content)
        index += f"{mode} {identity}\t".encode() + path + b"\0"
    git(repo, "read-tree", "--empty")
    git(repo, "update-index", "-z", "--index-info", data=index + extra)
    tree = git(repo, "write-tree")
    made = git(repo, "commit-tree", tree, *(w for p in parents for w in ("-p", p)), "-m", "change")
    git(repo, "update-ref", "refs/heads/main", made)
    return made


@pytest.fixture
def repo(tmp_path):
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    return path


def get(source, tmp_path, log=None, **options):
    return fetch(source, cache=tmp_path / "cache", log=(log if log is not None else []).append, **options)


def content(tree) -> dict[bytes, tuple[str, bytes]]:
    return {os.fsencode(path): (mode, data) for path, mode, data in digest.walk(tree.path)}


def test_trees_are_byte_exact(repo, tmp_path):
    base = commit(repo, FILES)
    changed = {**FILES, b"crlf.txt": ("100644", b"four\r\n")}
    head = commit(repo, changed, base)
    # The repository's own configuration must play no part either.
    git(repo, "config", "filter.evil.smudge", f"touch {tmp_path / 'ran'}; cat")
    git(repo, "config", "core.autocrlf", "true")
    trees = get(Source("git", base, head, url=f"file://{repo}"), tmp_path)
    assert content(trees.base) == FILES
    assert content(trees.head) == changed
    assert trees.base.digest == digest.of_tree(trees.base.path)
    assert not (tmp_path / "ran").exists()
    assert not (trees.head.path / "run.sh").stat().st_mode & stat.S_IWUSR


@pytest.mark.parametrize("hostile", ["global", "system"])
def test_the_users_configuration_changes_no_byte(repo, tmp_path, monkeypatch, hostile):
    config = tmp_path / "hostile.gitconfig"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {tmp_path / 'hook-ran'}\n")
    (hooks / "reference-transaction").chmod(0o755)
    config.write_text(
        f"[core]\nautocrlf = true\nattributesFile = {tmp_path / 'attributes'}\nhooksPath = {hooks}\n"
        f'[filter "evil"]\nsmudge = "touch {tmp_path / "ran"}; cat"\n[apply]\nwhitespace = fix\n'
    )
    (tmp_path / "attributes").write_text("* text eol=crlf\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL" if hostile == "global" else "GIT_CONFIG_SYSTEM", str(config))
    for name, value in (
        ("GIT_DIR", "/nowhere"),
        ("GIT_INDEX_FILE", "/nowhere/index"),
        ("GIT_WORK_TREE", "/"),
    ):
        monkeypatch.setenv(name, value)  # as in a hook of the user's repository
    base = commit(repo, FILES)
    patch = patch_of(repo, base, {**FILES, b"crlf.txt": ("100644", b"one  \r\ntwo\r\nthree")}, tmp_path)
    trees = get(Source("git+patch", base, url=str(repo), patch=patch), tmp_path)
    assert content(trees.base) == FILES
    assert content(trees.head)[b"crlf.txt"] == ("100644", b"one  \r\ntwo\r\nthree")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "hook-ran").exists()


def patch_of(
    repo: Path, base: str, files: dict[bytes, tuple[str, bytes]], tmp_path: Path, name="pr.diff"
) -> Path:
    head = commit(repo, files, base)
    text = git(repo, "diff", "--binary", "--full-index", base, head, strip=False)
    git(repo, "update-ref", "refs/heads/main", base)
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    return tmp_path / name


def test_a_patch_is_applied_as_bytes(repo, tmp_path):
    base = commit(repo, FILES)
    head = {
        **FILES,
        b"crlf.txt": ("100644", b"one\r\n2\r\nthree"),
        b"binary.bin": ("100644", bytes(range(255, -1, -1))),
        b"run.sh": ("100644", b"#!/bin/sh\n"),
        b"new \xe9": ("100755", b"no newline \xff"),
        b"link": ("120000", b"empty"),
    }
    del head[b"empty"]
    fixed = {**FILES, b"empty": ("100644", b"no more")}
    source = Source(
        "git+patch",
        base,
        url=str(repo),
        patch=patch_of(repo, base, head, tmp_path),
        fixed_patch=patch_of(repo, base, fixed, tmp_path, "fixed.diff"),
    )
    trees = get(source, tmp_path, fixed=True)
    assert content(trees.base) == FILES
    assert content(trees.head) == head
    assert content(trees.fixed) == fixed
    shutil.rmtree(repo)
    assert get(source, tmp_path, fixed=True, offline=True) == trees


def test_a_patch_and_a_commit_that_fixes(repo, tmp_path):
    base = commit(repo, FILES)
    patch = patch_of(repo, base, {**FILES, b"empty": ("100644", b"1\n")}, tmp_path)
    fixed = commit(repo, {**FILES, b"empty": ("100644", b"2\n")}, base)
    trees = get(Source("git+patch", base, None, fixed, url=str(repo), patch=patch), tmp_path, fixed=True)
    assert content(trees.fixed)[b"empty"] == ("100644", b"2\n")


@pytest.mark.parametrize("patch", [b"", b"not a patch\n", b"--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n"])
def test_a_patch_that_does_not_apply(repo, tmp_path, patch):
    base = commit(repo, FILES)
    (tmp_path / "bad.diff").write_bytes(patch)
    with pytest.raises(InvalidInstanceError, match=f"bad.diff does not apply to commit {base}") as caught:
        get(Source("git+patch", base, url=str(repo), patch=tmp_path / "bad.diff"), tmp_path)
    assert caught.value.reason == "patch"
    with pytest.raises(InvalidInstanceError, match="cannot read the patch"):
        get(Source("git+patch", base, url=str(repo), patch=tmp_path / "absent.diff"), tmp_path)


def test_a_patch_cannot_write_outside(repo, tmp_path):
    base = commit(repo, FILES)
    text = b"diff --git a/../evil b/../evil\nnew file mode 100644\n--- /dev/null\n"
    text += b"+++ b/../evil\n@@ -0,0 +1 @@\n+x\n"
    (tmp_path / "bad.diff").write_bytes(text)
    with pytest.raises(InvalidInstanceError):
        get(Source("git+patch", base, url=str(repo), patch=tmp_path / "bad.diff"), tmp_path)
    assert not list(tmp_path.rglob("evil"))


def test_submodules_are_left_out_and_told(repo, tmp_path):
    base = commit(repo, FILES, extra=b"160000 " + b"1" * 40 + b"\tvendored\0")
    log: list[str] = []
    trees = get(Source("git", base, base, url=str(repo)), tmp_path, log=log)
    assert content(trees.base) == FILES
    assert any("left out 1 submodule(s): vendored" in line for line in log)


def test_replaced_objects_are_not_what_was_named(repo, tmp_path):
    base = commit(repo, FILES)
    other = commit(repo, {b"evil": ("100644", b"evil")})
    git(repo, "replace", base, other)
    assert content(get(Source("git", base, base, url=str(repo)), tmp_path).base) == FILES


def test_a_commit_that_no_branch_has(repo, tmp_path):
    """A force-pushed pull request: the server hands it out by id, or with all its references."""
    orphan = commit(repo, {b"gone": ("100644", b"1")})
    base = commit(repo, FILES)
    git(repo, "update-ref", "refs/pull/1/head", orphan)
    assert content(get(Source("git", base, orphan, url=f"file://{repo}"), tmp_path).head) == {
        b"gone": ("100644", b"1")
    }


def test_a_server_that_refuses_bare_commits(repo, tmp_path):
    """An old protocol gives only what references point to: everything is fetched then."""
    first = commit(repo, {b"a": ("100644", b"1")})
    second = commit(repo, {b"a": ("100644", b"2")}, first)
    commit(repo, {b"a": ("100644", b"3")}, second)
    wrapper = tmp_path / "bin"
    wrapper.mkdir()
    real = shutil.which("git")
    (wrapper / "git").write_text(f'#!/bin/sh\nexec {real} -c protocol.version=0 "$@"\n')
    (wrapper / "git").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{wrapper}:{os.environ['PATH']}")
        trees = get(Source("git", first, second, url=f"file://{repo}"), tmp_path)
    assert content(trees.base) == {b"a": ("100644", b"1")}
    assert content(trees.head) == {b"a": ("100644", b"2")}


def test_a_commit_that_is_not_there(repo, tmp_path):
    commit(repo, FILES)
    with pytest.raises(InfraError, match=r"commit 1{40} cannot be fetched .*git ls-remote") as caught:
        get(Source("git", "1" * 40, "1" * 40, url=str(repo)), tmp_path)
    assert caught.value.reason == "commit"


def test_a_blob_or_tree_is_no_commit(repo, tmp_path):
    made = commit(repo, FILES)
    tree = git(repo, "rev-parse", f"{made}^{{tree}}")
    with pytest.raises(InfraError, match="cannot be fetched"):
        get(Source("git", tree, tree, url=str(repo)), tmp_path)


@pytest.mark.parametrize(
    "url", ["https://bot:s3cret@127.0.0.1:9/x.git", "http://s3cret@127.0.0.1:9/x.git", "ext::sh -c s3cret"]
)
def test_unreachable_repositories_and_no_secret_told(tmp_path, url):
    log: list[str] = []
    with pytest.raises(InfraError, match="cannot be fetched") as caught:
        get(Source("git", "1" * 40, "1" * 40, url=url), tmp_path, log=log)
    if "ext::" in url:
        assert "transport 'ext' not allowed" in str(caught.value)
    else:
        assert not any("s3cret" in text or "bot" in text for text in [*log, str(caught.value)])


def test_offline(repo, tmp_path):
    base = commit(repo, FILES)
    source = Source("git", base, base, url=str(repo))
    with pytest.raises(InfraError, match=r"is not in the cache .* Run once with the network") as caught:
        get(source, tmp_path, offline=True)
    assert caught.value.reason == "offline"
    trees = get(source, tmp_path)
    shutil.rmtree(repo)
    assert get(source, tmp_path, offline=True) == trees


@pytest.mark.parametrize("damage", ["garbage", "absent", "another object"])
def test_a_damaged_mirror_is_fetched_again(repo, tmp_path, damage):
    base = commit(repo, FILES)
    source = Source("git", base, base, url=str(repo))
    trees = get(source, tmp_path)
    shutil.rmtree(tmp_path / "cache" / "locks")
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path / "cache")], check=True)
    shutil.rmtree(tmp_path / "cache" / "trees")
    (mirror,) = (tmp_path / "cache" / "mirrors").iterdir()
    identity = git(repo, "hash-object", "-w", "--stdin", data=b"as committed\n")
    packs = list((mirror / "objects" / "pack").glob("*.pack"))
    for pack in packs:
        moved = pack.rename(tmp_path / pack.name)
        with moved.open("rb") as stream:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=mirror, stdin=stream, check=True)
        pack.with_suffix(".idx").unlink()
    loose = mirror / "objects" / identity[:2] / identity[2:]
    assert loose.is_file()
    loose.unlink()
    if damage == "garbage":
        loose.write_bytes(b"damaged")
    elif damage == "another object":  # whole, of the same length, and not what its name says
        loose.write_bytes(zlib.compress(b"blob 13\0" + b"AS COMMITTED\n"))
    log: list[str] = []
    assert get(source, tmp_path, log=log).base.digest == trees.base.digest
    assert any("Fetching it again" in line for line in log)


def test_sha256_repositories(tmp_path):
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    base = commit(path, FILES)
    assert len(base) == 64
    assert content(get(Source("git", base, base, url=str(path)), tmp_path).base) == FILES


def test_a_tree_that_would_leave_its_place(repo, tmp_path):
    """Git refuses such names in an index, not in an object that somebody made by hand."""
    blob = git(repo, "hash-object", "-w", "--stdin", data=b"evil")
    raw = b"100644 ..\0" + bytes.fromhex(blob)
    tree = git(repo, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=raw)
    made = git(repo, "commit-tree", tree, "-m", "evil")
    git(repo, "update-ref", "refs/heads/main", made)
    with pytest.raises((InvalidInstanceError, InfraError)):
        get(Source("git", made, made, url=str(repo)), tmp_path)
    link = {b"a/link": ("120000", b"../../outside")}
    made = commit(repo, link)
    with pytest.raises(InvalidInstanceError, match=r"a link to '../../outside', which leaves the tree"):
        get(Source("git", made, made, url=str(repo)), tmp_path)
