"""What every reviewer promises (`core.reviewer`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import CrbenchError, InfraError, StageError
from ..core.model import Review, ReviewComment
from ..core.reviewer import ReviewerKind, ReviewTask
from ..evaluation.records import reviewed
from ..reviewers.load import load
from .sample import fails, is_measure, is_text, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.reviewer import Reviewer
    from ..core.sandbox import Backend
    from ..core.settings import Settings
    from . import Subject
    from .sample import Pull

both = pytest.mark.parametrize("name", ["plain", "odd"])


@pytest.fixture(scope="session")
def make(subject: Subject, settings: Settings, request: pytest.FixtureRequest) -> Callable[[], Reviewer]:
    """Makes the reviewer, as each process of a run does."""

    def make() -> Any:
        found = None if subject.registered else subject.load(request.config.invocation_params.dir)
        if hasattr(found, "review") and not isinstance(found, type):
            return found
        if not isinstance(found, ReviewerKind):
            return load(subject.spec, settings)
        made = found.make(subject.argument, settings, None, None)
        return load(made, settings) if isinstance(made, str) else made

    try:
        make()
    except CrbenchError as error:
        fails(f"cannot be made: {error}")
    return make


@pytest.fixture(scope="session")
def reviewer(make: Callable[[], Reviewer]) -> Reviewer:
    """One reviewer for all tests: a process asks the same one for every pull request."""
    return make()


@pytest.fixture
def task(pulls: dict[str, Pull], backend: Callable[[], Backend], tmp_path: Path) -> Callable[..., ReviewTask]:
    """Makes the task of reviewing a pull request of the sample."""

    def task(name: str, **changes: Any) -> ReviewTask:
        pull = pulls[name]
        directory = tmp_path / "run"
        directory.mkdir()
        return ReviewTask(
            **{
                "instance": pull.instance,
                "pull_request": pull.request,
                "diff": pull.workspace.diff,
                "checkout": pull.workspace.copy_to,
                "directory": directory,
                "repeat": 1,
                "log": lambda _line: None,
                "head": pull.trees.head,
                "sandbox": lambda: pull.open(backend()),
                **changes,
            }
        )

    return task


def reviewed_by(reviewer: Reviewer, task: ReviewTask) -> Review:
    try:
        found = reviewer.review(task)
    except StageError as error:
        fails(f"failed on a small pull request: {type(error).__name__}: {error}")
    assert isinstance(found, Review), f"review() must return a Review, found {type(found).__name__}"
    return found


def test_names_itself(reviewer: Reviewer) -> None:
    is_text(reviewer.name, "name")
    assert isinstance(reviewer.shareable, bool), "shareable must be True or False"
    for flag in ("needs_repository", "needs_sandbox"):
        assert isinstance(getattr(reviewer, flag, False), bool), f"{flag} must be True or False"


def test_the_fingerprint_is_plain_json_and_the_same_in_every_process(
    reviewer: Reviewer, make: Callable[[], Reviewer]
) -> None:
    found = plain(dict(reviewer.fingerprint))
    assert found, "the fingerprint must say what decides a review"
    assert plain(dict(make().fingerprint)) == found, "two of the same options must have one fingerprint"
    assert make().name == reviewer.name


@both
@pytest.mark.usefixtures("unchanged")
def test_returns_a_review(reviewer: Reviewer, task: Callable[..., ReviewTask], name: str) -> None:
    here = {path.name for path in Path().iterdir()}
    given = task(name)
    found = reviewed_by(reviewer, given)
    assert isinstance(found.comments, tuple), "comments must be a tuple"
    for comment in found.comments:
        assert isinstance(comment, ReviewComment), f"a comment is a {type(comment).__name__}"
    reviewed(found)  # names what is no review
    assert found.reviewer == reviewer.name, "reviewer must be the reviewer's name"
    is_measure(found.usage, found.duration, "a review")
    if found.raw is not None:
        assert not Path(found.raw).is_absolute()
        assert (given.directory / found.raw).is_file(), "raw must name a file in the task's directory"
    made = {path.name for path in Path().iterdir()} - here - {"__pycache__", ".pytest_cache"}
    assert not made, f"a review must not write to the current folder: {sorted(made)}"


@pytest.mark.usefixtures("unchanged")
def test_can_be_asked_again(reviewer: Reviewer, task: Callable[..., ReviewTask], tmp_path: Path) -> None:
    first = task("plain")
    reviewed_by(reviewer, first)
    again = tmp_path / "again"
    again.mkdir()
    given = {**vars(first), "directory": again, "repeat": 2}
    found = reviewed_by(reviewer, ReviewTask(**{n: given[n] for n in ReviewTask.__dataclass_fields__}))
    assert found.reviewer == reviewer.name


def test_a_failure_of_the_machine_is_no_review(reviewer: Reviewer, task: Callable[..., ReviewTask]) -> None:
    asked = []

    def full(*_arguments: Any) -> Any:
        asked.append(1)
        raise InfraError("the disk is full", reason="disk")

    try:
        reviewer.review(task("plain", checkout=full, sandbox=full))
    except InfraError:
        return
    except Exception as error:
        fails(f"an InfraError of checkout must go through; raised {type(error).__name__}: {error}")
    assert not asked, "an InfraError of checkout or sandbox must go through, not become a review"


def test_what_needs_no_repository_does_without(reviewer: Reviewer, task: Callable[..., ReviewTask]) -> None:
    if getattr(reviewer, "needs_repository", True):
        pytest.skip("says that it needs the repository")

    def none(*_arguments: Any) -> Any:
        raise InfraError("there is no repository", reason="offline")

    reviewed_by(reviewer, task("plain", diff=b"", checkout=none, head=None, sandbox=None, repository=False))
