"""From settings to the programs of a run: the reviewer under test and the coding agent.

Everything heavy is imported here when a run starts, not when the plugin is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import UsageError
from ..core.scoring import SCORINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ..core.agent import Agent, AgentTask
    from ..core.enclosure import Enclosure
    from ..core.model import Review, Revision
    from ..core.reviewer import Reviewer, ReviewTask
    from ..core.settings import Settings


def make_reviewer(
    settings: Settings,
    replay: Path | None = None,
    *,
    session: str = "",
    image: str = "",
    run: Path | None = None,
) -> Reviewer:
    """Make the reviewer that the settings name; of a replayed run, the one that was recorded.

    ``session`` labels what it leaves behind; ``image`` is the id of its image, if the run has looked it up;
    ``run`` holds the budget of the whole run.

    Raises:
        UsageError: if it does not exist, or the model's name or key is missing.
    """
    if replay is not None:
        return Recorded.part(replay, "reviewer")
    return as_reviewer(settings.reviewer, settings, session=session, image=image, run=run)


def as_reviewer(
    given: Reviewer | Callable[..., Any] | str,
    settings: Settings,
    *,
    session: str = "",
    image: str = "",
    run: Path | None = None,
) -> Reviewer:
    """Accept what a vendor's ``crbench_reviewer`` fixture returns: a Reviewer, a callable or a spec.

    Raises:
        UsageError: if it is none of these, or the model's name or key is missing.
    """
    if isinstance(given, str):
        from ..reviewers.load import load

        return load(given, settings, make_enclosure(settings, session, image), run)
    if settings.reviewer_image and not settings.replay and getattr(given, "enclosure", None) is None:
        raise UsageError(
            "--crbench-reviewer-image is for programs; the fixture crbench_reviewer returned one that runs "
            "in this process. Return 'cmd:mytool …', or leave the image out"
        )
    if hasattr(given, "review") and hasattr(given, "fingerprint"):
        return cast("Reviewer", given)
    if not callable(given):
        raise UsageError(
            f"the fixture crbench_reviewer returned {type(given).__name__}; return a Reviewer, a callable "
            "(PullRequest, workspace) -> comments, or a spec such as 'cmd:mytool …'"
        )
    from ..reviewers.python import InProcessReviewer

    return InProcessReviewer(given, settings)


def make_enclosure(settings: Settings, session: str, image: str = "") -> Enclosure | None:
    """Return where a reviewer's program runs: None for the host. Asks no engine yet."""
    if settings.reviewer_image is None:
        return None
    from ..core.sandbox import Limits, SandboxSettings
    from ..sandbox.enclosure import DockerEnclosure

    return DockerEnclosure(
        settings.reviewer_image,
        SandboxSettings(cache=settings.cache, session=session),
        Limits(memory=settings.memory, cpus=settings.cpus, pids=settings.pids),
        network=settings.reviewer_network,
        pinned=image,
    )


def reap_reviewers(settings: Settings, session: str, of: str | None = None) -> None:
    """Remove containers of reviewers that session ``of`` (None: whoever has ended) left behind.

    Raises:
        InfraError: if the engine fails.
    """
    enclosure = None if settings.replay else make_enclosure(settings, session)
    if enclosure is not None:
        enclosure.reap(of)


def make_agent(
    settings: Settings, run: Path | None, replay: Path | None = None, scorings: Iterable[str] = ("tests",)
) -> Agent:
    """Make the coding agent that the settings name; of a replayed run, the one that was recorded.

    Where no hidden test is run there is none, whatever the settings name.

    Raises:
        UsageError: if it does not exist, or the model's name or key is missing.
    """
    if not any(SCORINGS.get(name).needs_agent for name in scorings):
        from ..agents.load import NoAgent

        return NoAgent()
    if replay is not None:
        return Recorded.part(replay, "agent")
    return as_agent(settings.agent, settings, run)


def as_agent(given: Agent | str, settings: Settings, run: Path | None) -> Agent:
    """Accept what a vendor's ``crbench_agent`` fixture returns: an Agent or a spec.

    Raises:
        UsageError: if it does not exist, or the model's name or key is missing.
    """
    if not isinstance(given, str):
        return given
    from ..agents.load import load

    return load(given, settings, run)


@dataclass(frozen=True)
class Recorded:
    """Stands for the reviewer or the agent of a replayed run: known by name, never called."""

    name: str
    fingerprint: Mapping[str, Any]
    shareable: bool = False
    runs_on_clean_review: bool = False
    needs_repository: bool = False

    @classmethod
    def part(cls, run: Path, part: str) -> Recorded:
        """Read what made the reviews or revisions of a run, which may have been a vendor's fixture."""
        from ..evaluation.run_record import read_inputs

        inputs = read_inputs(run)
        found = inputs.fixtures.get(part) or getattr(inputs, part)
        return cls(found.name, found.fingerprint)

    def review(self, task: ReviewTask) -> Review:
        """Never called: the evaluator reads the recorded review."""
        raise UsageError("a replayed run calls no reviewer")

    def revise(self, task: AgentTask) -> Revision:
        """Never called: the evaluator reads the recorded revision."""
        raise UsageError("a replayed run calls no agent")
