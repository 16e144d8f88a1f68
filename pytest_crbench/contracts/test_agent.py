"""What every coding agent promises (`core.agent`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..agents.load import load
from ..core.agent import AgentKind, AgentTask
from ..core.errors import CrbenchError, InfraError, StageError, UnusableRevisionError
from ..core.model import Review, ReviewComment, Revision
from ..workspace.revision import capture, changes
from .sample import fails, is_measure, is_text, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.agent import Agent
    from ..core.sandbox import Backend
    from ..core.settings import Settings
    from . import Subject
    from .sample import Pull

both = pytest.mark.parametrize("name", ["plain", "odd"])
STOPS = {
    *("finished", "unchanged", "clean-review", "step-limit", "time-limit", "token-limit", "cost-limit"),
    *("format-errors", "refused"),
}
#: Comments that reviews really have.
ODD = (
    ReviewComment("general", "", None, None, level="general"),
    ReviewComment("outside", "x" * 20_000, "../outside.py", (1, 1), suggestion="x\n"),
    ReviewComment("beyond", "```suggestion\n", "shop/tax.py", (900, 1000), suggestion=""),
    ReviewComment("base", "\x1b[31m{base} \udcff", "shop/size.py", (1, 1), side="left"),
    ReviewComment("file", "näme", "data.bin", None, level="file"),
)


@pytest.fixture(scope="session")
def make(subject: Subject, settings: Settings, request: pytest.FixtureRequest) -> Callable[[], Agent]:
    """Makes the agent, as each process of a run does."""

    def make() -> Any:
        if subject.registered:
            return load(subject.spec, settings, None)
        found = subject.load(request.config.invocation_params.dir)
        if hasattr(found, "revise") and not isinstance(found, AgentKind):
            return found
        assert isinstance(found, AgentKind), f"{subject.name} is neither an AgentKind nor an Agent"
        return found.make(subject.argument, settings, None)

    try:
        make()
    except CrbenchError as error:
        fails(f"cannot be made: {error}")
    return make


@pytest.fixture(scope="session")
def agent(make: Callable[[], Agent]) -> Agent:
    """One agent for all tests: a process asks the same one for every pull request."""
    return make()


@pytest.fixture
def task(
    pulls: dict[str, Pull], backend: Callable[[], Backend], agent: Agent, tmp_path: Path
) -> Callable[..., AgentTask]:
    """Makes the task of revising a pull request of the sample."""

    def task(name: str, comments: tuple[ReviewComment, ...] | None = None, **given: Any) -> AgentTask:
        pull = pulls[name]
        directory = tmp_path / "run"
        directory.mkdir()

        def fixed() -> Any:
            assert agent.name == "reference", "only the reference agent may ask for the fixed tree"
            return pull.trees.fixed

        said = comments if comments is not None else (pull.instance.checks[0].comment, *ODD)
        return AgentTask(
            **{
                "pull_request": pull.request,
                "review": Review(said, reviewer="contract"),
                "diff": pull.workspace.diff,
                "head": pull.trees.head,
                "checkout": pull.workspace.copy_to,
                "sandbox": lambda: pull.open(backend()),
                "capture": lambda edited: capture(pull.trees.head, edited),
                "fixed": fixed,
                "directory": directory,
                "repeat": 1,
                "log": lambda _line: None,
                **given,
            }
        )

    return task


def test_names_itself(agent: Agent) -> None:
    is_text(agent.name, "name")
    assert isinstance(agent.runs_on_clean_review, bool), "runs_on_clean_review must be True or False"


def test_the_fingerprint_is_plain_json_and_the_same_in_every_process(
    agent: Agent, make: Callable[[], Agent]
) -> None:
    found = plain(dict(agent.fingerprint))
    assert found, "the fingerprint must say what decides a revision"
    assert plain(dict(make().fingerprint)) == found, "two of the same options must have one fingerprint"
    assert make().name == agent.name


@both
@pytest.mark.usefixtures("unchanged")
def test_returns_a_revision_of_head(
    agent: Agent, task: Callable[..., AgentTask], pulls: dict[str, Pull], name: str
) -> None:
    try:
        found = agent.revise(task(name))
    except StageError as error:
        fails(f"failed on a small pull request: {type(error).__name__}: {error}")
    assert isinstance(found, Revision), f"revise() must return a Revision, found {type(found).__name__}"
    assert isinstance(found.patch, bytes), "patch must be bytes"
    assert found.agent == agent.name, "agent must be the agent's name"
    assert found.stop_reason in STOPS, f"unknown stop_reason {found.stop_reason!r}"
    assert isinstance(found.warnings, tuple)
    assert all(isinstance(warning, str) for warning in found.warnings), "warnings must be a tuple of text"
    is_measure(found.usage, found.duration, "a revision")
    try:
        changes(pulls[name].trees.head, found.patch)
    except StageError as error:
        fails(f"the patch does not apply to head: {error}")


def test_a_clean_review(agent: Agent, task: Callable[..., AgentTask]) -> None:
    if not agent.runs_on_clean_review:
        pytest.skip("says that it is not asked without comments")
    assert isinstance(agent.revise(task("plain", ())), Revision)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("checkout", InfraError("the disk is full", reason="disk")),
        ("sandbox", InfraError("the engine is gone", reason="engine")),
        ("capture", UnusableRevisionError("too large", reason="too-large")),
    ],
    ids=["checkout", "sandbox", "capture"],
)
def test_what_fails_around_it_is_no_revision(
    agent: Agent, task: Callable[..., AgentTask], name: str, error: StageError
) -> None:
    asked = []

    def broken(*_arguments: Any) -> Any:
        asked.append(name)
        raise error

    try:
        agent.revise(task("plain", **{name: broken}))
    except type(error):
        return
    except StageError as other:
        if asked:  # else something came first: a sandbox that cannot be had here
            fails(f"an error of {name} must go through; raised {type(other).__name__}: {other}")
        return
    assert not asked, f"an error of {name} must go through, not become a revision"
