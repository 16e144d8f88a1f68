"""Unpacking: byte-exact for honest archives, and nothing outside the tree for the others."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.archives import sdist, zipped

from pytest_crbench.core.errors import InvalidInstanceError
from pytest_crbench.host import digest
from pytest_crbench.host.trees import discard
from pytest_crbench.sources.archives import unpack
from pytest_crbench.sources.writer import Bounds, TreeWriter

LINK = {"type": tarfile.SYMTYPE}


def tree(tmp_path, name, content, bounds=None):
    """Unpack ``content`` in a folder whose neighbours show whether something left it."""
    (tmp_path / "archives").mkdir(exist_ok=True)
    (tmp_path / "archives" / name).write_bytes(content)
    root = tmp_path / "in" / "tree"
    root.mkdir(parents=True)
    log: list[str] = []
    writer = TreeWriter(root, name, log.append, bounds)
    unpack(tmp_path / "archives" / name, writer)
    writer.finish()
    return root, log


def refuse(tmp_path, name, content, match, bounds=None):
    with pytest.raises(InvalidInstanceError, match=match) as caught:
        tree(tmp_path, name, content, bounds)
    assert name in str(caught.value)
    allowed = {"archives", "in", "in/tree"}
    outside = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")} - allowed
    assert {p for p in outside if not p.startswith(("archives/", "in/tree/"))} == set()


def test_an_sdist_is_unpacked_byte_for_byte(tmp_path):
    content = sdist(
        ("a-1/", b"", {"type": tarfile.DIRTYPE}),
        ("a-1/crlf.txt", b"one\r\ntwo\r\n"),
        ("a-1/no-newline", b"\x00\xff end"),
        ("a-1/run.sh", b"#!/bin/sh\n", {"mode": 0o755}),
        ("a-1/group-only.sh", b"x", {"mode": 0o674}),
        ("a-1/deep/er/é.py", b""),
        ("a-1/link.py", b"", {**LINK, "linkname": "deep/er"}),
        ("a-1/dangling", b"", {**LINK, "linkname": "nowhere"}),
        ("a-1/hard.txt", b"", {"type": tarfile.LNKTYPE, "linkname": "a-1/crlf.txt"}),
        ("a-1/.gitattributes", b"*.txt eol=lf\n"),
    )
    root, _ = tree(tmp_path, "a-1.tar.gz", content)
    assert list(digest.walk(root)) == [
        (".gitattributes", "100644", b"*.txt eol=lf\n"),
        ("crlf.txt", "100644", b"one\r\ntwo\r\n"),
        ("dangling", "120000", b"nowhere"),
        ("deep/er/é.py", "100644", b""),
        ("group-only.sh", "100644", b"x"),
        ("hard.txt", "100644", b"one\r\ntwo\r\n"),
        ("link.py", "120000", b"deep/er"),
        ("no-newline", "100644", b"\x00\xff end"),
        ("run.sh", "100755", b"#!/bin/sh\n"),
    ]


def test_names_that_are_not_utf_8_are_kept(tmp_path):
    name = os.fsdecode(b"a-1/caf\xe9\nx.py")
    root, _ = tree(tmp_path, "a-1.tar.gz", sdist((name, b"1")))
    assert [os.fsencode(p) for p, _, _ in digest.walk(root)] == [b"caf\xe9\nx.py"]


def test_nothing_of_a_tree_can_be_written_to(tmp_path):
    root, _ = tree(tmp_path, "a-1.tar.gz", sdist(("a-1/d/f", b"1", {"mode": 0o777})))
    for path in (root, root / "d", root / "d" / "f"):
        assert not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    discard(root)
    assert not root.exists()


def test_a_wheel_keeps_its_folders(tmp_path):
    content = zipped(
        ("a/__init__.py", b"x\r\n"), ("a-1.dist-info/METADATA", b""), ("a/s", b"", {"mode": 0o100755})
    )
    root, _ = tree(tmp_path, "a-1-py3-none-any.whl", content)
    assert [(p, m) for p, m, _ in digest.walk(root)] == [
        ("a-1.dist-info/METADATA", "100644"),
        ("a/__init__.py", "100644"),
        ("a/s", "100755"),
    ]


def test_a_zip_sdist_is_stripped_and_its_links_are_links(tmp_path):
    content = zipped(("a-1/f", b"1", {"mode": 0}), ("a-1/l", b"f", {"mode": stat.S_IFLNK | 0o777}))
    root, _ = tree(tmp_path, "a-1.zip", content)
    assert list(digest.walk(root)) == [("f", "100644", b"1"), ("l", "120000", b"f")]


def test_a_later_entry_replaces_an_earlier_one(tmp_path):
    content = sdist(
        ("a-1/f", b"first", {"mode": 0o755}),
        ("a-1/g", b"", {**LINK, "linkname": "f"}),
        ("a-1/f", b"second"),
        ("a-1/g", b"file"),
    )
    root, _ = tree(tmp_path, "a-1.tar.gz", content)
    assert list(digest.walk(root)) == [("f", "100644", b"second"), ("g", "100644", b"file")]


def test_git_folders_are_left_out_and_told(tmp_path):
    content = sdist(
        ("a-1/.git/config", b"[core]\nfsmonitor = evil\n"), ("a-1/x/.GIT/hooks/h", b""), ("a-1/f", b"")
    )
    root, log = tree(tmp_path, "a-1.tar.gz", content)
    assert [p for p, _, _ in digest.walk(root)] == ["f"]
    assert log == ["a-1.tar.gz: left out 2 entries below a .git folder"]


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        (("../evil", b"x"), "a path that leaves the tree"),
        (("a-1/../../evil", b"x"), "a path that leaves the tree"),
        (("/evil", b"x"), "a path that leaves the tree"),
        (("a-1/../../evil/", b"", {"type": tarfile.DIRTYPE}), "a path that leaves the tree"),
        (("a-1/l", b"", {**LINK, "linkname": "../evil"}), "a link to '../evil', which leaves the tree"),
        (("a-1/l", b"", {**LINK, "linkname": "/etc/passwd"}), "a link to '/etc/passwd', which leaves"),
        (("a-1/l", b"", {**LINK, "linkname": "d/../../tree/f"}), "which leaves the tree"),
        (("a-1/h", b"", {"type": tarfile.LNKTYPE, "linkname": "../../etc/passwd"}), "leaves the tree"),
        (("a-1/h", b"", {"type": tarfile.LNKTYPE, "linkname": "a-1/none"}), "no earlier file"),
        (("a-1/h", b"", {"type": tarfile.LNKTYPE, "linkname": "b-1/f"}), "more than one top folder"),
        (("a-1/null", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}), "neither a file nor"),
        (("a-1/sda", b"", {"type": tarfile.BLKTYPE}), "neither a file nor"),
        (("a-1/pipe", b"", {"type": tarfile.FIFOTYPE}), "neither a file nor"),
        (("b-1/f", b""), "more than one top folder"),
        (("a-1", b"a file"), "has no top folder"),
        (("a-1/f/below-a-file", b""), "in conflict with another entry"),
        (("a-1/" + "n" * 300, b""), "in conflict with another entry or no file name"),
    ],
)
def test_hostile_tar_entries(tmp_path, entry, match):
    refuse(tmp_path, "a-1.tar.gz", sdist(("a-1/f", b"1"), entry), match)


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        (("../evil", b"x"), "a path that leaves the tree"),
        (("/evil", b"x"), "a path that leaves the tree"),
        (("a/l", b"../../evil", {"mode": stat.S_IFLNK | 0o777}), "which leaves the tree"),
        (("a/c", b"", {"mode": stat.S_IFCHR | 0o666}), "neither a file nor"),
        (("a/p", b"", {"mode": stat.S_IFIFO | 0o666}), "neither a file nor"),
    ],
)
def test_hostile_wheel_entries(tmp_path, entry, match):
    refuse(tmp_path, "a-1-py3-none-any.whl", zipped(("a/f", b"1"), entry), match)


def test_a_file_is_never_written_through_a_link(tmp_path):
    """The classic: a link to a folder outside, then a file "inside" the link."""
    content = sdist(("a-1/d", b"", {**LINK, "linkname": "e"}), ("a-1/d/evil", b"x"), ("a-1/e/f", b""))
    refuse(tmp_path, "a-1.tar.gz", content, "in conflict with another entry")


def test_links_that_leave_by_way_of_other_links(tmp_path):
    """``d/here`` is ``d`` itself, so ``d/here/here/../../..`` climbs higher than its words say."""
    content = sdist(
        ("a-1/d/e/f", b""),
        ("a-1/d/e/up", b"", {**LINK, "linkname": "../.."}),
        ("a-1/out", b"", {**LINK, "linkname": "d/e/up/../../evil"}),
    )
    refuse(tmp_path, "a-1.tar.gz", content, "through another link")


def test_a_bomb_of_bytes(tmp_path):
    bounds = Bounds(size=1_000_000)
    refuse(tmp_path, "a-1.tar.gz", sdist(("a-1/f", b"\0" * 1_000_001)), "1000001 bytes long", bounds)
    content = sdist(*((f"a-1/f{n}", b"\0" * 300_000) for n in range(4)))
    discard(tmp_path / "in")
    refuse(tmp_path, "a-1.tar.gz", content, "more than the 1000000 bytes", bounds)
    discard(tmp_path / "in")
    refuse(tmp_path, "a-1.zip", zipped(("a-1/f", b"\0" * 1_000_001)), "more than the 1000000 bytes", bounds)


def test_a_bomb_of_hard_links(tmp_path):
    links = [(f"a-1/h{n}", b"", {"type": tarfile.LNKTYPE, "linkname": "a-1/f"}) for n in range(5)]
    content = sdist(("a-1/f", b"\0" * 300_000), *links)
    refuse(tmp_path, "a-1.tar.gz", content, "more than the 1000000 bytes", Bounds(size=1_000_000))


def test_a_bomb_of_entries(tmp_path):
    content = sdist(*((f"a-1/{n}", b"") for n in range(12)))
    refuse(tmp_path, "a-1.tar.gz", content, "one of more than 10 entries", Bounds(entries=10))


def test_a_bomb_in_a_header(tmp_path):
    """A pax header of 100 MB, a few kB when packed, would be read into memory whole."""
    info = tarfile.TarInfo("a-1/f")
    info.type = tarfile.XHDTYPE
    info.size = 100 * 1024**2
    content = gzip.compress(info.tobuf() + b"\0" * info.size + b"\0" * 1024, 9)
    refuse(tmp_path, "a-1.tar.gz", content, "has a header of 104857600 bytes")


def test_a_zip_that_lies_about_a_size(tmp_path):
    """What an entry unpacks to is bounded, whatever the directory of the archive says."""
    content = bytearray(zipped(("a-1/f", b"\0" * 2_000_000)))
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        real = packed.infolist()[0].file_size
    at = content.rfind(real.to_bytes(4, "little"))
    content[at : at + 4] = (10).to_bytes(4, "little")
    refuse(tmp_path, "a-1.zip", bytes(content), "cannot be unpacked", Bounds(size=1_000_000))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a-1.tar.gz", b"not a gzip file"),
        ("a-1.tar.gz", b""),
        ("a-1.tar.gz", gzip.compress(b"not a tar archive" * 100)),
        ("a-1.tar.gz", sdist(("a-1/f", os.urandom(100_000)))[:50_000]),
        ("a-1.zip", b"PK\x03\x04 no directory"),
        ("a-1-py3-none-any.whl", b""),
    ],
    # Of the contents, some differ between two processes: pytest-xdist wants the same ids in all.
    ids=["no gzip", "empty", "no tar", "cut", "no zip directory", "empty wheel"],
)
def test_damaged_archives(tmp_path, name, content):
    refuse(tmp_path, name, content, "cannot be unpacked")


PATHS = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "", ".git"]), min_size=1, max_size=4).map(
    "/".join
)
ENTRIES = st.lists(st.tuples(st.sampled_from("fffslh"), PATHS, PATHS), max_size=8)


@given(ENTRIES)
@settings(max_examples=150, deadline=None)
def test_whatever_the_entries_nothing_leaves_the_tree(entries):
    kinds = {"s": tarfile.SYMTYPE, "l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE}
    made = []
    for kind, name, target in entries:
        if kind == "f":
            made.append((f"a-1/{name}", b"x"))
        else:
            to = f"a-1/{target}" if kind == "h" else target
            made.append((f"a-1/{name}", b"", {"type": kinds[kind], "linkname": to}))
    with tempfile.TemporaryDirectory() as folder:
        outer = Path(folder)
        (outer / "secret").write_text("secret")
        (outer / "x").mkdir()
        try:
            root, _ = tree(outer / "x", "a-1.tar.gz", sdist(*made))
        except InvalidInstanceError:
            root = None
        inside = outer / "x" / "in" / "tree"
        seen = {p.relative_to(outer).as_posix() for p in outer.rglob("*") if not p.is_relative_to(inside)}
        assert seen == {"secret", "x", "x/archives", "x/archives/a-1.tar.gz", "x/in"}
        if root is not None:
            for path, mode, _ in digest.walk(root):
                led = os.path.realpath(root / path)
                assert (led + "/").startswith(os.path.realpath(root) + "/"), (path, mode)
                assert ".git" not in path.split("/")
        discard(outer / "x")
