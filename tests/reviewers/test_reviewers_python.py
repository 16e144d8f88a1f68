# ruff: noqa: E501
"""Callables: found, called in a process of their own, and told apart when they fail."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest
from support.reviewing import given

from pytest_crbench.core.errors import InfraError, ReviewerError, UsageError
from pytest_crbench.core.reviewer import REVIEWERS
from pytest_crbench.core.settings import Settings
from pytest_crbench.reviewers.load import load
from pytest_crbench.reviewers.python import InProcessReviewer

if TYPE_CHECKING:
    from pathlib import Path


MODULE = """
import os, subprocess, sys, time
from pathlib import Path
from pytest_crbench.core.model import Review, ReviewComment

def comments(pull_request, workspace):
    assert pull_request.head in subprocess.run(["git", "log", "--format=%H"], cwd=workspace, capture_output=True, text=True).stdout
    yield ReviewComment("", "Use is.", path="app/core.py", lines=(6, 6), suggestion="    if x is None:\\n", rule="N1")
    yield {"path": str(workspace / "app/core.py"), "line": 2, "body": "Not used."}

class Reviewer:
    def __init__(self):
        self.word = "class"
    def __call__(self, pull_request, workspace):
        return Review(comments=(ReviewComment("", self.word, level="general"),), reviewer="x", usage={"tokens": 3})

def factory():
    return lambda pull_request, workspace: []

def nothing(pull_request, workspace):
    return None

def words(pull_request, workspace):
    return "Looks good to me"

def raises(pull_request, workspace):
    print("printed before")
    raise KeyError("whoops " + os.environ.get("API_KEY", ""))

def lazy(pull_request, workspace):
    yield {"body": "one"}
    raise RuntimeError("in the middle")

def offline(pull_request, workspace):
    from pytest_crbench import OutsideFailure
    yield {"body": "one"}
    raise OutsideFailure("429 for " + os.environ.get("API_KEY", ""))

def says_so(pull_request, workspace):
    return {"comments": [], "outside_failure": "429 for me"}

def exits(pull_request, workspace):
    os._exit(0)

def leaves(pull_request, workspace):
    sys.exit(0)

def hangs(pull_request, workspace):
    time.sleep(300)

def odd(pull_request, workspace):
    return [3]

def surrogate(pull_request, workspace):
    return [{"body": "bad \\ud800 half"}]

value = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "vendor_review.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_generator_of_comments(module: Path, project: Any, tmp_path: Path) -> None:
    reviewer = load("vendor_review:comments")
    review = reviewer.review(project.task(tmp_path / "run"))
    first, second = review.comments
    assert (first.path, first.lines, first.suggestion, first.rule) == (
        "app/core.py",
        (6, 6),
        "    if x is None:\n",
        "N1",
    )
    assert (second.path, second.lines) == ("app/core.py", (2, 2))
    assert reviewer.name == "vendor_review:comments"
    assert not reviewer.shareable
    assert json.loads((tmp_path / "run/review.out").read_text())["comments"][0]["rule"] == "N1"


def test_a_class_is_instantiated_and_a_review_taken(module: Path, project: Any, tmp_path: Path) -> None:
    review = load("vendor_review:Reviewer").review(project.task(tmp_path / "run"))
    assert [(c.body, c.level) for c in review.comments] == [("class", "general")]
    assert review.usage == {"tokens": 3.0}


def test_a_factory_is_called_and_an_empty_list_is_clean(module: Path, project: Any, tmp_path: Path) -> None:
    assert load("vendor_review:factory").review(project.task(tmp_path / "run")).comments == ()


@pytest.mark.parametrize(
    ("name", "reason", "kept"),
    [
        ("nothing", "crashed", "returned NoneType"),
        ("words", "crashed", "returned str"),
        ("raises", "crashed", "KeyError"),
        ("lazy", "crashed", "in the middle"),
        ("odd", "crashed", "comment 0 is a int"),
        ("exits", "empty", ""),
        ("leaves", "empty", ""),
        ("hangs", "timeout", ""),
    ],
)
def test_failures(name: str, reason: str, kept: str, module: Path, project: Any, tmp_path: Path) -> None:
    reviewer = load(f"vendor_review:{name}", given(timeout=3.0, exit_ok=(0, 1)))
    began = time.monotonic()
    with pytest.raises(ReviewerError) as caught:
        reviewer.review(project.task(tmp_path / "run"))
    assert time.monotonic() - began < 20
    assert caught.value.reason == reason
    assert kept in (tmp_path / "run/review.stderr").read_text()


def test_the_traceback_is_kept_without_the_key(
    module: Path, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "sk-123456789")
    reviewer = load("vendor_review:raises", given(environment=("API_KEY",)))
    with pytest.raises(ReviewerError) as caught:
        reviewer.review(project.task(tmp_path / "run"))
    text = (tmp_path / "run/review.stderr").read_text()
    assert "Traceback" in text
    assert "whoops [redacted]" in text
    assert "sk-123456789" not in str(caught.value)
    assert (tmp_path / "run/review.stdout").read_text() == "printed before\n"


@pytest.mark.parametrize("name", ["offline", "says_so"])
@pytest.mark.parametrize("here", [False, True])
def test_an_outside_failure(
    name: str, here: bool, module: Path, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "sk-123456789")
    monkeypatch.syspath_prepend(module)
    monkeypatch.delitem(sys.modules, "vendor_review", raising=False)
    function = getattr(importlib.import_module("vendor_review"), name)
    spec, options = f"vendor_review:{name}", given(environment=("API_KEY",))
    reviewer = InProcessReviewer(function, options) if here else load(spec, options)
    with pytest.raises(InfraError, match="429 for") as caught:
        reviewer.review(project.task(tmp_path / "run"))
    assert caught.value.reason == "reviewer-outside"
    assert "sk-123456789" not in str(caught.value)


def test_a_lone_surrogate_does_not_travel(module: Path, project: Any, tmp_path: Path) -> None:
    (comment,) = load("vendor_review:surrogate").review(project.task(tmp_path / "run")).comments
    assert comment.body == "bad \ufffd half"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("vendor_review:commets", "no attribute 'commets'"),
        ("vendor_revue:comments", "no module 'vendor_revue'"),
        ("vendor_review.sub:comments", "no module 'vendor_review.sub'"),
        ("vendor_review:value", "cannot be called"),
        ("broken_review:x", "ZeroDivisionError"),
    ],
)
def test_what_is_not_there_is_found_at_once(spec: str, said: str, module: Path) -> None:
    (module / "broken_review.py").write_text("1 / 0\n")
    with pytest.raises(UsageError) as caught:
        load(spec)
    assert said in str(caught.value)
    assert "cmd:" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("humann", "Did you mean 'human'?"),
        ("comand:x y", "Did you mean 'cmd'?"),
        ("ruff", "write cmd:ruff"),
        ("human:naked", "takes no 'naked'"),
        ("C:\\tools\\review.exe", "this is a path"),
        ("./review.sh", "this is a path"),
        ("https://example.org/x", "there is no reviewer"),
        ("", "there is no reviewer ''"),
        ("a:b:c", "there is no reviewer"),
    ],
)
def test_what_names_nothing(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(spec)
    assert said in str(caught.value)
    assert "cmd:" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (given(format="sarf"), "Did you mean 'sarif'?"),
        (given(environment=("=b",)), "names no variable"),
    ],
)
def test_bad_options(options: Settings, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load("none", options)
    assert said in str(caught.value)


def test_registered_reviewers(
    module: Path, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("vendor", "vendor_review:comments", REVIEWERS.group)
    monkeypatch.setattr(REVIEWERS, "entries", {"vendor": [entry]})
    reviewer = load("vendor")
    assert reviewer.name == "vendor"
    assert len(reviewer.review(project.task(tmp_path / "run")).comments) == 2
    with pytest.raises(UsageError, match="Did you mean 'vendor'"):
        load("vendr")


def test_what_an_in_process_callable_lets_out_is_scrubbed(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-123456789")
    monkeypatch.setenv("NAMED", "another-secret")

    def raises(_request: Any, _workspace: Path) -> Any:
        raise KeyError(os.environ["SOME_API_KEY"], os.environ["NAMED"])

    def says(_request: Any, _workspace: Path) -> Any:
        return [{"body": f"use {os.environ['SOME_API_KEY']}"}]

    options = Settings(reviewer_env=("NAMED",))
    with pytest.raises(ReviewerError) as caught:
        InProcessReviewer(raises, options).review(project.task(tmp_path / "run"))
    kept = (tmp_path / "run/review.stderr").read_text()
    assert "Traceback" in kept
    for text in (kept, str(caught.value), repr(caught.value.__cause__)):
        assert "sk-123456789" not in text
        assert "another-secret" not in text
    (comment,) = InProcessReviewer(says, options).review(project.task(tmp_path / "run")).comments
    assert comment.body == "use [redacted]"
    assert "sk-123" not in (tmp_path / "run/review.out").read_text()
