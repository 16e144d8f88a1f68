"""Flags and ids of a whole review, and what of a diff they rest on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_crbench.core.model import ReviewComment
from pytest_crbench.reviewers.diffmap import read_diff
from pytest_crbench.reviewers.normalise import normalise
from pytest_crbench.reviewers.reading import read_review

if TYPE_CHECKING:
    from pathlib import Path


def comment(body: str = "b", lines: Any = (1, 1), **changes: Any) -> ReviewComment:
    return ReviewComment("", body, changes.pop("path", "a.py"), lines, **changes)


def everywhere(path: str, side: str, lines: tuple[int, int]) -> bool:
    return True


def test_duplicates_are_flagged_and_kept() -> None:
    found = normalise(
        [
            comment("Say  why."),
            comment("say why. "),
            comment("Say why.", (2, 2)),
            comment("Say why.", side="left"),
        ],
        in_diff=everywhere,
    )
    assert [c.flags for c in found] == [(), ("duplicate",), (), ()]
    assert len({c.id for c in found}) == 4


def test_ids_rest_on_content_not_on_order() -> None:
    a, b = comment("a"), comment("b")
    forward = normalise([a, b, a], in_diff=everywhere)
    backward = normalise([b, a], in_diff=everywhere)
    assert forward[0].id == backward[1].id
    assert forward[1].id == backward[0].id
    assert forward[2].id == f"{forward[0].id}-2"
    assert normalise([replace(a, flags=("clipped",))], in_diff=everywhere)[0].id == forward[0].id


@given(
    st.lists(
        st.builds(
            ReviewComment,
            id=st.just(""),
            body=st.sampled_from(["a", "b"]),
            path=st.sampled_from([None, "x", "y"]),
            lines=st.sampled_from([None, (1, 1), (2, 3)]),
        )
    )
)
def test_as_many_out_as_in(comments: list[ReviewComment]) -> None:
    found = normalise(comments, in_diff=lambda p, s, n: p == "x")
    assert [(c.path, c.lines, c.body) for c in found] == [(c.path, c.lines, c.body) for c in comments]
    assert len({c.id for c in found}) == len(comments)


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
        ("pic.png", "right", (0, 0), True),
        ("mode.sh", "right", (0, 0), True),
        ("other.py", "right", (0, 0), False),
    ],
)
def test_what_a_diff_shows(path: str, side: str, lines: tuple[int, int], wanted: bool) -> None:
    diff = read_diff(DIFF)
    assert diff.in_diff(path, side, lines) is wanted
    assert diff.unread == 0
    assert diff.removed == ("gone.py",)
    assert diff.renames == {"old name.py": "new name.py"}


@given(st.binary(max_size=300) | st.integers(0, len(DIFF)).map(lambda n: DIFF[:n] + DIFF[n + 7 :]))
def test_any_bytes_can_be_asked(data: bytes) -> None:
    read_diff(data).in_diff("a.py", "right", (1, 2))


def test_a_broken_part_condemns_no_comment_on_it() -> None:
    broken = DIFF + b"diff --git a/z.py b/z.py\n--- a/z.py\n+++ b/z.py\n@@ -1,3 +1,3 @@\nzzz\n"
    diff = read_diff(broken)
    assert diff.unread == 1
    assert diff.in_diff("z.py", "right", (1, 1))
    assert not diff.in_diff("new name.py", "right", (99, 99))


def test_a_whole_reading(project: Any, tmp_path: Path) -> None:
    items = [
        {"path": "app/core.py", "line": 6, "body": "in"},
        {"path": "app/core.py", "line": 6, "body": "in"},
        {"path": "app/core.py", "line": 500, "body": "beyond"},
        {"path": "other.py", "line": 1, "body": "other"},
        {"path": "gone.py", "line": 1, "body": "wrong side"},
        {"path": "gone.py", "line": 1, "side": "left", "body": "right side"},
        {"body": "general"},
        {"path": "/etc/passwd", "line": 1, "body": "else"},
    ]
    review = read_review(
        json.dumps(items).encode(),
        format="native",
        task=project.task(tmp_path),
        workspace=None,
        reviewer="r",
        raw_name="review.out",
    )
    assert [c.flags for c in review.comments] == [
        (),
        ("duplicate",),
        ("beyond-file", "outside-diff"),
        ("outside-diff",),
        ("outside-diff", "other-side"),
        (),
        (),
        ("outside-tree",),
    ]
    assert "3 of 8 comments: outside-diff" in review.warnings
    assert project.checkouts == 1


def test_a_clean_review_copies_nothing(project: Any, tmp_path: Path) -> None:
    read_review(
        b"[]", format="auto", task=project.task(tmp_path), workspace=None, reviewer="r", raw_name=None
    )
    assert project.checkouts == 0


def test_a_renamed_files_old_path_is_the_file(project: Any, tmp_path: Path) -> None:
    items = [{"path": "old name.py", "line": 10, "body": "b", "side": side} for side in ("right", "left")]
    task = replace(project.task(tmp_path), diff=DIFF)
    review = read_review(
        json.dumps(items).encode(), format="native", task=task, workspace=None, reviewer="r", raw_name=None
    )
    assert [(c.path, c.flags) for c in review.comments] == [
        ("new name.py", ("old-name",)),
        ("old name.py", ()),
    ]
