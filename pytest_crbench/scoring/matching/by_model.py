"""A model says whether two comments say the same: several votes, each in both orders."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from ...core.errors import InfraError
from ...core.model import added
from ...host import digest
from ...models import prompts
from ...text import fences
from .asking import Question, ask_all, choice, schema_of
from .meaning import Answer, Compared, equal, in_full, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.model import ReviewComment
    from ...models.client import Model
    from .meaning import Pair

Verdict = Literal["same", "different", "unsure"]
VERDICTS: tuple[Verdict, ...] = ("same", "different", "unsure")
SCHEMA = schema_of("verdict", VERDICTS)
TEMPLATES = ("match_pair_system", "match_pair")
#: Characters of one comment that the model is shown.
TEXT_LIMIT = 8_000
_TAGS = fences.tags("first_comment", "second_comment")
_read = choice("verdict", VERDICTS)


class ModelMeaning:
    """Asks a model about each pair of texts.

    One vote is two questions, which differ in which comment comes first. A vote is for "same" or "different"
    if both answers say so; if they disagree, or one is "unsure", it is for neither. The answer is "yes" or
    "no" if more than half of all ``votes`` are for "same" or for "different"; else it abstains. Votes
    that can change nothing any more are not asked for. Equal texts are the same without a question.
    """

    def __init__(self, model: Model, votes: int = 1) -> None:
        self._model = model
        self.votes = votes
        self.fingerprint: Mapping[str, Any] = {
            "meaning": "model",
            "version": 1,
            "model": model.identity,
            "votes": votes,
            "orders": "both in each vote",
            "text_limit": TEXT_LIMIT,
            "prompts": prompts.digest_of(*TEMPLATES),
            "schema": digest.of(SCHEMA),
        }

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair, "abstain" included.

        Raises:
            InfraError: as ``ask_all``: the endpoint failed, or two answers in a row cannot be read.
        """
        alike = [equal(*texts) for texts in texts_of(pairs)]
        # In the order of strings: which of them is the reference plays no part.
        texts = [(min(both), max(both)) for both in texts_of(pairs, _shown)]
        asked = {both for both, equals in zip(texts, alike, strict=True) if not equals}
        answers, usage = self._answers(sorted(asked))
        found = ("yes" if equals else answers[both] for both, equals in zip(texts, alike, strict=True))
        return Compared(tuple(found), usage)

    def _answers(
        self, texts: Sequence[tuple[str, str]]
    ) -> tuple[dict[tuple[str, str], Answer], dict[str, float]]:
        """Take votes on each pair of texts until it is settled."""
        cast: dict[tuple[str, str], Counter[Verdict]] = {both: Counter() for both in texts}
        # A comment without a word (and without a suggestion) says nothing that could be the same.
        answers: dict[tuple[str, str], Answer] = {both: "no" for both in texts if not all(both)}
        spent: dict[str, float] = {}
        for vote in range(1, self.votes + 1):
            unsettled = [both for both in texts if both not in answers]
            if not unsettled:
                break
            orders = [order for one, other in unsettled for order in ((one, other), (other, one))]
            try:
                said, usage = ask_all(self._model, [_question(*order, vote) for order in orders])
            except InfraError as error:
                error.usage = added(spent, error.usage)
                raise
            spent = added(spent, usage)
            for both, first, second in zip(unsettled, said[::2], said[1::2], strict=True):
                cast[both][first if first == second else "unsure"] += 1
                settled = verdict(cast[both], self.votes)
                if settled:
                    answers[both] = settled
        return answers, spent


def verdict(cast: Mapping[Verdict, int], votes: int) -> Answer | None:
    """Return what the votes ``cast`` so far, of ``votes`` in all, decide; None if the rest still matters."""
    left = votes - sum(cast.values())
    same, different = cast.get("same", 0), cast.get("different", 0)
    if 2 * same > votes:
        return "yes"
    if 2 * different > votes:
        return "no"
    if 2 * (max(same, different) + left) <= votes:
        return "abstain"
    return None


def _shown(comment: ReviewComment) -> str:
    return fences.clip(in_full(comment), TEXT_LIMIT)


def _question(first: str, second: str, vote: int) -> Question:
    return Question(
        system=prompts.render("match_pair_system"),
        user=prompts.render(
            "match_pair", first=fences.fence(first, _TAGS), second=fences.fence(second, _TAGS)
        ),
        read=_read,
        name="verdict",
        schema=SCHEMA,
        sample=vote,
    )
