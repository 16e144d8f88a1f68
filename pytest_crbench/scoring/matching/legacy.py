"""The arithmetic of the evaluator that AACR-Bench was published with, in January 2026, faults included.

Here so that published numbers can be made again; every rule below is a fact about that program, told in
docs/matching.md with what follows from it. None of it is used otherwise.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from ...core.errors import InfraError
from ...core.matching import Match, Matching
from ...core.model import added
from ...models import prompts
from .asking import Question, ask_once
from .meaning import Pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.matching import MatchTask
    from ...core.model import ReviewComment
    from ...models.client import Model
    from .meaning import Meaning

#: Words that read as yes, wherever they stand in an answer, also within other words.
_POSITIVE = ("yes", "similar", "same", "identical", "equivalent")
#: The run's own limits: nothing that the endpoint did, so nothing that the published program met.
_OURS = ("budget", "ledger", "disk")


class Asked(Protocol):
    """What is asked of one pair at one place."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides its answers, as plain JSON."""

    def __call__(self, pair: Pair) -> tuple[bool, Mapping[str, float]]:
        """Answer, and say what was used up.

        Raises:
            InfraError: if no answer came.
        """


class LegacyQuestion:
    """Asks a model for yes or no, once, in free text."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.fingerprint: Mapping[str, Any] = {
            "meaning": "model",
            "version": 1,
            "model": model.identity,
            "prompts": prompts.digest_of("match_legacy"),
        }

    def __call__(self, pair: Pair) -> tuple[bool, Mapping[str, float]]:
        """Ask about one pair, the reference second, and read the answer as `reads_as_yes`.

        Raises:
            InfraError: if no answer came.
        """
        text = prompts.render("match_legacy", first=pair.comment.body, second=pair.reference.body)
        reply, usage = ask_once(self._model, Question(system="", user=text, read=str))
        return reads_as_yes(reply), usage


class LegacyMeaning:
    """Asks another way of comparing meanings (``exact``, ``embedding``) about one pair at a time."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self.origin: Mapping[str, Any] = getattr(meaning, "origin", {})
        self.fingerprint = meaning.fingerprint

    def __call__(self, pair: Pair) -> tuple[bool, Mapping[str, float]]:
        """Compare one pair.

        Raises:
            InfraError: as the meaning.
        """
        compared = self._meaning.same([pair])
        return compared.answers == ("yes",), compared.usage


def reads_as_yes(reply: str) -> bool:
    """Read an answer as the published evaluator does.

    In lower case: if "yes" occurs anywhere, the answer is yes unless "no" occurs before the first "yes",
    as a word or within one. If "yes" does not occur, it is yes if "similar", "same", "identical" or
    "equivalent" occurs. So "No. The comments are not identical" is a yes, and "Both comments note the same
    race. Yes" is a no.
    """
    text = reply.lower()
    before, found, _ = text.partition("yes")
    return "no" not in before if found else any(word in text for word in _POSITIVE)


class LegacyMatcher:
    """Matches as the published evaluator.

    Unlike every other matcher its result depends on the order of comments and of references.

    Args:
        asked: the question about a pair.
        line_tolerance: lines between two ranges that are still one place (1, as published).
        reference_ids: whether references have ids of their own. The published data has none, so that all
            of a pull request count as one, and one match is all that there can be.
    """

    def __init__(self, asked: Asked, *, line_tolerance: int = 1, reference_ids: bool = False) -> None:
        self._asked = asked
        self.line_tolerance = line_tolerance
        self.reference_ids = reference_ids
        self.origin: Mapping[str, Any] = getattr(asked, "origin", {})
        self.fingerprint: Mapping[str, Any] = {
            "matcher": "aacr-legacy",
            "version": 1,
            "line_tolerance": line_tolerance,
            "reference_ids": reference_ids,
            "meaning": dict(asked.fingerprint),
        }

    def match(self, task: MatchTask) -> Matching:
        """Match one review. What experts rejected plays no part; nothing is a duplicate or placeless.

        Raises:
            InfraError: if the run's budget is used up or the disk is full; any other failure to get an
                answer is a "no", as published, and told in the warnings.
        """
        began = time.monotonic()
        state = _State(self._asked, task, self.reference_ids)
        for comment in task.comments:
            if comment.body.strip():
                state.take(comment, self._at_place(comment, task.references))
        warnings: tuple[str, ...] = ()
        if state.unanswered:
            warnings = (f"{state.unanswered} question(s) got no answer and count as a no: {state.failure}",)
        return Matching(
            matches=tuple(state.matches),
            line_matches=tuple(state.line_matches),
            near={r.id: state.near.get(r.id, 0) for r in task.references},
            warnings=warnings,
            duration=time.monotonic() - began,
            usage=state.usage,
        )

    def _at_place(
        self, comment: ReviewComment, references: tuple[ReviewComment, ...]
    ) -> list[tuple[ReviewComment, int]]:
        """Return the references at a comment's place, in order, with their distance."""
        found = []
        for reference in references:
            away = _apart(comment, reference)
            if reference.body.strip() and away is not None and away <= self.line_tolerance:
                found.append((reference, away))
        return found


class _State:
    """What has been matched so far."""

    def __init__(self, asked: Asked, task: MatchTask, reference_ids: bool) -> None:
        self._asked = asked
        self._task = task
        self._reference_ids = reference_ids
        self._found: set[str | None] = set()
        self._found_by_line: set[str | None] = set()
        self.matches: list[Match] = []
        self.line_matches: list[Match] = []
        self.near: dict[str, int] = {}
        self.usage: dict[str, float] = {}
        self.unanswered = 0
        self.failure = ""

    def take(self, comment: ReviewComment, at_place: list[tuple[ReviewComment, int]]) -> None:
        """Go through the references at a comment's place; the first that says the same is its match."""
        for reference, _ in at_place:
            self.near[reference.id] = self.near.get(reference.id, 0) + 1
        by_line = False
        for reference, away in at_place:
            name = reference.id if self._reference_ids else None
            if name not in self._found_by_line:
                # It is used up although the comment may have one by line already, and counts once.
                self._found_by_line.add(name)
                if not by_line:
                    self.line_matches.append(Match(reference.id, comment.id, away))
                by_line = True
            if name not in self._found and self._same(Pair(reference, comment)):
                self._found.add(name)
                self.matches.append(Match(reference.id, comment.id, away))
                return

    def _same(self, pair: Pair) -> bool:
        try:
            same, usage = self._asked(pair)
        except InfraError as error:
            self.usage = added(self.usage, error.usage)
            if error.reason in _OURS:
                error.usage = self.usage
                raise
            self.unanswered += 1
            self.failure = str(error)
            self._task.log(f"no answer about {pair.comment.id} and {pair.reference.id}: {error}")
            return False
        self.usage = added(self.usage, usage)
        return same


def _apart(comment: ReviewComment, reference: ReviewComment) -> int | None:
    """Return the lines between two comments, 0 where either lacks a line; None if not in one place at all.

    A path that is missing is any path.
    """
    if comment.path and reference.path and comment.path != reference.path:
        return None
    if comment.side != reference.side:
        return None
    one, other = _lines(comment), _lines(reference)
    if not all(one) or not all(other):
        return 0
    if one[0] <= other[1] and other[0] <= one[1]:
        return 0
    return min(abs(one[0] - other[1]), abs(other[0] - one[1]))


def _lines(comment: ReviewComment) -> tuple[int, ...]:
    """Return the two lines as the tool or the dataset gave them; (0,) if it gave none."""
    if comment.lines is None:
        return (0,)
    # Whoever read the comment put its lines in order; the published evaluator does not.
    return comment.lines[::-1] if "range-swapped" in comment.flags else comment.lines
