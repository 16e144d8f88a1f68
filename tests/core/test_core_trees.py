"""Trees are listed, copied and removed as they are, whatever their modes and links."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_crbench.host import digest
from pytest_crbench.host.trees import discard, remove, scan, writable_copy

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "a/b").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git/config").write_text("x")
    (root / "a/run").write_text("#!/bin/sh\n")
    (root / "a/run").chmod(0o555)
    (root / "a/b/f").write_text("1")
    (root / "a-b").write_text("2")
    (root / "up").symlink_to("../outside")
    os.mkfifo(root / "pipe")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("kept")
    return root


def test_what_is_in_a_tree(tree: Path) -> None:
    found = [(path, entry.mode, entry.read()) for path, entry in scan(tree).items()]
    assert found == [
        ("a-b", "100644", b"2"),
        ("a/b/f", "100644", b"1"),
        ("a/run", "100755", b"#!/bin/sh\n"),
        ("up", "120000", b"../outside"),
    ]
    assert list(digest.walk(tree)) == found


def test_a_file_that_became_a_link_is_not_read(tree: Path) -> None:
    entry = scan(tree)["a/b/f"]
    entry.place.unlink()
    entry.place.symlink_to(tree.parent / "outside/kept")
    with pytest.raises(OSError, match="symbolic links"):
        entry.read()


def test_a_copy_of_a_read_only_tree_can_be_worked_in(tree: Path) -> None:
    (tree / "pipe").unlink()
    (tree / "a/b/f").chmod(0o444)
    (tree / "a/b").chmod(0o555)
    copy = tree.parent / "copy"
    writable_copy(tree, copy)
    assert (copy / "a/b").stat().st_mode & 0o200
    assert (copy / "a/b/f").stat().st_mode & 0o200
    assert (copy / "a/run").stat().st_mode & 0o111
    assert digest.of_tree(copy) == digest.of_tree(tree)


@pytest.mark.parametrize("take_away", [discard, remove])
def test_removal_opens_what_is_closed_and_follows_no_link(tree: Path, take_away: object) -> None:
    assert callable(take_away)
    for folder in (tree / "a/b", tree / "a", tree):
        folder.chmod(0o000)
    take_away(tree)
    assert not tree.exists()
    link = tree.parent / "link"
    link.symlink_to("outside")
    take_away(link)
    assert not link.is_symlink()
    take_away(tree)
    assert (tree.parent / "outside/kept").read_text() == "kept"


def test_what_cannot_be_removed_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "rmdir", refuse)
    assert not remove(tree)
    with pytest.raises(PermissionError):
        discard(tree)
