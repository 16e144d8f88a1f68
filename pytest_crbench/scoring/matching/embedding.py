"""Two comments say the same if their vectors point the same way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError
from ...models.usage import Usage
from .asking import counted
from .meaning import Compared, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...models.embeddings import Embeddings
    from .meaning import Pair

    #: Texts to one vector each, and what that used up. Raises InfraError.
    Embed = Callable[[Sequence[str]], tuple[Sequence[Sequence[float]], Usage]]


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
