"""Revisions: what an agent left in a folder, as one patch, and back again, byte for byte."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.revised import materialise

from pytest_crbench.core.errors import AgentError, InfraError
from pytest_crbench.core.model import Changes, File, Tree
from pytest_crbench.host import digest
from pytest_crbench.workspace.revision import capture, changes

if TYPE_CHECKING:
    from collections.abc import Iterator

Content = tuple[str, bytes]  # mode, content


def write(root: Path, files: dict[str, Content]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for path, (mode, content) in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            os.symlink(content, os.fsencode(place))  # noqa: PTH211  (bytes)
        else:
            place.write_bytes(content)
            place.chmod(0o755 if mode == "100755" else 0o644)
    return root


def read(root: Path) -> dict[str, Content]:
    return {path: (mode, content) for path, mode, content in digest.walk(root)}


def tree(root: Path) -> Tree:
    return Tree(root, digest.of_tree(root))


def plain(text: bytes) -> Content:
    return ("100644", text)


@pytest.fixture
def head(tmp_path: Path) -> Tree:
    start = {
        "a.py": plain(b"a = 1\nb = 2\n"),
        "crlf.txt": plain(b"one\r\ntwo\r\n"),
        "pkg/mod.py": plain(b"x = 1"),
        "pkg/data.bin": plain(bytes(range(256))),
        "run.sh": ("100755", b"#!/bin/sh\n"),
        "link": ("120000", b"a.py"),
        ".gitignore": plain(b"*.log\n"),
    }
    return tree(write(tmp_path / "head", start))


@pytest.fixture
def edited(tmp_path: Path, head: Tree) -> Path:
    shutil.copytree(head.path, tmp_path / "edited", symlinks=True)
    return tmp_path / "edited"


def test_nothing_changed_is_an_empty_patch(head: Tree, edited: Path) -> None:
    os.utime(edited / "a.py", (1, 1))
    assert capture(head, edited) == b""
    assert changes(head, b"") == Changes()


def test_untracked_ignored_and_committed_work_all_count(head: Tree, edited: Path) -> None:
    """`git diff` in the agent's own repository would miss each of these (verifiers PR1220)."""
    (edited / "new.py").write_bytes(b"new\n")
    (edited / "kept.log").write_bytes(b"ignored by the tree's own rule\n")
    (edited / "crlf.txt").write_bytes(b"one\r\n2\r\n")
    (edited / "pkg" / "mod.py").unlink()
    (edited / "run.sh").chmod(0o644)
    patch = capture(head, edited)
    assert b"-two\r\n+2\r\n" in patch
    assert changes(head, patch) == Changes(
        files=(
            File("crlf.txt", b"one\r\n2\r\n", "100644"),
            File("kept.log", b"ignored by the tree's own rule\n", "100644"),
            File("new.py", b"new\n", "100644"),
            File("run.sh", b"#!/bin/sh\n", "100644"),
        ),
        deleted=("pkg/mod.py",),
    )


def test_noise_metadata_and_git_folders_are_left_out(head: Tree, edited: Path) -> None:
    write(
        edited,
        {
            "pkg/__pycache__/mod.cpython-311.pyc": plain(b"\0"),
            "stale.pyc": plain(b"\0"),
            ".pytest_cache/v/x": plain(b"{}"),
            ".mypy_cache/x": plain(b"{}"),
            ".ruff_cache/x": plain(b"{}"),
            "PKG-INFO": plain(b"made by a build"),
            "pkg.egg-info/top_level.txt": plain(b"pkg"),
            ".git/config": plain(b"[core]\n"),
            "pkg/.git/HEAD": plain(b"ref: x\n"),
            "pkg/.GIT/HEAD": plain(b"ref: x\n"),
        },
    )
    assert capture(head, edited) == b""


def test_a_checkout_without_the_metadata_of_head_deletes_nothing(tmp_path: Path) -> None:
    """The reviewer's checkout lacks PKG-INFO; editing it there must not remove it from the sandbox."""
    full = tree(
        write(tmp_path / "h", {"PKG-INFO": plain(b"v"), "a.egg-info/x": plain(b"e"), "a.py": plain(b"1\n")})
    )
    patch = capture(full, write(tmp_path / "e", {"a.py": plain(b"2\n")}))
    assert changes(full, patch).paths == ("a.py",)
    materialise(full, patch, tmp_path / "out")
    assert set(read(tmp_path / "out")) == {"PKG-INFO", "a.egg-info/x", "a.py"}


def test_hostile_configuration_of_the_edited_tree_runs_nothing(
    tmp_path: Path, head: Tree, edited: Path
) -> None:
    """An agent's repository may name an fsmonitor, a filter or a textconv: programs to run on the host."""
    trap = tmp_path / "sprung"
    config = f"""[core]
        fsmonitor = "touch {trap}; false"
        hooksPath = {edited}/hooks
        attributesFile = {edited}/.gitattributes
    [filter "evil"]
        clean = "touch {trap}; cat"
        required = true
    [diff "evil"]
        textconv = "touch {trap}; cat"
        command = touch {trap}
    """
    write(edited, {".git/config": plain(config.encode()), ".git/HEAD": plain(b"ref: refs/heads/x\n")})
    write(edited, {".gitattributes": plain(b"* filter=evil diff=evil text eol=crlf ident\n")})
    (edited / "a.py").write_bytes(b"a = 1\nb = '$Id$'\n")
    patch = capture(head, edited)
    made = {file.path: file.content for file in changes(head, patch).files}
    assert made["a.py"] == b"a = 1\nb = '$Id$'\n"
    assert not trap.exists()


def test_links_are_never_followed_and_special_files_never_opened(
    tmp_path: Path, head: Tree, edited: Path
) -> None:
    secret = write(tmp_path / "outside", {"secret": plain(b"key\n")})
    os.mkfifo(edited / "pipe")
    (edited / "stolen").symlink_to(secret / "secret")
    (edited / "folder").symlink_to(secret)
    (edited / "a.py").unlink()
    os.mkfifo(edited / "a.py")
    patch = capture(head, edited)
    assert b"key" not in patch
    found = changes(head, patch)
    assert [(file.path, file.mode) for file in found.files] == [("folder", "120000"), ("stolen", "120000")]
    assert found.deleted == ("a.py",)


def test_a_folder_becomes_a_file_or_a_link_and_back(tmp_path: Path) -> None:
    shapes: list[dict[str, Content]] = [
        {"x/a": plain(b"1\n"), "x/b/c": plain(b"2"), "keep": plain(b"k")},
        {"x": plain(b"file\n"), "keep": plain(b"k")},
        {"x": ("120000", b"keep"), "keep": plain(b"k")},
        {"x/b": ("120000", b"../keep"), "keep": plain(b"k")},
    ]
    for i, before in enumerate(shapes):
        for j, after in enumerate(shapes):
            one = tree(write(tmp_path / f"{i}-{j}" / "one", before))
            two = write(tmp_path / f"{i}-{j}" / "two", after)
            materialise(one, capture(one, two), tmp_path / f"{i}-{j}" / "out")
            assert read(tmp_path / f"{i}-{j}" / "out") == after, (i, j)


def test_what_is_left_out_goes_when_its_folder_becomes_a_file(tmp_path: Path) -> None:
    one = tree(write(tmp_path / "one", {"x/a.py": plain(b"1\n"), "x/__pycache__/a.pyc": plain(b"\0")}))
    two = write(tmp_path / "two", {"x": plain(b"file\n")})
    patch = capture(one, two)
    assert changes(one, patch).deleted == ("x/__pycache__/a.pyc", "x/a.py")
    materialise(one, patch, tmp_path / "out")
    assert read(tmp_path / "out") == {"x": plain(b"file\n")}


def test_too_large_is_said_before_and_after_git_sees_it(head: Tree, edited: Path) -> None:
    (edited / "noise.bin").write_bytes(os.urandom(50_000))
    with pytest.raises(AgentError, match="a patch of") as caught:
        capture(head, edited, limit=10_000)
    assert caught.value.reason == "too-large"
    with (edited / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(AgentError, match=r"\d changed files of") as caught:
        capture(head, edited)
    assert caught.value.reason == "too-large"


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Be somebody whom permissions stop, even where the tests run as root."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


def test_an_unreadable_folder_is_not_an_empty_one(ordinary_user: None) -> None:
    """A folder that the agent made unreadable would else look as if all its files were deleted."""
    with tempfile.TemporaryDirectory() as name:
        files = {"a.py": plain(b"1\n"), "pkg/b.py": plain(b"2\n")}
        head = tree(write(Path(name) / "head", files))
        edited = write(Path(name) / "edited", files)
        for place, mode in ((edited / "pkg", 0o755), (edited / "a.py", 0o644)):
            place.chmod(0)
            try:
                with pytest.raises(AgentError) as caught:
                    capture(head, edited)
            finally:
                place.chmod(mode)
            assert caught.value.reason == "unreadable"


def test_a_full_disk_is_nobodys_score(head: Tree, edited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/full stands for a disk without room: every write to it fails as one to a full disk does."""
    (edited / "a.py").write_bytes(b"changed\n")
    patch = capture(head, edited)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "wb", buffering=0))  # noqa: PTH123, SIM115
    for work in (lambda: capture(head, edited), lambda: changes(head, patch)):
        with pytest.raises(InfraError) as caught:
            work()
        assert caught.value.reason == "disk"


@pytest.mark.parametrize("name", ["PKG-INFO", "a.pyc", "p.egg-info"])
def test_a_left_out_file_that_became_a_folder_stays_as_it_was(tmp_path: Path, name: str) -> None:
    one = tree(write(tmp_path / "one", {name: plain(b"x"), "a.py": plain(b"1\n")}))
    two = write(tmp_path / "two", {f"{name}/inside": plain(b"y"), "a.py": plain(b"2\n")})
    materialise(one, capture(one, two), tmp_path / "out")
    assert read(tmp_path / "out") == {name: plain(b"x"), "a.py": plain(b"2\n")}


def _adds(path: str, mode: str = "100644") -> bytes:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..d95f3ad\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+content\n"
    ).encode()


@pytest.mark.parametrize(
    "path",
    [
        "../out.py",
        "pkg/../../out.py",
        "/tmp/out.py",
        ".git/config",
        "pkg/.git/hooks/x",
        "pkg/.GIT/config",
        "./a",
    ],
)
def test_paths_out_of_the_tree_or_into_git_are_refused(tmp_path: Path, head: Tree, path: str) -> None:
    with pytest.raises(AgentError) as caught:
        materialise(head, _adds(path), tmp_path / "deep" / "out")
    assert caught.value.reason in ("unsafe-path", "unappliable")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize(
    "patch",
    [
        b"this is no patch\n",
        _adds("a.py"),  # exists already
        _adds("link/inside.py"),  # would be written through a link
        _adds("a.py/inside.py"),  # below a file
        _adds("sub", "160000"),  # a submodule
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 9\n-b = 2\n+b = 3\n",
    ],
)
def test_what_does_not_fit_head_is_unappliable(tmp_path: Path, head: Tree, patch: bytes) -> None:
    with pytest.raises(AgentError) as caught:
        materialise(head, patch, tmp_path / "out")
    assert caught.value.reason == "unappliable"
    assert not (tmp_path / "out").exists()


def test_a_patch_made_elsewhere_may_rename(tmp_path: Path, head: Tree) -> None:
    patch = b"diff --git a/a.py b/moved/b.py\nsimilarity index 100%\nrename from a.py\nrename to moved/b.py\n"
    assert changes(head, patch) == Changes((File("moved/b.py", b"a = 1\nb = 2\n", "100644"),), ("a.py",))


def test_a_small_patch_on_a_big_tree_reads_only_what_it_touches(tmp_path: Path) -> None:
    big = write(tmp_path / "big", {f"d{n % 50}/f{n}.py": plain(b"x = %d\n" % n) for n in range(3000)})
    head = tree(big)
    shutil.copytree(big, tmp_path / "edited")
    (tmp_path / "edited" / "d1" / "f1.py").write_bytes(b"x = 0\n")
    patch = capture(head, tmp_path / "edited")
    for n in range(2, 3000):  # nothing but the touched file is needed
        (big / f"d{n % 50}" / f"f{n}.py").unlink()
    assert changes(head, patch).files == (File("d1/f1.py", b"x = 0\n", "100644"),)


NAMES = st.sampled_from(
    [
        "a",
        "b",
        "c.py",
        "with blank",
        "tab\there",
        'quo"te',
        "back\\slash",
        "new\nline",
        "é",
        "\udcff\udcfe",
        "-dash",
        "git~1",
    ]
)
TEXT = st.builds(
    lambda lines, end, last: end.join(lines) + (end if last else b""),
    st.lists(
        st.sampled_from([b"one", b"two", b"", b" three\t", b"-- a", b"+++ b", b"@@ -1 +1 @@"]), max_size=8
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.booleans(),
)
FILE = st.tuples(st.sampled_from(["100644", "100755"]), TEXT | st.binary(max_size=200))
LINK = st.tuples(st.just("120000"), st.sampled_from([b"a", b"../x", b"/etc/passwd", b"gone", b"\xff"]))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Content]:
    """Draw the files of a tree; a name is a file or a folder, not both."""
    found: dict[str, Content] = {}
    for path, content in draw(st.dictionaries(PATHS, FILE | LINK, max_size=8)).items():
        if not any(path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in found):
            found[path] = content
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=trees(), after=trees(), shared=trees())
def test_any_tree_becomes_any_other_through_its_patch(
    before: dict[str, Content], after: dict[str, Content], shared: dict[str, Content]
) -> None:
    def merged(side: dict[str, Content]) -> dict[str, Content]:
        both = dict(side)
        for path, content in shared.items():
            if not any(path == o or path.startswith(f"{o}/") or o.startswith(f"{path}/") for o in both):
                both[path] = content
        return both

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        head = tree(write(root / "head", merged(before)))
        edited = write(root / "edited", merged(after))
        patch = capture(head, edited)
        assert (patch == b"") == (read(head.path) == read(edited))
        materialise(head, patch, root / "out")
        assert read(root / "out") == read(edited)
        found = changes(head, patch)
        left = {path: content for path, content in read(head.path).items() if path not in found.paths}
        assert {**left, **{f.path: (f.mode, f.content) for f in found.files}} == read(edited)
