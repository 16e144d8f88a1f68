"""Ranking by meaning: the angle between the vectors of a query and a chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

#: One vector per text, in order, all of one length.
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
_FILE = "vectors.npy"


class ByEmbedding:
    """Cosine similarity of the vectors that ``embed`` makes; ``identity`` says what decides them."""

    #: Cosines: there is nothing that is not similar at all.
    least = -math.inf

    def __init__(self, embed: Embed, identity: Mapping[str, Any]) -> None:
        try:
            import numpy  # noqa: F401
        except ImportError:
            raise UsageError(
                "ranking by embeddings needs the package numpy: pip install 'pytest-crbench[retrieval]'"
            ) from None
        self.embed = embed
        self.identity: dict[str, Any] = {"kind": "embedding", **identity}

    def build(self, texts: Sequence[str], folder: Path) -> None:
        """Write the vectors of ``texts`` into ``folder``.

        Raises:
            InfraError: if the endpoint fails.
            OSError: if they cannot be written.
        """
        import numpy

        numpy.save(folder / _FILE, _unit(self.embed(texts)) if texts else numpy.zeros((0, 0), "float32"))

    def load(self, folder: Path, count: int) -> EmbeddingScorer:
        """Open what `build` wrote of ``count`` texts.

        Raises:
            OSError, ValueError: if it is not there, or damaged.
        """
        import numpy

        vectors = numpy.load(folder / _FILE, allow_pickle=False)
        if len(vectors) != count:
            raise ValueError(f"{len(vectors)} vectors for {count} texts")
        return EmbeddingScorer(self.embed, vectors)


class EmbeddingScorer:
    """Scores of all texts of one index for a query."""

    def __init__(self, embed: Embed, vectors: Any) -> None:
        self.embed = embed
        self.vectors = vectors

    def scores(self, query: str) -> Any:
        """Return the cosine of the query with each text, in order, as an array of 32-bit numbers.

        Raises:
            InfraError: if the endpoint fails, or gives vectors of another length than it gave the index.
        """
        import numpy

        if not len(self.vectors):
            return numpy.zeros(0, dtype="float32")
        vector = _unit(self.embed([query]))[0]
        if vector.shape[0] != self.vectors.shape[1]:
            raise InfraError(
                f"the model of embeddings gives vectors of {vector.shape[0]} numbers, and gave some of "
                f"{self.vectors.shape[1]} to the index: name another --crbench-cache",
                reason="unreadable",
            )
        return self.vectors @ vector


def _unit(vectors: Sequence[Sequence[float]]) -> Any:
    import numpy

    made = numpy.asarray(vectors, dtype="float32")
    # In 64 bits: the square of a large number of 32 is none.
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", made, made, dtype="float64"))
    lengths[lengths == 0] = 1.0
    return (made / lengths[:, None]).astype("float32")
