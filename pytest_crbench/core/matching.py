"""Matching a review to reference comments, as values: what is matched, and what came of it.

The scoring of AACR-Bench (arXiv 2601.19494): a reference comment is found if one comment of the review is
assigned to it, by place and by meaning, one to one. How that is decided is in ``matching/``.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (pydantic resolves these)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .records import Number, Numbers  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .model import ReviewComment

#: Lines that a comment may span before it is one about its file (references of AACR-Bench: 73 at most).
LONGEST = 100


def lines_of(comment: ReviewComment) -> tuple[int, int] | None:
    """Return the lines that a comment is about, in order; None if they say no more than its file does."""
    if comment.lines is None:
        return None
    first, last = sorted(comment.lines)
    return (first, last) if first >= 1 and last - first < LONGEST else None


@dataclass(frozen=True)
class MatchTask:
    """One review to match.

    ``references`` and ``rejected`` (what experts have rejected) and ``comments`` (the review's) each have
    ids that are unique among themselves. ``renames`` holds the head path of each base path that the pull
    request renames. ``pull_request`` names it in messages.
    """

    pull_request: str
    references: tuple[ReviewComment, ...]
    rejected: tuple[ReviewComment, ...]
    comments: tuple[ReviewComment, ...]
    renames: Mapping[str, str]
    log: Callable[[str], None]


@dataclass(frozen=True)
class Match:
    """A comment of the review assigned to a reference, by ids; ``distance`` in lines, 0 if they overlap."""

    reference: str
    comment: str
    distance: int


@dataclass(frozen=True)
class Classified:
    """The category of each comment, by its id, and what was used up for them."""

    categories: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Matching:
    """What came of matching one review.

    ``matches`` agree in place and meaning; ``line_matches`` is the assignment by place alone; ``rejected``
    are the comments without a match that hit a rejected one. The other comments without a match:
    ``duplicates`` say what a comment that has a match says, ``placeless`` match nothing because they name no
    place that could be looked at; the rest is unlabelled. ``near`` counts, for each reference, the comments
    at its place. ``abstained`` counts pairs that the matcher left undecided.
    """

    matches: tuple[Match, ...] = ()
    line_matches: tuple[Match, ...] = ()
    rejected: tuple[Match, ...] = ()
    duplicates: tuple[str, ...] = ()
    placeless: tuple[str, ...] = ()
    near: Mapping[str, int] = field(default_factory=dict)
    abstained: int = 0
    #: The category that a model gave an unlabelled comment, by the comment's id; empty if none was asked.
    categories: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    duration: Number = 0.0
    usage: Numbers = field(default_factory=dict)


class Classifies(Protocol):
    """Sorts comments into categories."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides what it says, as plain JSON."""

    def classify(self, comments: Sequence[ReviewComment]) -> Classified:
        """Return the category of each comment by its id; one without a word has none.

        Raises:
            InfraError: if the endpoint fails, or answers what cannot be read.
        """


class Matcher(Protocol):
    """Matches reviews to references."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides what it finds, as plain JSON: its results are keyed by this."""

    def match(self, task: MatchTask) -> Matching:
        """Match one review.

        The result does not depend on the order of comments or references (but for the published evaluator's,
        ``scoring.matching.legacy``).

        Raises:
            InfraError: if meanings could not be compared: the endpoint failed, or answered what cannot be
                read. A failure is never a comment that does not match.
        """
