"""The scoring of AACR-Bench (arXiv 2601.19494): comments against reference comments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ...core.matching import lines_of
from ...core.scoring import Scoring
from ...statistics.bootstrap import METHOD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...core.model import Check, Verdict
    from ...core.scoring import Decider, Numbers, Of
    from ...core.settings import Settings

_PUBLISHED = "AACR-Bench's own evaluator"


class MatchingScoring(Scoring):
    """A check is a reference comment; it passes if a comment of the review is assigned to it."""

    name = "matching"
    stages = ("review", "matching")
    passed = "found"
    rate = "recall"
    decided = "matched to references"
    lacks = "no reference comment that names lines"
    metrics: ClassVar[Mapping[str, str]] = {
        "recall": "references found / references",
        "precision": "matched comments / comments",
        "f1": "harmonic mean of precision and recall",
        "line_precision": "precision by place alone",
        "line_recall": "recall by place alone",
        "line_f1": "F1 by place alone",
        "macro_precision": "mean over pull requests of their precision",
        "macro_recall": "mean over pull requests of their recall",
        "macro_f1": "mean over pull requests of their F1",
        "noise": "share of the comments that repeat another, hit a rejected one or name no place",
    }
    headline = ("precision", "f1")
    tells: ClassVar[Mapping[str, Of]] = {
        "recall": "selected",
        "line_recall": "selected",
        "macro_recall": "decided",
    }
    json_key = "agreement"
    method = f"precision and F1: {METHOD}"
    options = ("matcher",)
    alike = "way of matching"
    advice = "Correct --matcher and its options"
    unlike = "comments were matched in different ways"
    tables = "reports.tables_matching:matching_tables"

    def applies(self, check: Check, *, file_level: bool) -> bool:
        """Whether a comment can match: the reference names a path, and lines unless its file is enough."""
        return check.comment.path is not None and (lines_of(check.comment) is not None or file_level)

    def decider(self, settings: Settings, run: Path | None) -> Decider:
        """Return what matches the reviews of a run; asks no endpoint yet.

        Raises:
            UsageError: if a package, a model's name or a key is missing.
        """
        from .matchers import make_classifier, make_matcher
        from .stage import MatchingDecider

        return MatchingDecider(make_matcher(settings, run), make_classifier(settings, run))

    def inputs(self, decider: Decider) -> dict[str, Any]:
        """Return the fingerprints of what compares meanings, and of what sorts comments."""
        from .stage import MatchingDecider

        assert isinstance(decider, MatchingDecider)
        classifier = decider.classifier
        return {
            "matcher": dict(decider.matcher.fingerprint),
            **({} if classifier is None else {"classifier": dict(classifier.fingerprint)}),
        }

    def look(self, settings: Settings) -> str:
        """Say how meanings are compared, once what does so has been made."""
        self.decider(settings, None)
        return f"meanings by {_PUBLISHED if settings.aacr_legacy else settings.matcher}"

    def measure(self, verdicts: Sequence[Verdict]) -> Numbers | None:
        """Return precision, recall and F1, and what goes with them."""
        from .numbers import measure

        return measure(verdicts)


SCORING = MatchingScoring()
