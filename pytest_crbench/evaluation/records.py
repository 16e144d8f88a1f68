"""Stage results as plain JSON, and back. Patches are files of their own beside the record."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import STAGE_ERRORS, InfraError, ReviewerError, UsageError
from ..core.matching import Matching
from ..core.model import Review, ReviewComment, Revision
from ..core.records import from_row, to_row
from ..core.status import Status
from ..host import digest
from ..text import plainjson
from ..text.printable import clean, printable

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
#: The file of a revision's patch, beside its record.
_PATCH = "revision.patch"
#: Flags that have a count of their own in a row.
_COUNTED = ("outside-diff", "duplicate")


def _read(kind: type[T], plain: Any, what: str) -> T:
    try:
        return from_row(kind, plain, f"the recorded {what} is damaged", "Start a new run")
    except UsageError as error:
        raise InfraError(str(error), reason="record") from error


def comment_to(comment: ReviewComment) -> dict[str, Any]:
    """A review comment as plain JSON, without what it does not say."""
    return {name: value for name, value in to_row(comment).items() if value not in (None, [])}


def review_to(review: Review) -> dict[str, Any]:
    """A review as plain JSON."""
    record = to_row(review, Review)
    return {**record, "comments": [comment_to(comment) for comment in review.comments]}


def review_from(plain: Any) -> Review:
    """A review from plain JSON.

    Raises:
        InfraError: if it is none.
    """
    return _read(Review, plain, "review")


def reviewed(review: Review) -> dict[str, Any]:
    """Return what a reviewer gave as plain JSON: a vendor's own may give what is no review.

    Raises:
        ReviewerError: ``unreadable``.
    """
    try:
        record = review_to(review)
        from_row(Review, record, "it", "Return a pytest_crbench.Review")
    except (UsageError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ReviewerError(
            f"the reviewer returned no Review as it should be ({type(error).__name__}: "
            f"{printable(str(error), 200)})",
            reason="unreadable",
        ) from error
    return record


def review_counts(review: Review) -> dict[str, Any]:
    """What the record of a review says of the review itself."""
    return {
        "reviewer": review.reviewer,
        "comments": len(review.comments),
        "outside_diff": sum("outside-diff" in c.flags for c in review.comments),
        "duplicates": sum("duplicate" in c.flags for c in review.comments),
        "noted": noted(review),
    }


def noted(review: Review) -> dict[str, int]:
    """Count what was unusual in reading a review, by kind: flags of comments, and what the parser gave up."""
    counts = Counter(flag for comment in review.comments for flag in comment.flags if flag not in _COUNTED)
    counts.update(review.noted)
    return dict(sorted(counts.items()))


def told_apart(review: Review) -> Review:
    """Give every comment an id that no other has: a reviewer that makes its own may use one twice.

    Such an id gets a digest of the comment added, so that the order of the comments plays no part; of
    comments that are equal in all, the second ends in ``-2``, and so on.
    """
    shared = {name for name, count in Counter(c.id for c in review.comments).items() if count > 1}
    if not shared:
        return review
    used = {comment.id for comment in review.comments} - shared
    comments = []
    for comment in review.comments:
        name = comment.id
        if name in shared:
            stem = name = f"{name}-{digest.of(dict(vars(comment)))[:12]}"
            number = 1
            while name in used:
                number += 1
                name = f"{stem}-{number}"
            used.add(name)
        comments.append(replace(comment, id=name))
    return replace(review, comments=tuple(comments))


def within_diff(review: Review) -> Review:
    """Leave out the comments outside the diff, and count them."""
    kept = tuple(comment for comment in review.comments if "outside-diff" not in comment.flags)
    left_out = len(review.comments) - len(kept)
    counted = {**review.noted, "outside-diff left out": left_out} if left_out else review.noted
    return replace(review, comments=kept, noted=counted)


def matching_from(plain: Any) -> Matching:
    """What matching gave, from plain JSON.

    Raises:
        InfraError: if it is none.
    """
    return _read(Matching, plain, "matching")


def revision_to(revision: Revision) -> dict[str, Any]:
    """A revision as plain JSON; its patch is written by the caller as ``revision.patch``."""
    record = to_row(replace(revision, patch=b""))
    return {**record, "patch": _PATCH, "sha256": digest.of_bytes(revision.patch)}


def has_patch(plain: dict[str, Any], directory: Path) -> bool:
    """Whether the patch of a recorded revision is there, as it was."""
    try:
        return bool(plain["patch"] == _PATCH and digest.of_file(directory / _PATCH) == plain["sha256"])
    except (OSError, KeyError, TypeError):
        return False


def revision_from(plain: dict[str, Any], directory: Path) -> Revision:
    """A revision from plain JSON and the patch beside it.

    Raises:
        InfraError: if it is none, or the patch is gone or is not the recorded one.
    """
    path = directory / _PATCH
    try:
        patch = path.read_bytes()
    except OSError as error:
        raise InfraError(f"cannot read {path}: {error.strerror}; start a new run", reason="disk") from error
    record = {**plain, "patch": b""} if isinstance(plain, dict) else plain
    made = _read(Revision, record, "revision")
    if plain.get("patch") != _PATCH or digest.of_bytes(patch) != plain.get("sha256"):
        raise InfraError(f"{path} is not the patch that was recorded; start a new run", reason="changed")
    return replace(made, patch=patch)


def recorded(path: Path) -> Any:
    """Return the value of a stage record, whatever key it was made under.

    Raises:
        InfraError: if there is no such record, naming the file.
        StageError: the failure that was recorded in the value's place.
    """
    try:
        record = plainjson.parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InfraError(
            f"nothing to replay: {path} is missing or unreadable; record it by a run without "
            "--crbench-replay",
            reason="replay",
        ) from error
    try:
        failure = record.get("error")
        if failure is None:
            return record["value"]
        kind = STAGE_ERRORS[Status(failure["status"])]
        message, reason = clean(failure["message"]), clean(failure["reason"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InfraError(f"{path} is no record of a stage; start a new run", reason="record") from error
    raise kind(message, reason=reason)
