"""Sorting comments into the four categories of AACR-Bench by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.matching import Classified
from ...host import digest
from ...models import prompts
from ...text import fences
from .asking import Question, ask_all, choice, schema_of
from .by_model import TEXT_LIMIT
from .meaning import in_full

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.model import ReviewComment
    from ...models.client import Model

#: The categories, in the dataset's own words, and ours for what they mean.
CATEGORIES = {
    "Code Defect": "the code does something wrong, or will in some case: logic, races, missing checks",
    "Security Vulnerability": "somebody could abuse the code: injection, leaks, missing permission checks",
    "Performance": "the code takes more time, memory or other resources than it needs to",
    "Maintainability and Readability": (
        "the code works and is hard to read, test or change: names, structure, comments, dead code, style"
    ),
}
_SCHEMA = schema_of("category", tuple(CATEGORIES))
_TAGS = fences.tags("review_comment")
_read = choice("category", tuple(CATEGORIES))


class Classifier:
    """Asks a model for the category of each comment."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.fingerprint: Mapping[str, Any] = {
            "version": 1,
            "model": model.identity,
            "prompts": prompts.digest_of("match_classify"),
            "schema": digest.of(_SCHEMA),
        }

    def classify(self, comments: Sequence[ReviewComment]) -> Classified:
        """Return the category of each comment; one without a word has none. Equal texts are asked for once.

        Raises:
            InfraError: if the endpoint fails, or two answers in a row cannot be read.
        """
        texts = {comment.id: fences.clip(in_full(comment), TEXT_LIMIT) for comment in comments}
        asked = sorted({text for text in texts.values() if text})
        found, usage = ask_all(self._model, [_question(text) for text in asked])
        category = dict(zip(asked, found, strict=True))
        return Classified({name: category[text] for name, text in texts.items() if text}, usage)


def _question(text: str) -> Question:
    categories = [{"name": name, "meaning": meaning} for name, meaning in CATEGORIES.items()]
    return Question(
        system="You sort comments from code reviews.",
        user=prompts.render("match_classify", categories=categories, comment=fences.fence(text, _TAGS)),
        read=_read,
        name="category",
        schema=_SCHEMA,
    )
