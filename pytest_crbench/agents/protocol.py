"""What a coding agent is inside the harness, and what one is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..core.tasks import AgentTask as AgentTask  # noqa: TC001  (offered here at run time too)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import Revision


class Agent(Protocol):
    """A coding agent that edits the code from the comments of a review."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides what it does (name, version, model, prompts, limits), as plain JSON."""

    @property
    def shareable(self) -> bool:
        """Whether its revisions may be taken over by another run."""

    @property
    def runs_on_clean_review(self) -> bool:
        """Whether it runs for a review without comments; if not, such a review is an empty revision."""

    def revise(self, task: AgentTask) -> Revision:
        """Make one revision; a limit reached is a stop reason, not an error.

        Raises:
            AgentError: if the agent itself failed.
            InfraError: if the model endpoint, the engine or the disk failed.
        """
