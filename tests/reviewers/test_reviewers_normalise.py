"""Flags and ids of a whole review, and what of a diff they rest on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_crbench.core.model import ReviewComment
from pytest_crbench.reviewers.reading import normalise, read_review

if TYPE_CHECKING:
    from pathlib import Path


def comment(body: str = "b", lines: Any = (1, 1), **changes: Any) -> ReviewComment:
    return ReviewComment("", body, changes.pop("path", "a.py"), lines, **changes)


def everywhere(path: str, side: str, lines: tuple[int, int] | None) -> bool:
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


RENAMED = b"""diff --git a/old name.py b/new name.py
similarity index 76%
rename from old name.py
rename to new name.py
--- a/old name.py\t
+++ b/new name.py\t
@@ -10,2 +10,2 @@ def f():
 a
-b
+c
"""


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
    task = replace(project.task(tmp_path), diff=RENAMED)
    review = read_review(
        json.dumps(items).encode(), format="native", task=task, workspace=None, reviewer="r", raw_name=None
    )
    assert [(c.path, c.flags) for c in review.comments] == [
        ("new name.py", ("old-name",)),
        ("old name.py", ()),
    ]
