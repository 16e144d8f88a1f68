"""Suggestions: exactly the lines they name, as bytes, and nothing else."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.agent_tasks import make_task, write_tree

from pytest_crbench.agents import suggestions
from pytest_crbench.agents.suggestions import Edit, SuggestionsAgent, blocks, plan
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.workspace.revision import changes

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crbench.core.model import Revision

FIVE = b"one\ntwo\nthree\nfour\nfive\n"


def comment(
    lines: Any = (2, 2), suggestion: str | None = "NEW", path: str | None = "a.txt", **rest: Any
) -> Any:
    return ReviewComment(
        rest.pop("id", "c"), rest.pop("body", "text"), path, lines, suggestion=suggestion, **rest
    )


def revise(place: Path, head: dict[str, Any], *comments: ReviewComment) -> tuple[Revision, dict[str, bytes]]:
    """Return the revision and what it leaves of the changed files."""
    task = make_task(place, head, comments)
    revision = SuggestionsAgent().revise(task)
    return revision, {f.path: f.content for f in changes(task.head, revision.patch).files}


@pytest.mark.parametrize(
    ("data", "edit", "expected"),
    [
        (FIVE, Edit(2, 2, "NEW"), b"one\nNEW\nthree\nfour\nfive\n"),
        (FIVE, Edit(2, 2, "NEW\n"), b"one\nNEW\nthree\nfour\nfive\n"),
        (FIVE, Edit(2, 3, "a\nb\nc\n"), b"one\na\nb\nc\nfour\nfive\n"),
        (FIVE, Edit(1, 5, "all"), b"all\n"),
        (FIVE, Edit(5, 5, "END"), b"one\ntwo\nthree\nfour\nEND\n"),
        # "" deletes; a line end alone is an empty line.
        (FIVE, Edit(2, 4, ""), b"one\nfive\n"),
        (FIVE, Edit(1, 5, ""), b""),
        (FIVE, Edit(2, 2, "\n"), b"one\n\nthree\nfour\nfive\n"),
        (FIVE, Edit(2, 2, "a\n\n"), b"one\na\n\nthree\nfour\nfive\n"),
        # White space at the ends of lines and of the text is content.
        (FIVE, Edit(2, 2, "  a \n\tb"), b"one\n  a \n\tb\nthree\nfour\nfive\n"),
        # CRLF files stay so, whatever the suggestion was written with.
        (b"a\r\nb\r\nc\r\n", Edit(2, 2, "x\ny\n"), b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", Edit(2, 2, "x\r\ny\r\n"), b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\nb\nc\n", Edit(2, 2, "x\r\ny\r\n"), b"a\nx\ny\nc\n"),
        (b"a\r\nb\nc\r\n", Edit(2, 2, "x"), b"a\r\nx\nc\r\n"),
        # A lone CR is content, as git has it.
        (b"a\rb\nc\n", Edit(2, 2, "x"), b"a\rb\nx\n"),
        # A missing last line end stays missing.
        (b"a\nb", Edit(2, 2, "x\n"), b"a\nx"),
        (b"a\r\nb", Edit(2, 2, "x\ny\n"), b"a\r\nx\r\ny"),
        (b"a", Edit(1, 1, "x\ny"), b"x\ny"),
        (b"a\nb", Edit(1, 1, "x"), b"x\nb"),
        # Line 1 stays byte for byte, so a deleted last line leaves a line end.
        (b"a\nb", Edit(2, 2, ""), b"a\n"),
        # Bytes that are not UTF-8 stay.
        (b"caf\xe9\nb\n\xff\xfe\n", Edit(2, 2, "x"), b"caf\xe9\nx\n\xff\xfe\n"),
        ("é\nb\n".encode(), Edit(2, 2, "ü"), "é\nü\n".encode()),
        # The byte order mark is no part of line 1.
        (b"\xef\xbb\xbfa\nb\n", Edit(1, 1, "x"), b"\xef\xbb\xbfx\nb\n"),
        (b"\xef\xbb\xbfa\nb\n", Edit(1, 1, ""), b"\xef\xbb\xbfb\n"),
    ],
)
def test_one_edit(data: bytes, edit: Edit, expected: bytes) -> None:
    suggestions.check(data, edit)
    assert suggestions.apply(data, [edit]) == expected


@pytest.mark.parametrize(
    ("data", "edit", "why"),
    [
        (FIVE, Edit(5, 6, "x"), "beyond the end"),
        (FIVE, Edit(6, 6, ""), "beyond the end"),
        (b"", Edit(1, 1, "x"), "beyond the end"),
        (FIVE, Edit(0, 1, "x"), "no range"),
        (FIVE, Edit(3, 2, "x"), "no range"),
        (FIVE, Edit(-1, -1, "x"), "no range"),
        (b"a\0b\n", Edit(1, 1, "x"), "binary"),
        (b"caf\xe9\n", Edit(1, 1, "ü"), "not UTF-8"),
        (FIVE, Edit(1, 1, "\ud800"), "surrogate"),
    ],
)
def test_an_edit_that_cannot_be_made(data: bytes, edit: Edit, why: str) -> None:
    with pytest.raises(suggestions.UnfitError, match=why):
        suggestions.check(data, edit)


LINE = st.one_of(st.sampled_from([b"", b"x", b"x", b" \t", b"\r", b"caf\xe9"]), st.binary(max_size=8)).map(
    lambda line: line.replace(b"\n", b"").replace(b"\0", b"")
)


@st.composite
def files_with_edits(draw: st.DrawFn) -> tuple[list[bytes], list[Edit]]:
    ends = st.sampled_from([b"\n", b"\r\n"])
    lines = [draw(LINE) + draw(ends) for _ in range(draw(st.integers(1, 12)))]
    if draw(st.booleans()) and lines[-1].rstrip(b"\r\n"):
        lines[-1] = lines[-1].rstrip(b"\r\n")
    made, at = [], 1
    while at <= len(lines) and len(made) < 4:
        first = draw(st.integers(at, len(lines)))
        last = draw(st.integers(first, min(len(lines), first + 3)))
        made.append(Edit(first, last, draw(st.text("ab \r\n", max_size=8))))
        at = last + 1
    return lines, draw(st.permutations(made))


@settings(max_examples=300, deadline=None)
@given(files_with_edits())
def test_lines_outside_the_named_ranges_are_the_same_bytes(drawn: tuple[list[bytes], list[Edit]]) -> None:
    lines, made = drawn
    bom = b"\xef\xbb\xbf" * lines[0].startswith(b"\xef\xbb\xbf")
    result = suggestions.apply(b"".join(lines), made)
    assert result.startswith(bom)
    result = result[len(bom) :]
    lines[0] = lines[0][len(bom) :]
    at = 1
    for edit in sorted(made, key=lambda e: e.first):
        kept = b"".join(lines[at - 1 : edit.first - 1])
        assert result.startswith(kept)
        result = result[len(kept) :]
        # What stands in place of the range has the suggestion's lines, in order, and nothing else.
        for wanted in edit.text[:-1].split("\n") if edit.text else []:
            found, end, result = result.partition(b"\n")
            assert found in (wanted.encode(), wanted.encode() + b"\r")
            assert end or (edit.last == len(lines) and not lines[-1].endswith(b"\n"))
        at = edit.last + 1
    assert result == b"".join(lines[at - 1 :])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Use this:\n```suggestion\nx = 1\n```\nok?", ["x = 1\n"]),
        ("```suggestion\r\nx = 1\r\ny\r\n```", ["x = 1\ny\n"]),
        ("```suggestion\n```", [""]),
        ("```suggestion\n\n```", ["\n"]),
        ("````suggestion\n```\ncode\n```\n````", ["```\ncode\n```\n"]),
        ("~~~suggestion\nx\n~~~", ["x\n"]),
        ("```suggestion:-0+0\nx\n```", ["x\n"]),
        ("``` suggestion \n    x\n```", ["    x\n"]),
        ("  ```suggestion\n    x\n  ```", ["  x\n"]),
        ("```suggestion\na\n```\n```suggestion\nb\n```", ["a\n", "b\n"]),
        ("```python\nx\n```", []),
        ("````markdown\n```suggestion\nx\n```\n````", []),
        ("    ```suggestion\n    x\n    ```", []),
        ("a ```suggestion``` inline", []),
        ("```suggestion``` inline\nx\n```", []),
        ("```suggestions\nx\n```", []),
        ("", []),
    ],
)
def test_blocks_of_a_body(body: str, expected: list[str]) -> None:
    assert blocks(body) == (expected, [])


@pytest.mark.parametrize(
    ("body", "why"), [("```suggestion\nx", "no end"), ("```suggestion:-1+2\nx\n```", "other lines")]
)
def test_blocks_that_are_left_out(body: str, why: str) -> None:
    found, wrong = blocks(body)
    assert found == []
    assert why in wrong[0]


def test_edits_are_made_bottom_up(tmp_path: Path) -> None:
    revision, files = revise(
        tmp_path, {"a.txt": FIVE}, comment((1, 1), "a\nb\nc"), comment((5, 5), "E"), comment((3, 3), "")
    )
    assert files == {"a.txt": b"a\nb\nc\ntwo\nfour\nE\n"}
    assert revision.warnings == ()
    assert revision.stop_reason == "finished"
    assert revision.usage == {"applied": 3, "repeated": 0, "skipped": 0, "without_suggestion": 0}


def test_only_the_named_file_changes_and_keeps_its_mode(tmp_path: Path) -> None:
    task = make_task(tmp_path, {"run.sh": FIVE, "other.txt": FIVE}, [comment(path="run.sh")])
    (task.head.path / "run.sh").chmod(0o755)
    patch = SuggestionsAgent().revise(task).patch
    made = changes(task.head, patch)
    assert [(f.path, f.mode) for f in made.files] == [("run.sh", "100755")]
    assert (task.head.path / "run.sh").read_bytes() == FIVE


def test_a_read_only_file(tmp_path: Path) -> None:
    task = make_task(tmp_path, {"a.txt": FIVE}, [comment()])
    (task.head.path / "a.txt").chmod(0o444)
    assert changes(task.head, SuggestionsAgent().revise(task).patch).paths == ("a.txt",)
    assert stat.S_IMODE((task.head.path / "a.txt").stat().st_mode) == 0o444


def test_a_block_in_the_body_counts_where_the_field_is_absent(tmp_path: Path) -> None:
    block = "Better:\n```suggestion\nBLOCK\n```"
    _, files = revise(
        tmp_path, {"a.txt": FIVE}, comment((1, 1), None, body=block), comment((2, 2), "F", body=block)
    )
    assert files == {"a.txt": b"BLOCK\nF\nthree\nfour\nfive\n"}


def test_of_several_blocks_the_first_counts(tmp_path: Path) -> None:
    body = "```suggestion\nA\n```\nor\n```suggestion\nB\n```"
    revision, files = revise(tmp_path, {"a.txt": FIVE}, comment((1, 1), None, body=body))
    assert files["a.txt"].startswith(b"A\ntwo")
    assert "only the first counts" in revision.warnings[0]


def test_overlapping_suggestions_the_first_in_review_order_wins(tmp_path: Path) -> None:
    revision, files = revise(
        tmp_path,
        {"a.txt": FIVE},
        comment((3, 4), "FIRST", id="c1"),
        comment((4, 5), "LATER", id="c2"),
        comment((1, 3), "ALSO", id="c3"),
        comment((5, 5), "NEXT", id="c4"),
        comment((2, 2), "BEFORE", id="c5"),
    )
    assert files == {"a.txt": b"one\nBEFORE\nFIRST\nNEXT\n"}
    assert [w.split(":")[0] for w in revision.warnings] == [
        "suggestion of comment c2",
        "suggestion of comment c3",
    ]
    assert "lines 3-4" in revision.warnings[0]
    assert revision.usage["skipped"] == 2


def test_an_identical_suggestion_is_applied_once(tmp_path: Path) -> None:
    revision, files = revise(
        tmp_path, {"a.txt": FIVE}, comment(), comment(suggestion="NEW\n"), comment(path="./a.txt")
    )
    assert files == {"a.txt": b"one\nNEW\nthree\nfour\nfive\n"}
    assert revision.warnings == ()
    assert (revision.usage["applied"], revision.usage["repeated"]) == (1, 2)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (comment(side="left"), "old side"),
        (comment(None), "no lines"),
        (comment(None, level="file"), "no lines"),
        (comment(path=None, level="general"), "no lines"),
        (comment((9, 9)), "beyond the end"),
        (comment((3, 2)), "no range"),
        (comment(path="missing.txt"), "no file"),
        (comment(path="a.txt/b"), "no file"),
        (comment(path="dir"), "not a regular file"),
        (comment(path="bin"), "binary"),
        (comment(path="link.txt"), "symbolic link"),
        (comment(path="linked/inside.txt"), "symbolic link"),
        (comment(path="up/secret.txt"), "symbolic link"),
        (comment(path="../secret.txt"), "not a path within"),
        (comment(path="dir/../../secret.txt"), "not a path within"),
        (comment(path="/etc/passwd"), "not a path within"),
        (comment(path=""), "not a path within"),
        (comment(path="a\0b"), "not a path within"),
        (comment(path=".git/config"), "git's own"),
        (comment(path="dir/.GIT/hooks/x"), "git's own"),
        (comment(path="fifo"), "not a regular file"),
        (comment((1, 1), path="latin.txt", suggestion="ü"), "not UTF-8"),
        (comment((1, 1), suggestion="\udc80"), "surrogate"),
        (comment(suggestion=None, body="```suggestion\nx"), "no end"),
    ],
)
def test_what_cannot_be_applied_is_skipped_and_changes_nothing(
    tmp_path: Path, bad: ReviewComment, why: str
) -> None:
    tree = write_tree(
        tmp_path / "head",
        {"a.txt": FIVE, "dir/inside.txt": FIVE, "bin": b"a\0\nb\nc\n", "latin.txt": b"caf\xe9\n"},
    )
    (tmp_path / "secret.txt").write_bytes(FIVE)
    (tree.path / "link.txt").symlink_to("a.txt")
    (tree.path / "linked").symlink_to("dir")
    (tree.path / "up").symlink_to("..")
    os.mkfifo(tree.path / "fifo")
    made = plan(tree.path, [bad])
    assert not any(made.edits.values())
    assert made.counts["skipped"] == 1
    assert len(made.warnings) == 1
    assert why in made.warnings[0]


def test_symbolic_links_survive(tmp_path: Path) -> None:
    task = make_task(tmp_path, {"a.txt": FIVE}, [comment()])
    (task.head.path / "link").symlink_to("/nowhere")
    assert changes(task.head, SuggestionsAgent().revise(task).patch).paths == ("a.txt",)


def test_comments_without_a_suggestion_change_nothing(tmp_path: Path) -> None:
    revision, files = revise(tmp_path, {"a.txt": FIVE}, comment(suggestion=None), comment(suggestion="two"))
    assert (files, revision.patch) == ({}, b"")
    assert revision.usage["without_suggestion"] == 1
    assert revision.warnings == ()


def test_the_same_review_gives_the_same_patch(tmp_path: Path) -> None:
    wanted = [comment((1, 1), "a"), comment((2, 3), "b"), comment((3, 3), "c")]
    one, _ = revise(tmp_path / "one", {"a.txt": FIVE}, *wanted)
    two, _ = revise(tmp_path / "two", {"a.txt": FIVE}, *wanted)
    assert one.patch == two.patch != b""
