"""What a reviewer is inside the harness, and what one is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..core.model import Instance, PullRequest, Review


@dataclass(frozen=True)
class ReviewTask:
    """One review to make.

    ``checkout`` writes a private copy of the two-commit repository to a new folder. ``directory`` is the
    evaluation's folder in the run directory, where raw output goes; ``instance`` is for reviewers that are
    part of the harness (``human``, ``file:``) and is never shown to a program under test.
    """

    instance: Instance
    pull_request: PullRequest
    diff: bytes
    checkout: Callable[[Path], None]
    directory: Path
    repeat: int
    log: Callable[[str], None]


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

    def review(self, task: ReviewTask) -> Review:
        """Review one pull request.

        Raises:
            ReviewerError: crashed, timed out, unreadable or no output; ``reason`` says which.
            InfraError: if the machine, not the reviewer, failed.
        """
