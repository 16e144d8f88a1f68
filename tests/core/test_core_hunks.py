"""The hunks of real diffs: every line has its number, on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.git_diffs import diff_of

from pytest_crbench.text.hunks import hunks

if TYPE_CHECKING:
    from pathlib import Path


def test_every_line_is_the_files_own_at_its_number(tmp_path: Path) -> None:
    old = b"".join(b"line %d\n" % n for n in range(1, 61))
    new = b"first\n" + old.replace(b"line 20\n", b"").replace(b"line 41\n", b"--- a\n+++ b\n@@ -1 +1 @@\n")
    base = {"a.py": old, "gone.py": b"x\ny\n", "b.bin": b"a\0", "crlf": b"a\r\nb\r\n", "moved.py": old}
    head = {
        "a.py": new,
        "new.py": b"z",
        "b.bin": b"b\0",
        "crlf": b"a\r\nc\r\n",
        "to/moved.py": old + b"end\n",
    }
    found, notes = hunks(diff_of(tmp_path, base, head))
    assert notes == ()
    assert [(h.old, h.new, h.header) for h in found] == [
        ("a.py", "a.py", "@@ -1,3 +1,4 @@"),
        ("a.py", "a.py", "@@ -17,7 +18,6 @@"),
        ("a.py", "a.py", "@@ -38,7 +38,9 @@"),
        ("crlf", "crlf", "@@ -1,2 +1,2 @@"),
        ("gone.py", None, "@@ -1,2 +0,0 @@"),
        (None, "new.py", "@@ -0,0 +1 @@"),
        ("moved.py", "to/moved.py", "@@ -58,3 +58,4 @@"),
    ]
    for hunk in found:
        for name, files, shown in ((hunk.old, base, hunk.left), (hunk.new, head, hunk.right)):
            lines = files[name].decode().split("\n") if name else []
            assert [text for _, text in shown] == [lines[number - 1] for number, _ in shown]
    assert found[4].path == "gone.py"
    assert found[5].text.endswith("\\ No newline at end of file")
    assert found[2].changed.split("\n")[3:7] == ["line 41", "--- a", "+++ b", "@@ -1 +1 @@"]


@pytest.mark.parametrize(
    "body", ["@@ -1,2 +1,2 @@\n one\n", "@@ -1 +1 @@\n-a\n+b\nnonsense\n@@ -9 +9 @@\n x\n"]
)
def test_a_hunk_that_does_not_add_up_is_left_out_and_said(body: str) -> None:
    found, notes = hunks(f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n{body}".encode())
    whole = body.count("@@ -") - (1 if "-1,2" in body else 0)
    assert len(found) == whole
    assert all("a.py: a hunk does not have the lines" in note for note in notes)
    assert bool(notes) == ("-1,2" in body)
