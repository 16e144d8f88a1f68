"""The scoring by matching: the review's comments against the reference comments, once per evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import __version__
from . import digest, records
from .errors import InfraError, StageError
from .matching import MatchTask
from .status import Status
from .store import added

if TYPE_CHECKING:
    from .evaluation import Evaluation
    from .matching import Matching
    from .model import Check, Verdict


def matching_of(evaluation: Evaluation) -> Matching:
    """Match the review of one evaluation, or take the recorded result.

    Raises:
        StageError: if there is no review, or meanings could not be compared.
    """
    matcher = evaluation.owner.parts.matcher
    if matcher is None:
        raise InfraError("this run was made without anything that matches comments", reason="matcher")
    task = _task(evaluation)

    def make() -> dict[str, Any]:
        evaluation.log(f"matching {evaluation.repeat}: {len(task.comments)} comments")
        try:
            found = _sorted(evaluation, matcher.match(task))
        except StageError as error:
            evaluation.log(f"matching {evaluation.repeat}: {error.status.value}: {error}")
            raise
        evaluation.log(
            f"matching {evaluation.repeat}: {len(found.matches)} of {len(task.references)} references found"
        )
        return records.matching_to(found)

    return records.matching_from(evaluation.stage("matching", evaluation.matching_key, make))


def verdict_by_matching(evaluation: Evaluation, check: Check) -> Verdict:
    """Return the verdict on one check: passed if a comment was assigned to its reference.

    Raises:
        StageError: if there is no measurement.
    """
    found = evaluation.matching
    hit = next((match for match in found.matches if match.reference == check.id), None)
    blank = evaluation.blank(check, "matching")
    return replace(
        blank,
        status=Status.PASSED if hit else Status.MISSED,
        reason=_reason(found, check.id, hit.comment if hit else None),
        keys={
            "review": evaluation.review_key,
            "matching": evaluation.matching_key,
        },
        matching={
            **counts(evaluation, found),
            "comment": hit.comment if hit else None,
            "distance": hit.distance if hit else None,
            "near": found.near.get(check.id, 0),
            "line": any(match.reference == check.id for match in found.line_matches),
        },
        warnings=(*evaluation.review.warnings, *found.warnings),
    )


def counts(evaluation: Evaluation, found: Matching) -> dict[str, Any]:
    """What became of the comments of one review; the same on each of its checks (docs/results-format.md)."""
    comments = len(evaluation.review.comments)
    known = len(found.matches) + len(found.rejected) + len(found.duplicates) + len(found.placeless)
    diff = evaluation.diff
    return {
        "comments": comments,
        "references": len(evaluation.instance.checks),
        "matched": len(found.matches),
        "line_matched": len(found.line_matches),
        "rejected": len(found.rejected),
        "rejected_of": len(evaluation.instance.rejected),
        "duplicates": len(found.duplicates),
        "placeless": len(found.placeless),
        "unlabelled": comments - known,
        "categories": _sorts(found),
        "hunks": None if diff is None else sum(max(len(f.left), len(f.right)) for f in diff.files),
        "abstained": found.abstained,
        "published": evaluation.owner.parts.matcher is not None
        and evaluation.owner.parts.matcher.fingerprint.get("matcher") == "aacr-legacy",
    }


def _sorts(found: Matching) -> dict[str, int]:
    """Unlabelled comments by the category that a model gave them."""
    sorts: dict[str, int] = {}
    for category in found.categories.values():
        sorts[category] = sorts.get(category, 0) + 1
    return dict(sorted(sorts.items()))


def _sorted(evaluation: Evaluation, found: Matching) -> Matching:
    """Have the unlabelled comments sorted, where that was asked for."""
    classifier = evaluation.owner.parts.classifier
    if classifier is None:
        return found
    known = {m.comment for m in (*found.matches, *found.rejected)} | {*found.duplicates, *found.placeless}
    told = classifier.classify([c for c in evaluation.review.comments if c.id not in known])
    return replace(found, categories=told.categories, usage=added(found.usage, told.usage))


def _task(evaluation: Evaluation) -> MatchTask:
    instance, diff = evaluation.instance, evaluation.diff
    return MatchTask(
        pull_request=f"{instance.dataset}::{instance.id}",
        references=tuple(replace(check.comment, id=check.id) for check in instance.checks),
        rejected=instance.rejected,
        comments=evaluation.review.comments,
        renames={} if diff is None else diff.renames,
        log=evaluation.log,
    )


def matching_key(evaluation: Evaluation) -> str:
    """Digest of all that goes into matching one review."""
    parts, task = evaluation.owner.parts, _task(evaluation)
    matcher, classifier = parts.matcher, parts.classifier
    return digest.of(
        {
            "crbench": __version__,
            "references": [records.comment_to(c) for c in task.references],
            "rejected": [records.comment_to(c) for c in task.rejected],
            "comments": [records.comment_to(c) for c in task.comments],
            "renames": dict(task.renames),
            "matcher": None if matcher is None else dict(matcher.fingerprint),
            "classifier": None if classifier is None else dict(classifier.fingerprint),
        }
    )


def _reason(found: Matching, check: str, comment: str | None) -> str:
    if comment is not None:
        return f"comment {comment} says so"
    near = found.near.get(check, 0)
    if not near:
        return "no comment at this place"
    if near == 1:
        return "one comment at this place, which says something else or counts for another reference"
    return f"{near} comments at this place, which say something else or count for other references"
