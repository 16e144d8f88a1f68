"""The reviewers that are part of the harness, and reviews from files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.reviewing import given

from pytest_crbench.core.errors import ReviewerError
from pytest_crbench.core.model import Check, ReviewComment
from pytest_crbench.reviewers.load import load

if TYPE_CHECKING:
    from pathlib import Path

ONE = ReviewComment(
    "one",
    "Use is.\n\n```suggestion\n    if x is None:\n```",
    "app/core.py",
    (6, 6),
    suggestion="    if x is None:\n",
)
TWO = ReviewComment("two", "Say why.", "app/core.py", (400, 400))


def with_comments(task: Any, *comments: ReviewComment) -> Any:
    checks = tuple(Check(c.id, c, "behavioral", "Robustness", "", "0" * 64) for c in comments)
    return replace(task, instance=replace(task.instance, checks=checks))


def test_human_says_what_humans_said(project: Any, tmp_path: Path) -> None:
    task = with_comments(project.task(tmp_path), ONE, TWO, ONE)
    reviewer = load("human")
    assert not reviewer.shareable
    review = reviewer.review(task)
    assert review.comments == (ONE, replace(TWO, flags=("outside-diff",)))


def test_human_bare_gives_no_answer_away(project: Any, tmp_path: Path) -> None:
    review = load("human:bare").review(with_comments(project.task(tmp_path), ONE))
    assert [(c.id, c.body, c.suggestion) for c in review.comments] == [("one", "Use is.", None)]


def test_none_is_clean_whatever_the_options_for_others(project: Any, tmp_path: Path) -> None:
    reviewer = load("none", given(version="1", environment=("X",)))
    assert reviewer.review(with_comments(project.task(tmp_path), ONE)).comments == ()
    assert not reviewer.shareable


def test_files_made_elsewhere(project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r/own").mkdir(parents=True)
    (tmp_path / "r/own/one-1.json").write_text(
        json.dumps([{"path": "./app/core.py", "line": 6, "body": "b"}])
    )
    monkeypatch.chdir(tmp_path)
    reviewer = load("file:r/{dataset}/{instance}-{repeat}.json")
    monkeypatch.chdir("/")
    review = reviewer.review(project.task(tmp_path / "run"))
    assert [(c.path, c.lines) for c in review.comments] == [("app/core.py", (6, 6))]
    assert (tmp_path / "run" / review.raw).exists()
    assert not reviewer.shareable
    with pytest.raises(ReviewerError) as caught:
        reviewer.review(project.task(tmp_path / "run", repeat=2))
    assert caught.value.reason == "missing"
    assert "one-2.json" in str(caught.value)


@pytest.mark.parametrize(("content", "reason"), [(b"", "empty"), (b"\xff\xfe\x00", "unreadable")])
def test_bad_files(content: bytes, reason: str, project: Any, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(content)
    with pytest.raises(ReviewerError) as caught:
        load(f"file:{tmp_path}/{{instance}}.json").review(project.task(tmp_path / "run"))
    assert caught.value.reason == reason
