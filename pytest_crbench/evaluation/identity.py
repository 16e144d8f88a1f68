"""Names beside those of checks, and verdicts for what was never measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.model import Verdict
from ..host import digest

if TYPE_CHECKING:
    from ..core.model import Check, Environment, Instance, Key, Review
    from ..core.status import Status


def unmeasured(
    instance: Instance,
    check: Check,
    key: Key,
    status: Status,
    reason: str,
    sandbox: str | None = None,
    cause: str = "",
) -> Verdict:
    """Return the verdict of a check that no stage came to."""
    return Verdict(
        **vars(key),
        status=status,
        reason=reason,
        facets=instance.facets(check),
        check_digest=check.digest,
        sandbox=sandbox,
        log=log_path(instance),
        cause=cause,
    )


def environment_name(wanted: Environment) -> str:
    """Name of what an instance asks for, before it is known what that resolves to."""
    return digest.of(
        [
            wanted.python,
            wanted.requirements,
            wanted.as_of,
            wanted.install,
            *([wanted.version] if wanted.version else []),
        ]
    )[:16]


def log_path(instance: Instance) -> str:
    """Path of an instance's log, relative to the run directory."""
    return f"logs/{instance.dataset}/{instance.id}.log"


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
