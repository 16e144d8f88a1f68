"""The matcher: places, then meanings, then one comment for each reference; and what the others are."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from ...core.errors import StageError
from ...core.matching import Match, Matching
from ...core.model import added
from .assign import assign
from .meaning import Pair
from .place import candidates, is_placeless

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ...core.matching import MatchTask
    from ...core.model import ReviewComment
    from .meaning import Meaning
    from .place import Candidate, Rules

#: Raised when a rule changes in a way that changes results.
_VERSION = 1


class CommentMatcher:
    """Matches by place (``rules``) and ``meaning``; see docs/matching.md for each rule."""

    def __init__(self, meaning: Meaning, rules: Rules) -> None:
        self.meaning = meaning
        self.rules = rules
        self.origin: Mapping[str, Any] = getattr(meaning, "origin", {})
        self.fingerprint: Mapping[str, Any] = {
            "matcher": "assignment",
            "version": _VERSION,
            "line_tolerance": rules.line_tolerance,
            "file_level": rules.file_level,
            "meaning": dict(meaning.fingerprint),
        }

    def match(self, task: MatchTask) -> Matching:
        """Match one review.

        Raises:
            InfraError: if meanings could not be compared; its ``usage`` is what was used up by then.
            ValueError: if two comments, or two references, have one id.
        """
        began = time.monotonic()
        for comments in (task.references, task.rejected, task.comments):
            _check_ids(task.pull_request, comments)
        compared = _Comparison(self.meaning)
        near = candidates(task.references, task.comments, task.renames, self.rules)
        agree = compared.agreeing(near, task.references, task.comments)
        matches = assign(agree)
        # What is a match cannot be a hit on what experts rejected: nobody need ask for its meaning.
        rest = _without(task.comments, {match.comment for match in matches})
        near_rejected = candidates(task.rejected, rest, task.renames, self.rules)
        agree_rejected = compared.agreeing(near_rejected, task.rejected, rest)
        rejected = assign(agree_rejected)
        rest = _without(rest, {match.comment for match in rejected})
        task.log(
            f"matching: {len(near)} pairs at one place, {len(agree)} of them say the same; "
            f"{len(matches)} of {len(task.references)} references found, {len(rejected)} rejected ones hit, "
            f"{compared.abstained} abstentions"
        )
        repeating = {pair.comment for pair in (*agree, *agree_rejected)}
        return Matching(
            matches=_plain(matches),
            line_matches=_plain(assign(near)),
            rejected=_plain(rejected),
            duplicates=tuple(sorted(c.id for c in rest if c.id in repeating)),
            placeless=tuple(sorted(c.id for c in rest if c.id not in repeating and is_placeless(c))),
            near=_counts(task.references, near),
            abstained=compared.abstained,
            duration=time.monotonic() - began,
            usage=compared.usage,
        )


class _Comparison:
    """Asks for meanings, and adds up what that takes."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self.usage: dict[str, float] = {}
        self.abstained = 0

    def agreeing(
        self,
        pairs: Sequence[Candidate],
        references: Iterable[ReviewComment],
        comments: Iterable[ReviewComment],
    ) -> list[Candidate]:
        """Return the pairs that say the same.

        Raises:
            InfraError: as `Meaning.same`, with all that was used up so far.
        """
        by_id = {r.id: r for r in references}, {c.id: c for c in comments}
        try:
            found = self._meaning.same([Pair(by_id[0][p.reference], by_id[1][p.comment]) for p in pairs])
        except StageError as error:
            error.usage = added(self.usage, error.usage)
            raise
        self.usage = added(self.usage, found.usage)
        self.abstained += found.answers.count("abstain")
        return [pair for pair, answer in zip(pairs, found.answers, strict=True) if answer == "yes"]


def _check_ids(pull_request: str, comments: Sequence[ReviewComment]) -> None:
    twice = [name for name, count in Counter(comment.id for comment in comments).items() if count > 1]
    if twice:
        raise ValueError(f"{pull_request}: several comments have the id {twice[0]!r}")


def _without(comments: Iterable[ReviewComment], gone: Collection[str]) -> list[ReviewComment]:
    return [comment for comment in comments if comment.id not in gone]


def _plain(pairs: Iterable[Candidate]) -> tuple[Match, ...]:
    return tuple(Match(*pair) for pair in pairs)


def _counts(references: Iterable[ReviewComment], near: Iterable[Candidate]) -> dict[str, int]:
    count = Counter(pair.reference for pair in near)
    return {name: count[name] for name in sorted(reference.id for reference in references)}
