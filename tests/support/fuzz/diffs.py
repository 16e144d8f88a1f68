# ruff: noqa: E501, PTH
"""Unified diffs, suggestion blocks, and the edits that suggestions make."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from pytest_crbench.agents.suggestions import Edit, UnfitError, apply, blocks, check, plan
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.text.diffs import DiffMap, unquoted
from pytest_crbench.text.hunks import hunks
from pytest_crbench.text.suggestion_blocks import suggestion_blocks

from .review_shapes import DIFF, HEAD
from .shapes import mutated
from .source import NASTY, Source, either
from .target import Target, refused

_SAMPLES = [
    DIFF,
    b"diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
    b'diff --git "a/\\303\\251" "b/\\303\\251"\nnew file mode 100644\n--- /dev/null\n+++ "b/\\303\\251"\n@@ -0,0 +1 @@\n+a\n',
    b"diff --git a/b.bin b/b.bin\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n",
    b"diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n",
    b"diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -1,2 +1 @@ def f():\n x\n-y\n\\ No newline at end of file\n",
]


def targets() -> list[Target]:
    """Reading diffs, and all that is done with lines."""
    return [
        Target("diff", either(mutated(_SAMPLES), lambda s: s.octets(s.below(80)), _lines), _read),
        Target("diff-positions", _pair, _positions),
        Target("suggestion-blocks", _body, _blocks),
        Target("suggestion-edits", _suggestions, _apply),
    ]


def _lines(source: Source) -> bytes:
    heads = (
        b"diff --git a/a b/a",
        b"--- a/a",
        b"+++ b/a",
        b"@@ -1,2 +1,2 @@",
        b"@@ -9999999999999999999 +1 @@",
        b" x",
    )
    more = (
        b"-y",
        b"+z",
        b"\\ No newline at end of file",
        b"rename from \xff",
        b"new file mode 1",
        b"@@ -0,0 +1 @@",
        b"",
        b"\r",
    )
    return b"\n".join(source.pick(heads + more) for _ in range(source.below(14))) + b"\n"


def _read(raw: bytes, _folder: Path) -> None:
    found = DiffMap(raw)
    json.dumps([sorted(found.paths), found.removed, dict(found.renames), found.notes])
    cut, notes = hunks(raw)
    for note in (*found.notes, *notes):
        note.encode()
        assert len(note) < 1000
    for hunk in cut:
        hunk.text.encode()
        assert hunk.header
        for shown in (hunk.left, hunk.right):
            numbers = [number for number, _ in shown]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    for file in found.files:
        for first, last in (*file.left, *file.right):
            assert 0 <= first <= last + 1
        for path in (file.old, file.new):
            if path is not None:
                path.encode()
                assert found.shows(path, "right", None)
    found.shows("other", "left", (1, 10**9))
    assert unquoted(unquoted(raw)) is not None


def _pair(source: Source) -> Any:
    return [[source.text(2, "ab") for _ in range(source.below(30))] for _ in range(2)]


def _positions(pair: Any, _folder: Path) -> None:
    """A diff shows exactly the lines that the texts' own comparison puts into its hunks."""
    old, new = ([line + "\n" for line in lines] for lines in pair)
    hunks = list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3))
    text = "".join(difflib.unified_diff(old, new, "a/f", "b/f"))
    # difflib counts its own way where texts are popular: both sides of the comparison must be its own.
    if not hunks or not text:
        return
    found = DiffMap(f"diff --git a/f b/f\n{text}".encode())
    (file,) = found.files
    assert not file.note
    for side, at, lines in (("left", 1, old), ("right", 3, new)):
        wanted = {n + 1 for group in hunks for n in range(group[0][at], group[-1][at + 1])}
        shown = {n for n in range(1, len(lines) + 1) if found.shows("f", side, (n, n))}
        assert shown == wanted, side


def _body(source: Source) -> str:
    parts = (
        "```suggestion\n",
        "```\n",
        "~~~suggestion\n",
        "~~~\n",
        "````\n",
        "x\n",
        "\r\n",
        "  ",
        "\t",
        "`",
        "suggestion:-1+2",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.below(12)))


def _blocks(body: str, _folder: Path) -> None:
    lines = body.count("\n") + 1
    for first, last, text in suggestion_blocks(body):
        assert 0 <= first < last < lines
        assert not text or text.endswith("\n")
    found, _wrong = blocks(body)
    assert all(not text or text.endswith("\n") for text in found)


def _suggestions(source: Source) -> list[ReviewComment]:
    paths = (
        *HEAD,
        "../a.py",
        "/a.py",
        ".git/config",
        "b",
        "none",
        "\0",
        "\ud800",
        "a.py/x",
        "link",
        "x" * 5000,
    )
    return [
        ReviewComment(
            id="1",
            body=_body(source),
            path=source.pick(paths),
            lines=(source.between(1, 4), source.between(0, 5)) if source.chance(4) else (1, 2),
            suggestion=source.pick([None, "", "x\n", "é", "\ud800", "a\r\nb", "\n"]),
        )
        for _ in range(source.below(5))
    ]


def _apply(comments: list[ReviewComment], folder: Path) -> None:
    """Whatever suggestions say, only lines of the tree's own files change."""
    root = folder / "tree"
    if not root.exists():
        for path, text in HEAD.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        (root / "link").symlink_to(folder)
    made = plan(root, comments)
    assert sum(made.counts.values()) == len(comments)
    assert set(made.edits) <= set(HEAD)
    for path, edits in made.edits.items():
        data = HEAD[path].encode()
        apply(data, edits)
    for warning in made.warnings:
        warning.encode()
    for comment in comments:
        with refused(UnfitError):
            edit = Edit(*(comment.lines or (1, 1)), comment.suggestion or "")
            check(b"one\ntwo", edit)
            apply(b"one\ntwo", [edit])
