"""Whether two comments say the same: the protocol of all ways to compare them, the exact one, and vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ...core.errors import InfraError
from ...models.usage import Usage
from ...text.suggestion_blocks import suggestion_blocks
from .asking import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...core.model import ReviewComment
    from ...models.embeddings import Embeddings

    #: Texts to one vector each, and what that used up. Raises InfraError.
    Embed = Callable[[Sequence[str]], tuple[Sequence[Sequence[float]], Usage]]

Answer = Literal["yes", "no", "abstain"]


class Pair(NamedTuple):
    """A reference and a comment at its place."""

    reference: ReviewComment
    comment: ReviewComment


@dataclass(frozen=True)
class Compared:
    """One answer for each pair, and what was used up for them."""

    answers: tuple[Answer, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)


class Meaning(Protocol):
    """A way to compare comments."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides its answers, as plain JSON."""

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair whether both say the same.

        An answer depends on the two comments alone, not on the other pairs.

        Raises:
            InfraError: if the pairs could not be compared. That is never a "no".
        """


def prose(comment: ReviewComment) -> str:
    """Return what a comment says in words: its body without suggestion blocks, white space as one blank."""
    body = comment.body.replace("\r\n", "\n")
    if "suggestion" in body:
        lines = body.split("\n")
        for first, last, _ in reversed(suggestion_blocks(body)):
            del lines[first : last + 1]
        body = "\n".join(lines)
    return " ".join(body.split())


def replacement(comment: ReviewComment) -> str:
    """Return the code that a comment suggests, from its own field or its body; "" if none."""
    if comment.suggestion is not None:
        return comment.suggestion
    body = comment.body
    return "".join(text for _, _, text in suggestion_blocks(body)) if "suggestion" in body else ""


def said(comment: ReviewComment) -> str:
    """Return the text that stands for a comment: its words, or its suggestion where it has no words.

    Two comments with the same text say the same; "" is a comment that says nothing.
    """
    return prose(comment) or " ".join(replacement(comment).split())


def texts_of(pairs: Sequence[Pair], text_of: Callable[[ReviewComment], str] = said) -> list[tuple[str, str]]:
    """Return both texts of each pair; of a comment that is in many pairs, its text is made once."""
    texts: dict[int, str] = {}
    for pair in pairs:
        for comment in pair:
            if id(comment) not in texts:
                texts[id(comment)] = text_of(comment)
    return [(texts[id(pair.reference)], texts[id(pair.comment)]) for pair in pairs]


def in_full(comment: ReviewComment) -> str:
    """Return all that a comment says: its body, and the suggestion where the body does not show it."""
    body = comment.body.replace("\r\n", "\n").strip()
    if comment.suggestion is None or (body and "suggestion" in body and suggestion_blocks(body)):
        return body
    shown = comment.suggestion.rstrip("\n") or "(delete these lines)"
    return f"{body}\n\nSuggested replacement:\n{shown}".strip()


class ExactMeaning:
    """Compares texts: white space and suggestion blocks do not count, unless a comment is nothing else."""

    fingerprint: Mapping[str, Any] = {"meaning": "exact", "version": 1}

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair; never abstains. A comment that says nothing is like no other."""
        return Compared(tuple("yes" if equal(*texts) else "no" for texts in texts_of(pairs)))


def equal(one: str, other: str) -> bool:
    """Whether two comments are equal by what they say (see `meaning.said`)."""
    return bool(one) and one == other


class EmbeddingMeaning:
    """Compares the cosine of two vectors with a threshold, from -1 to 1.

    ``origin`` says, for readers, where the threshold is from and how often it errs. Suggestion blocks do
    not count, as with `ExactMeaning`.
    """

    def __init__(
        self, embeddings: Embeddings, threshold: float, origin: Mapping[str, Any] | None = None
    ) -> None:
        self._embeddings = embeddings
        self.threshold = threshold
        self.origin: Mapping[str, Any] = origin or {}
        self.fingerprint: Mapping[str, Any] = {
            "meaning": "embedding",
            "version": 1,
            "threshold": threshold,
            "embeddings": embeddings.identity,
        }

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair; never abstains. A comment that says nothing is like no other.

        Raises:
            InfraError: as `Embeddings.embed`; ``unreadable`` for vectors that cannot be compared.
        """
        both = texts_of(pairs)
        saying = sorted({texts for texts in both if all(texts)})
        found, usage = cosines(self._embeddings.embed, saying)
        same = {texts for texts, cosine in zip(saying, found, strict=True) if cosine >= self.threshold}
        used = counted(usage, self._embeddings.model) if saying else {}
        return Compared(tuple("yes" if texts in same else "no" for texts in both), used)


def cosines(embed: Embed, pairs: Sequence[tuple[str, str]]) -> tuple[list[float], Usage]:
    """Return the cosine of each pair of texts, and what was used up; nothing is asked for without a pair.

    Raises:
        InfraError: as ``embed``; ``unreadable`` for vectors that cannot be compared.
    """
    texts = sorted({text for pair in pairs for text in pair})
    if not texts:
        return [], Usage()
    vectors, usage = embed(texts)
    directions = dict(zip(texts, map(_direction, vectors), strict=True))
    return [
        1.0 if one == other else _product(directions[one], directions[other]) for one, other in pairs
    ], usage


def _direction(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(x * x for x in vector))
    if not 0 < length < math.inf:
        raise _incomparable("a vector without a direction")
    return [x / length for x in vector]


def _product(one: list[float], other: list[float]) -> float:
    if len(one) != len(other):
        raise _incomparable(f"vectors of {len(one)} and {len(other)} numbers")
    # The order of a pair must not decide at the threshold: fsum rounds once.
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def _incomparable(what: str) -> InfraError:
    return InfraError(
        f"the embeddings of comments have {what}, which cannot be compared. Check --crbench-embedding-model.",
        reason="unreadable",
    )
