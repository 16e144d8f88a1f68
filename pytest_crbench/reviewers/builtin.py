"""Reviewers that need no program: the instance's own comments, and none at all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..core.model import Review
from .formats.draft import take_suggestion
from .normalise import flagged
from .reading import flag_warnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import ReviewComment
    from ..core.reviewer import ReviewTask


@dataclass(frozen=True)
class HumanReviewer:
    """Says what the human reviewers said, with their suggestions or (``human:bare``) without."""

    suggestions: bool = True
    #: Taking it over from another run saves nothing.
    shareable: bool = False
    needs_repository: bool = False

    @property
    def name(self) -> str:
        """Short name for tables."""
        return "human" if self.suggestions else "human:bare"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """What decides the review, beside the instance."""
        return {"kind": "human", "suggestions": self.suggestions}

    def review(self, task: ReviewTask) -> Review:
        """Return the comments of the instance's checks, each once, under the ids of the dataset."""
        said = dict.fromkeys(check.comment for check in task.instance.checks)
        comments = [comment if self.suggestions else _bare(comment) for comment in said]
        found = flagged(comments, in_diff=task.shows)
        return Review(comments=found, reviewer=self.name, warnings=flag_warnings(found))


@dataclass(frozen=True)
class NoReviewer:
    """Says nothing: the floor that every reviewer is measured against."""

    name: str = "none"
    fingerprint: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"})
    shareable: bool = False
    needs_repository: bool = False

    def review(self, task: ReviewTask) -> Review:
        """Return a clean review."""
        return Review(comments=(), reviewer=self.name)


def _bare(comment: ReviewComment) -> ReviewComment:
    body, _, _ = take_suggestion(comment.body)
    return replace(comment, body=body, suggestion=None)
