"""The map of a diff: which places it shows, on both sides, whatever the names are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.git_diffs import diff_of

from pytest_crbench.text.diffs import DiffMap, unquoted

if TYPE_CHECKING:
    from pathlib import Path


def lines(count: int, **changed: bytes) -> bytes:
    return b"".join(changed.get(f"n{n}", b"line %d" % n) + b"\n" for n in range(1, count + 1))


def test_hunks_with_their_context_on_both_sides(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, {"a.py": lines(40)}, {"a.py": b"new\nnew\n" + lines(40, n30=b"other")})
    shown = DiffMap(diff).shows
    assert shown("a.py", "right", (1, 1))
    assert shown("a.py", "right", (32, 32))
    assert shown("a.py", "right", (29, 29))
    assert not shown("a.py", "right", (28, 28))
    assert not shown("a.py", "right", (10, 20))
    assert shown("a.py", "right", (10, 29))
    assert shown("a.py", "left", (30, 30))
    assert not shown("a.py", "left", (34, 40))
    assert not shown("b.py", "right", (1, 1))
    assert not shown("b.py", "right", None)


def test_a_renamed_file_is_one_file_under_both_names(tmp_path: Path) -> None:
    found = DiffMap(diff_of(tmp_path, {"old.py": lines(40)}, {"new.py": lines(40, n20=b"other")}))
    assert found.renames == {"old.py": "new.py"}
    assert found.paths == {"old.py", "new.py"}
    for name in ("old.py", "new.py"):
        assert found.shows(name, "right", (20, 20))
        assert found.shows(name, "left", (20, 20))
        assert not found.shows(name, "right", (1, 2))


def test_added_deleted_binary_and_pure_renames(tmp_path: Path) -> None:
    base = {"gone.py": lines(3), "same.py": lines(50), "data.bin": b"\0\1"}
    head = {"here.py": b"x\n", "moved.py": lines(50), "data.bin": b"\0\2"}
    found = DiffMap(diff_of(tmp_path, base, head))
    by_name = {(f.old, f.new): f for f in found.files}
    assert set(by_name) == {
        ("gone.py", None),
        (None, "here.py"),
        ("same.py", "moved.py"),
        ("data.bin", "data.bin"),
    }
    assert found.shows("gone.py", "left", (2, 2))
    assert not found.shows("gone.py", "right", (1, 1))
    assert found.shows("here.py", "right", (1, 1))
    assert found.shows("data.bin", "right", (1, 1))
    assert not found.shows("moved.py", "right", (1, 50))
    assert found.notes == ()


ODD = [
    "with blank.py",
    "a b/b a b.py",
    'quo"te.py',
    "tab\there.py",
    "new\nline.py",
    "back\\slash.py",
    "é.py",
    "x b/x.py",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    base = {name: b"1\n", f"data {name}": b"\0", f"gone {name}": b""}
    diff = diff_of(tmp_path, base, {name: b"2\n", f"data {name}": b"\1\0", f"empty {name}": b"e"})
    found = DiffMap(diff)
    assert found.paths == {name, f"data {name}", f"gone {name}", f"empty {name}"}
    assert found.shows(name, "right", (1, 1))
    assert found.shows(f"data {name}", "right", (7, 7))
    assert found.notes == ()


def test_octal_escapes_of_other_gits_are_decoded() -> None:
    old, new = b'"a/\\303\\251.py"', b'"b/\\303\\251.py"'
    diff = b"diff --git %s %s\n--- %s\n+++ %s\n@@ -1 +1 @@\n-a\n+b\n" % (old, new, old, new)
    assert DiffMap(diff).paths == {"é.py"}


def test_removed_lines_that_look_like_headers_are_content(tmp_path: Path) -> None:
    diff = diff_of(
        tmp_path, {"a.sql": b"-- comment\n++ x\n"}, {"a.sql": b"diff --git a/x b/x\n@@ -9,9 +9,9 @@\n"}
    )
    found = DiffMap(diff)
    assert found.paths == {"a.sql"}
    assert [f.right for f in found.files] == [((1, 2),)]


def test_a_file_whose_hunks_are_cut_off_counts_as_a_whole_and_says_so(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, {"a.py": lines(40)}, {"a.py": lines(40, n20=b"x")})
    for end in (diff.index(b"+x"), diff.index(b"@@ ")):
        found = DiffMap(diff[:end])
        assert found.shows("a.py", "right", (23, 23))
        assert found.shows("a.py", "left", (40, 40))
        assert not found.shows("b.py", "right", (23, 23))
        assert len(found.notes) == 1
        assert found.notes[0].startswith("a.py: ")


@pytest.mark.parametrize("diff", [b"--- a.py\n+++ a.py\n", b"diff --git \n@@ -1 +1 @@\n-a\n+b\n"])
def test_a_part_that_does_not_tell_its_file_condemns_no_comment(diff: bytes) -> None:
    assert DiffMap(diff).shows("any.py", "right", (1, 1))


DIFF = b"""diff --git a/old name.py b/new name.py
similarity index 76%
rename from old name.py
rename to new name.py
--- a/old name.py\t
+++ b/new name.py\t
@@ -10,4 +10,3 @@ def f():
 a
-b
-c
+d\xff\x0c\xe2\x80\xa8 e\r
 f
@@ -40,2 +39,0 @@
-x
-y
diff --git "a/\\303\\244.py" "b/\\303\\244.py"
new file mode 100644
--- /dev/null
+++ "b/\\303\\244.py"
@@ -0,0 +1,2 @@
+1
+2
\\ No newline at end of file
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-d
diff --git a/pic.png b/pic.png
index 20b5be9..88f3700 100644
Binary files a/pic.png and b/pic.png differ
diff --git a/mode.sh b/mode.sh
old mode 100644
new mode 100755
"""


@pytest.mark.parametrize(
    ("path", "side", "lines", "wanted"),
    [
        ("new name.py", "right", (10, 10), True),
        ("new name.py", "right", (12, 40), True),
        ("new name.py", "right", (13, 13), False),
        ("new name.py", "left", (13, 13), True),
        ("new name.py", "left", (40, 41), True),
        ("new name.py", "right", (39, 39), False),
        ("old name.py", "right", (10, 10), True),
        ("ä.py", "right", (2, 2), True),
        ("ä.py", "right", (3, 3), False),
        ("ä.py", "left", (1, 1), False),
        ("gone.py", "left", (1, 1), True),
        ("gone.py", "right", (1, 1), False),
        ("pic.png", "right", None, True),
        ("pic.png", "right", (7, 7), True),
        ("mode.sh", "right", None, True),
        ("other.py", "right", None, False),
    ],
)
def test_what_a_diff_shows(path: str, side: str, lines: tuple[int, int] | None, wanted: bool) -> None:
    diff = DiffMap(DIFF)
    assert diff.shows(path, side, lines) is wanted
    assert diff.notes == ()
    assert diff.removed == ("gone.py",)
    assert diff.renames == {"old name.py": "new name.py"}


@given(st.binary(max_size=300) | st.integers(0, len(DIFF)).map(lambda n: DIFF[:n] + DIFF[n + 7 :]))
def test_any_bytes_can_be_asked(data: bytes) -> None:
    DiffMap(data).shows("a.py", "right", (1, 2))


def test_a_broken_part_condemns_no_comment_on_it() -> None:
    broken = DIFF + b"diff --git a/z.py b/z.py\n--- a/z.py\n+++ b/z.py\n@@ -1,3 +1,3 @@\nzzz\n"
    diff = DiffMap(broken)
    assert len(diff.notes) == 1
    assert diff.shows("z.py", "right", (1, 1))
    assert not diff.shows("new name.py", "right", (99, 99))


@pytest.mark.parametrize(("diff", "notes"), [(b"", 0), (b"\n", 0), (b"no diff at all\n", 1)])
def test_no_diff_shows_nothing(diff: bytes, notes: int) -> None:
    found = DiffMap(diff)
    assert found.paths == frozenset()
    assert len(found.notes) == notes


PIECES = [
    b"diff --git ",
    b"a/x",
    b' "b/y',
    b"\n",
    b"--- ",
    b"+++ ",
    b"@@ -1,3 +1 @@",
    b"@@ -0,0 +1 @@\n",
    b"rename from ",
    b"\\777",
    b"\xff",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=25).map(b"".join))
def test_nothing_makes_it_raise(diff: bytes) -> None:
    found = DiffMap(diff)
    found.shows("x", "right", (1, 1))
    assert isinstance(found.notes, tuple)
    assert isinstance(found.renames, dict)


@given(st.binary(max_size=30))
def test_unquoting_takes_any_bytes(raw: bytes) -> None:
    assert unquoted(b"x" + raw) == b"x" + raw
    assert isinstance(unquoted(b'"' + raw + b'"'), bytes)
