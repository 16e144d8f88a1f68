"""What a reviewer is inside the harness, and what one is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..core.tasks import ReviewTask as ReviewTask  # noqa: TC001  (offered here at run time too)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import Review


class Reviewer(Protocol):
    """A reviewer under test."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides what it says, as plain JSON: its stage results are keyed by this."""

    @property
    def shareable(self) -> bool:
        """Whether its reviews may be taken over by another run (never for a program we cannot look into)."""

    # Two more things that a reviewer may say of itself: ``needs_repository = False`` (it looks at no code and
    # can be scored with --crbench-offline) and ``needs_sandbox = True`` (it opens ``ReviewTask.sandbox``).

    def review(self, task: ReviewTask) -> Review:
        """Review one pull request.

        Raises:
            ReviewerError: crashed, timed out, unreadable or no output; ``reason`` says which.
            InfraError: if the machine, not the reviewer, failed.
        """
