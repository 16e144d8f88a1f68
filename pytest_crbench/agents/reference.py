"""Puts the fixed release's tree in place of a revision: to check the harness, never to rate a reviewer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..core.model import Revision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.agent import AgentTask


WARNING = "reference agent: checks the harness only"


class ReferenceAgent:
    """The agent that knows the answer; every check must pass after it, whatever the review said."""

    name = "reference"
    shareable = True
    runs_on_clean_review = True

    def __init__(self) -> None:
        self.fingerprint: Mapping[str, Any] = {"name": self.name, "version": 1}

    def revise(self, task: AgentTask) -> Revision:
        """Return the change from head to the fixed tree.

        Raises:
            AgentError: if the patch is too large.
            InfraError: if the fixed tree cannot be fetched or the disk fails.
        """
        began = time.monotonic()
        patch = task.capture(task.fixed().path)
        return Revision(patch, self.name, "finished", (WARNING,), time.monotonic() - began)


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
