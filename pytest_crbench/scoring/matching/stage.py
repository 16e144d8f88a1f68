"""The scoring by matching: the review's comments against the reference comments, once per evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...core.errors import StageError
from ...core.matching import MatchTask
from ...core.model import added
from ...core.records import to_row
from ...core.status import Status
from ...evaluation import records
from ...host import digest

if TYPE_CHECKING:
    from ...core.matching import Classifies, Matcher, Matching
    from ...core.model import Check, Verdict
    from ...evaluation.evaluation import Evaluation

_NAME = "matching"


@dataclass(frozen=True)
class MatchingDecider:
    """Matches the reviews of a run, each once.

    ``classifier`` sorts comments that match nothing; None where that was not asked for.
    """

    matcher: Matcher
    classifier: Classifies | None = None

    def verdict(self, evaluation: Evaluation, check: Check) -> Verdict:
        """Return the verdict on one check.

        Raises:
            StageError: if there is no measurement.
        """
        found = self.result(evaluation)
        evaluation.counts[_NAME] = self.counts(evaluation, found)
        hit = next((match for match in found.matches if match.reference == check.id), None)
        return replace(
            evaluation.blank(check, _NAME),
            status=Status.PASSED if hit else Status.MISSED,
            reason=_reason(found, check.id, hit.comment if hit else None),
            matching={
                "comment": hit.comment if hit else None,
                "distance": hit.distance if hit else None,
                "near": found.near.get(check.id, 0),
                "line": any(match.reference == check.id for match in found.line_matches),
            },
            warnings=(*evaluation.review.warnings, *found.warnings),
        )

    def result(self, evaluation: Evaluation) -> Matching:
        """Match the review of one evaluation, once.

        Raises:
            StageError: if there is no review, or meanings could not be compared.
        """
        if _NAME not in evaluation.kept:
            evaluation.kept[_NAME] = self._matched(evaluation)
        found: Matching = evaluation.kept[_NAME]
        return found

    def key(self, evaluation: Evaluation) -> str:
        """Digest of all that goes into matching one review."""
        task = _task(evaluation)
        return digest.of(
            {
                "crbench": __version__,
                "references": [records.comment_to(c) for c in task.references],
                "rejected": [records.comment_to(c) for c in task.rejected],
                "comments": [records.comment_to(c) for c in task.comments],
                "renames": dict(task.renames),
                "matcher": dict(self.matcher.fingerprint),
                "classifier": None if self.classifier is None else dict(self.classifier.fingerprint),
            }
        )

    def counts(self, evaluation: Evaluation, found: Matching) -> dict[str, Any]:
        """What became of a review's comments (docs/results-format.md)."""
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
            "published": self.matcher.fingerprint.get("matcher") == "aacr-legacy",
        }

    def _matched(self, evaluation: Evaluation) -> Matching:
        task = _task(evaluation)

        def make() -> dict[str, Any]:
            evaluation.log(f"matching {evaluation.repeat}: {len(task.comments)} comments")
            try:
                found = self._sorted(evaluation, self.matcher.match(task))
            except StageError as error:
                evaluation.log(f"matching {evaluation.repeat}: {error.status.value}: {error}")
                raise
            hits = f"{len(found.matches)} of {len(task.references)} references found"
            evaluation.log(f"matching {evaluation.repeat}: {hits}")
            return to_row(found)

        return records.matching_from(evaluation.stage("matching", self.key(evaluation), make))

    def _sorted(self, evaluation: Evaluation, found: Matching) -> Matching:
        """Have the unlabelled comments sorted, where that was asked for."""
        if self.classifier is None:
            return found
        known = {m.comment for m in (*found.matches, *found.rejected)} | {*found.duplicates, *found.placeless}
        told = self.classifier.classify([c for c in evaluation.review.comments if c.id not in known])
        return replace(found, categories=told.categories, usage=added(found.usage, told.usage))


def _sorts(found: Matching) -> dict[str, int]:
    """Unlabelled comments by the category that a model gave them."""
    sorts: dict[str, int] = {}
    for category in found.categories.values():
        sorts[category] = sorts.get(category, 0) + 1
    return dict(sorted(sorts.items()))


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


def _reason(found: Matching, check: str, comment: str | None) -> str:
    if comment is not None:
        return f"comment {comment} says so"
    near = found.near.get(check, 0)
    if not near:
        return "no comment at this place"
    if near == 1:
        return "one comment at this place, which says something else or counts for another reference"
    return f"{near} comments at this place, which say something else or count for other references"
