"""Changes nothing: what the checks say of the unmodified pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.model import Revision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.agent import AgentTask


class NoAgent:
    """The agent that makes the empty revision."""

    name = "none"
    shareable = True
    runs_on_clean_review = False

    def __init__(self) -> None:
        self.fingerprint: Mapping[str, Any] = {"name": self.name, "version": 1}

    def revise(self, task: AgentTask) -> Revision:
        """Return the empty revision."""
        return Revision(b"", self.name, "finished")
