"""The fixtures that do the work of a check, each one a seam that a vendor can override.

``crbench_reviewer``, ``crbench_agent`` and ``crbench_sandbox`` make the programs of a run;
``crbench_review``, ``crbench_revision`` and ``crbench_verdict`` are the stages of one check's pull request.
Every report says which of them were replaced. A verdict cannot be: what counts is what `crbench_verdict` here
recorded, whatever a fixture around it returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import StageError, UsageError
from ..core.scoring import SCORINGS
from ..evaluation.plan import plan_of
from ..run import assemble, programs
from .collect import VERDICT, CheckItem, CollectPlugin, Unmeasured

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.agent import Agent
    from ..core.model import Check, Instance, Review, Revision, Verdict
    from ..core.reviewer import Reviewer
    from ..core.sandbox import Backend
    from ..core.settings import Settings
    from ..evaluation.evaluator import Evaluator


class FixturePlugin:
    """Holds what the fixtures of one process need."""

    def __init__(self, settings: Settings, invocation: assemble.Invocation) -> None:
        self.settings = settings
        self.invocation = invocation


def _state(request: pytest.FixtureRequest) -> FixturePlugin:
    state = request.config.pluginmanager.get_plugin("crbench-state")
    assert isinstance(state, FixturePlugin)
    return state


def _item(request: pytest.FixtureRequest) -> CheckItem:
    if not isinstance(request.node, CheckItem):
        raise UsageError(
            "this fixture belongs to a check of a benchmark; in a test of your own use crbench_evaluate"
        )
    return request.node


@pytest.fixture(scope="session")
def crbench_reviewer(request: pytest.FixtureRequest) -> Reviewer | Callable[..., Any] | str:
    """The reviewer under test. Override it with a `Reviewer`, a plain callable, or another spec."""
    state = _state(request)
    invocation = state.invocation
    return programs.make_reviewer(
        state.settings,
        invocation.replay,
        session=invocation.session,
        image=invocation.reviewer_image,
        run=invocation.run,
    )


@pytest.fixture(scope="session")
def crbench_agent(request: pytest.FixtureRequest) -> Agent | str:
    """The coding agent. Override it with an `Agent` or another spec."""
    state = _state(request)
    invocation = state.invocation
    return programs.make_agent(state.settings, invocation.run, invocation.replay, invocation.scorings)


@pytest.fixture(scope="session")
def crbench_sandbox(request: pytest.FixtureRequest) -> Backend:
    """The sandbox backend that the controller chose for this run."""
    state = _state(request)
    log = lambda line: state.invocation.log("sandbox", line)  # noqa: E731
    return assemble.make_backend(state.settings, state.invocation.sandbox, state.invocation.session, log)


@pytest.fixture(scope="session")
def crbench_evaluator(
    request: pytest.FixtureRequest, crbench_reviewer: Any, crbench_agent: Any, crbench_sandbox: Backend
) -> Evaluator:
    """Takes instances through their stages."""
    state = _state(request)
    return assemble.make_evaluator(
        state.settings,
        state.invocation,
        programs.as_reviewer(
            crbench_reviewer,
            state.settings,
            session=state.invocation.session,
            image=state.invocation.reviewer_image,
            run=state.invocation.run,
        ),
        programs.as_agent(crbench_agent, state.settings, state.invocation.run),
        crbench_sandbox,
    )


@pytest.fixture
def crbench_instance(request: pytest.FixtureRequest) -> Instance:
    """The pull request of the check at hand."""
    return _item(request).instance_


@pytest.fixture
def crbench_check(request: pytest.FixtureRequest) -> Check:
    """The check at hand."""
    return _item(request).check


@pytest.fixture
def crbench_review(
    request: pytest.FixtureRequest, crbench_evaluator: Evaluator, crbench_instance: Instance
) -> Review:
    """The review of the pull request: made once per run, whoever asks first."""
    with _measuring(request, crbench_evaluator):
        return crbench_evaluator.review(crbench_instance, _item(request).key.repeat)


@pytest.fixture
def crbench_revision(
    request: pytest.FixtureRequest,
    crbench_evaluator: Evaluator,
    crbench_instance: Instance,
    crbench_review: Review,
) -> Revision:
    """The revision that the coding agent made from the review; made once per run."""
    with _measuring(request, crbench_evaluator):
        return crbench_evaluator.revise(crbench_instance, _item(request).key.repeat)


@pytest.fixture
def crbench_verdict(
    request: pytest.FixtureRequest,
    crbench_evaluator: Evaluator,
    crbench_instance: Instance,
    crbench_check: Check,
    crbench_review: Review,
) -> Verdict:
    """The verdict on the check; what is no measurement is an error of the item's set-up."""
    item = _item(request)
    if SCORINGS.get(item.key.scoring).needs_agent:
        # Not an argument: no agent must run for a check that is decided by the comments themselves.
        request.getfixturevalue("crbench_revision")
    verdict = crbench_evaluator.verdict(
        crbench_instance, crbench_check, item.key.repeat, scoring=item.key.scoring
    )
    item.stash[VERDICT] = verdict
    if not verdict.status.measured:
        raise Unmeasured(verdict)
    return verdict


@pytest.fixture
def crbench_evaluate(
    request: pytest.FixtureRequest, crbench_evaluator: Evaluator
) -> Callable[..., list[Verdict]]:
    """For tests of a vendor's own: ``crbench_evaluate("werkzeug-3.1.4")`` -> the verdicts of its checks.

    The argument is an instance's id in one of the run's datasets, or an `Instance`.
    """
    plugin = request.config.pluginmanager.get_plugin("crbench-collect")
    assert isinstance(plugin, CollectPlugin)

    plan = plan_of(_state(request).settings)

    def evaluate(instance: Instance | str, repeat: int = 1) -> list[Verdict]:
        found = plugin.find(instance) if isinstance(instance, str) else instance
        return [
            crbench_evaluator.verdict(found, check, repeat, scoring=scoring)
            for check in found.checks
            for scoring in plan.scorings or (plugin.scoring_of(found),)
            if plan.applies(check, scoring)
        ]

    return evaluate


class _measuring:
    """Turns a stage's failure into the verdict that stands for it."""

    def __init__(self, request: pytest.FixtureRequest, evaluator: Evaluator) -> None:
        self.item = _item(request)
        self.evaluator = evaluator

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, StageError):
            item = self.item
            verdict = self.evaluator.failed(
                item.instance_, item.check, error, item.key.repeat, scoring=item.key.scoring
            )
            item.stash[VERDICT] = verdict
            # Without the cause: pytest would write out its frames, with all that a flood left in them.
            raise Unmeasured(verdict) from None
