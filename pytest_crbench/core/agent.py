"""What a coding agent is inside the harness, and what one is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .model import PullRequest, Review, Revision, Tree
    from .sandbox import Sandbox
    from .settings import Settings


@dataclass(frozen=True)
class AgentTask:
    """One revision to make.

    ``head`` is the pull request's head tree, not to be written to. ``checkout`` writes a private copy of
    the two-commit repository to a new folder of the host. ``sandbox`` opens a fresh sandbox holding head
    (and the two-commit repository as ``.git``). ``capture`` turns an edited tree on the host into the
    patch against head (it raises AgentError where the patch is too large). ``fixed`` fetches the fixed
    tree; only the ``reference`` agent may call it.
    """

    pull_request: PullRequest
    review: Review
    diff: bytes
    head: Tree
    checkout: Callable[[Path], None]
    sandbox: Callable[[], AbstractContextManager[Sandbox]]
    capture: Callable[[Path], bytes]
    fixed: Callable[[], Tree]
    directory: Path
    repeat: int
    log: Callable[[str], None]


class Agent(Protocol):
    """A coding agent that edits the code from the comments of a review."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides what it does (name, version, model, prompts, limits), as plain JSON."""

    @property
    def runs_on_clean_review(self) -> bool:
        """Whether it runs for a review without comments; if not, such a review is an empty revision."""

    def revise(self, task: AgentTask) -> Revision:
        """Make one revision; a limit reached is a stop reason, not an error.

        Raises:
            AgentError: if the agent itself failed.
            InfraError: if the model endpoint, the engine or the disk failed.
        """


class AgentKind:
    """Makes the agents of one word: ``--crbench-agent=WORD`` or ``WORD:ARGUMENT``. A subclass has ``make``.

    Other packages register an instance in the group ``pytest_crbench.agents`` of their entry points; its name
    there is the word.
    """

    def make(self, argument: str, settings: Settings, run: Path | None) -> Agent:
        """Return the agent of what stands behind the colon ("" without one).

        Called in every process of a run, and once before there is a run (``run`` is None): what is missing is
        said there. ``run`` is the folder of the run.

        Raises:
            UsageError: for an argument that means nothing, or a missing package, program, model or key.
        """
        raise NotImplementedError


AGENTS: Registry[AgentKind] = Registry(
    "coding agent",
    AgentKind,
    "pytest_crbench.agents",
    {
        "llm": "agents.load:LLM",
        "suggestions": "agents.load:SUGGESTIONS",
        "reference": "agents.load:REFERENCE",
        "none": "agents.load:NONE",
        "cmd": "agents.load:COMMAND",
    },
)
