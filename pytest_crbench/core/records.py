"""Stage results as plain JSON, and back. Patches are files of their own beside the record."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from . import digest, jsonfile
from .errors import STAGE_ERRORS, InfraError
from .model import Review, ReviewComment, Revision
from .status import Status
from .text import clean

if TYPE_CHECKING:
    from pathlib import Path


def comment_to(comment: ReviewComment) -> dict[str, Any]:
    """A review comment as plain JSON."""
    plain = {k: v for k, v in asdict(comment).items() if v not in (None, ())}
    return {k: list(v) if isinstance(v, tuple) else clean(v) for k, v in plain.items()}


def comment_from(plain: dict[str, Any]) -> ReviewComment:
    """A review comment from plain JSON."""
    lines = plain.get("lines")
    fields = {**plain, "flags": tuple(plain.get("flags", ()))}
    return ReviewComment(**{**fields, "lines": (lines[0], lines[1]) if lines else None})


def review_to(review: Review) -> dict[str, Any]:
    """A review as plain JSON."""
    return {
        "comments": [comment_to(c) for c in review.comments],
        "reviewer": review.reviewer,
        "raw": review.raw,
        "warnings": [clean(w) for w in review.warnings],
        "duration": review.duration,
        "usage": dict(review.usage),
    }


def review_from(plain: dict[str, Any]) -> Review:
    """A review from plain JSON."""
    return Review(
        comments=tuple(comment_from(c) for c in plain["comments"]),
        reviewer=plain["reviewer"],
        raw=plain.get("raw"),
        warnings=tuple(plain.get("warnings", ())),
        duration=plain.get("duration", 0.0),
        usage=plain.get("usage", {}),
    )


def review_counts(review: Review) -> dict[str, Any]:
    """What a result row says of the review it belongs to."""
    return {
        "reviewer": review.reviewer,
        "comments": len(review.comments),
        "outside_diff": sum("outside-diff" in c.flags for c in review.comments),
        "duplicates": sum("duplicate" in c.flags for c in review.comments),
    }


def revision_to(revision: Revision) -> dict[str, Any]:
    """A revision as plain JSON; its patch is written by the caller as ``revision.patch``."""
    return {
        "patch": "revision.patch",
        "sha256": digest.of_bytes(revision.patch),
        "agent": revision.agent,
        "stop_reason": revision.stop_reason,
        "warnings": [clean(w) for w in revision.warnings],
        "duration": revision.duration,
        "usage": dict(revision.usage),
    }


def has_patch(plain: dict[str, Any], directory: Path) -> bool:
    """Whether the patch of a recorded revision is there, as it was."""
    try:
        return digest.of_file(directory / plain["patch"]) == str(plain["sha256"])
    except OSError:
        return False


def revision_from(plain: dict[str, Any], directory: Path) -> Revision:
    """A revision from plain JSON and the patch beside it.

    Raises:
        InfraError: if the patch is gone or is not the recorded one.
    """
    path = directory / plain["patch"]
    try:
        patch = path.read_bytes()
    except OSError as error:
        raise InfraError(f"cannot read {path}: {error.strerror}; start a new run", reason="disk") from error
    if digest.of_bytes(patch) != plain["sha256"]:
        raise InfraError(f"{path} is not the patch that was recorded; start a new run", reason="changed")
    return Revision(
        patch=patch,
        agent=plain["agent"],
        stop_reason=plain["stop_reason"],
        warnings=tuple(plain.get("warnings", ())),
        duration=plain.get("duration", 0.0),
        usage=plain.get("usage", {}),
    )


def recorded(path: Path) -> Any:
    """Return the value of a stage record, whatever key it was made under.

    Raises:
        InfraError: if there is no such record, naming the file.
        StageError: the failure that was recorded in the value's place.
    """
    try:
        record = jsonfile.read(path)
    except (OSError, ValueError) as error:
        raise InfraError(
            f"nothing to replay: {path} is missing or unreadable; record it by a run without "
            "--crbench-replay",
            reason="replay",
        ) from error
    failure = record.get("error")
    if failure is not None:
        raise STAGE_ERRORS[Status(failure["status"])](failure["message"], reason=failure.get("reason", ""))
    return record["value"]
