"""Stage results as plain JSON, and back. Patches are files of their own beside the record."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..core.errors import STAGE_ERRORS, InfraError, ReviewerError
from ..core.matching import Match, Matching
from ..core.model import Review, ReviewComment, Revision
from ..core.status import Status
from ..host import digest
from ..text import plainjson
from ..text.printable import clean, printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The file of a revision's patch, beside its record.
_PATCH = "revision.patch"
#: Flags that have a count of their own in a row.
_COUNTED = ("outside-diff", "duplicate")
_MATCHES = ("matches", "line_matches", "rejected")


def comment_to(comment: ReviewComment) -> dict[str, Any]:
    """A review comment as plain JSON."""
    plain = {k: v for k, v in asdict(comment).items() if v not in (None, ())}
    return {k: list(v) if isinstance(v, tuple) else clean(v) for k, v in plain.items()}


def comment_from(plain: dict[str, Any]) -> ReviewComment:
    """A review comment from plain JSON.

    Raises:
        InfraError: if it is none.
    """
    with _reading("review comment"):
        lines = plain.get("lines")
        made = ReviewComment(
            **{
                **plain,
                "flags": tuple(plain.get("flags", ())),
                "replies": tuple(plain.get("replies", ())),
                "lines": (int(lines[0]), int(lines[1])) if lines else None,
            }
        )
        _expect(str, made.id, made.body, made.side, made.level, *made.flags, *made.replies)
        _expect((str, NoneType), made.path, made.suggestion, made.severity, made.rule)
    return made


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Say of a record that is damaged, or was never one of ours, that it is.

    Raises:
        InfraError: ``record``.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise InfraError(
            f"the recorded {what} is damaged ({type(error).__name__}: {printable(str(error), 120)}); start a "
            "new run",
            reason="record",
        ) from error


def _expect(kind: type | tuple[type, ...], *values: Any) -> None:
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"found {value!r}")


def _notes(plain: dict[str, Any]) -> dict[str, Any]:
    """What reviews and revisions have in common: warnings, duration, usage."""
    warnings, usage = tuple(plain.get("warnings", ())), plain.get("usage", {})
    duration = plain.get("duration", 0.0)
    _expect(str, *warnings)
    _expect((int, float), duration, *usage.values())
    if not all(map(isfinite, (duration, *usage.values()))):
        raise ValueError("a number that is none")
    return {"warnings": warnings, "duration": duration, "usage": usage}


def review_to(review: Review) -> dict[str, Any]:
    """A review as plain JSON."""
    return {
        "comments": [comment_to(c) for c in review.comments],
        "reviewer": review.reviewer,
        "raw": review.raw,
        "warnings": [clean(w) for w in review.warnings],
        "duration": review.duration,
        "usage": dict(review.usage),
        "noted": dict(review.noted),
    }


def review_from(plain: dict[str, Any]) -> Review:
    """A review from plain JSON.

    Raises:
        InfraError: if it is none.
    """
    with _reading("review"):
        comments = tuple(comment_from(c) for c in plain["comments"])
        counts = dict(plain.get("noted", {}))
        made = Review(comments, plain["reviewer"], plain.get("raw"), **_notes(plain), noted=counts)
        _expect(str, made.reviewer, *counts)
        _expect(int, *counts.values())
        _expect((str, NoneType), made.raw)
    return made


def reviewed(review: Review) -> dict[str, Any]:
    """Return what a reviewer gave as plain JSON: a vendor's own may give what is no review.

    Raises:
        ReviewerError: ``unreadable``.
    """
    try:
        record = review_to(review)
        sides = {comment.side for comment in review_from(record).comments}
        if not sides <= {"left", "right"}:
            raise ValueError(f"a comment on the side {sorted(sides - {'left', 'right'})[0]!r}")
    except (InfraError, AttributeError, TypeError, ValueError, OverflowError) as error:
        what = error.__cause__ or error
        raise ReviewerError(
            f"the reviewer returned no Review as it should be ({type(what).__name__}: "
            f"{printable(str(what), 200)})",
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


def matching_to(matching: Matching) -> dict[str, Any]:
    """What matching gave, as plain JSON."""
    return {
        **{name: [asdict(match) for match in getattr(matching, name)] for name in _MATCHES},
        "duplicates": list(matching.duplicates),
        "placeless": list(matching.placeless),
        "near": dict(matching.near),
        "abstained": matching.abstained,
        "categories": dict(matching.categories),
        "warnings": [clean(w) for w in matching.warnings],
        "duration": matching.duration,
        "usage": dict(matching.usage),
    }


def matching_from(plain: dict[str, Any]) -> Matching:
    """What matching gave, from plain JSON.

    Raises:
        InfraError: if it is none.
    """
    with _reading("matching"):
        matches, lines, rejected = (tuple(Match(**match) for match in plain[name]) for name in _MATCHES)
        made = Matching(
            matches=matches,
            line_matches=lines,
            rejected=rejected,
            duplicates=tuple(plain["duplicates"]),
            placeless=tuple(plain["placeless"]),
            near=dict(plain["near"]),
            abstained=plain["abstained"],
            categories=dict(plain["categories"]),
            **_notes(plain),
        )
        _expect(str, *made.duplicates, *made.placeless, *made.near, *made.categories.values())
        for match in (*made.matches, *made.line_matches, *made.rejected):
            _expect(str, match.reference, match.comment)
            _expect(int, match.distance)
        _expect(int, made.abstained, *made.near.values())
    return made


def revision_to(revision: Revision) -> dict[str, Any]:
    """A revision as plain JSON; its patch is written by the caller as ``revision.patch``."""
    return {
        "patch": _PATCH,
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
    with _reading("revision"):
        if plain["patch"] != _PATCH or digest.of_bytes(patch) != plain["sha256"]:
            raise InfraError(f"{path} is not the patch that was recorded; start a new run", reason="changed")
        made = Revision(patch, plain["agent"], plain["stop_reason"], **_notes(plain))
        _expect(str, made.agent, made.stop_reason)
    return made


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
    with _reading(f"stage {path.name}"):
        failure = record.get("error")
        if failure is None:
            return record["value"]
        kind = STAGE_ERRORS[Status(failure["status"])]
        message, reason = failure["message"], failure["reason"]
        _expect(str, message, reason)
    raise kind(clean(message), reason=clean(reason))
