"""Ranking chunks for a query: by shared words (BM25, by ``bm25s``) and by the cosine of embeddings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

_K1, _B = 1.2, 0.75
_FOLDER = "bm25"


class Bm25:
    """BM25 in Lucene's variant (k1 = 1.2, b = 0.75) over the words of code (see `tokens.words`).

    Each distinct word of a query counts once: a hunk that says ``self`` thirty times is not about that.
    """

    #: A chunk that shares no word with the query is not found.
    least = 0.0

    def __init__(self) -> None:
        try:
            import bm25s
        except ImportError:
            raise UsageError(
                "ranking by BM25 needs the package bm25s: pip install 'pytest-crbench[retrieval]'"
            ) from None
        self.library: Any = bm25s
        self.identity: dict[str, Any] = {
            "kind": "bm25",
            "library": bm25s.__version__,
            "tokens": VERSION,
            "k1": _K1,
            "b": _B,
        }

    def build(self, texts: Sequence[str], folder: Path) -> None:
        """Write the index of ``texts`` into ``folder``.

        Raises:
            OSError: if it cannot be written.
        """
        vocabulary: dict[str, int] = {}
        ids = [[vocabulary.setdefault(w, len(vocabulary)) for w in words(text)] for text in texts]
        if not vocabulary:
            return  # nothing to find
        made = self.library.BM25(k1=_K1, b=_B, method="lucene", backend="numpy", csc_backend="numpy")
        made.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        made.save(folder / _FOLDER, show_progress=False)

    def load(self, folder: Path, count: int) -> Bm25Scorer:
        """Open what `build` wrote of ``count`` texts.

        Raises:
            OSError, ValueError: if it is not there, or damaged.
        """
        place = folder / _FOLDER
        made = self.library.BM25.load(place, show_progress=False) if place.exists() else None
        return Bm25Scorer(made, count)


class Bm25Scorer:
    """Scores of all texts of one index for a query."""

    def __init__(self, index: Any, count: int) -> None:
        self.index = index
        self.count = count

    def scores(self, query: str) -> Any:
        """Return one score per text, in order, as an array of 32-bit numbers; 0 if no word is shared."""
        import numpy

        known = self.index.vocab_dict if self.index is not None else {}
        ids = sorted({known[word] for word in words(query) if word in known})
        if not ids:
            return numpy.zeros(self.count, dtype="float32")
        return self.index.get_scores_from_ids(ids)


#: Raised when the same text would give other words.
VERSION = 1
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W\d_a-z]+(?![^\W\d_A-Z])|[^\W\d_]?[^\W\d_A-Z]+|\d+")
#: Characters; what is longer is no word (a digest, a key).
_LONGEST = 60


def words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case.

    An identifier of several parts (``parseHTTPHeader``, ``parse_http_header``) gives its parts and itself,
    without underscores, so that both spellings are one word. Single characters are no words.
    """
    return [word for found in _WORD.findall(text) for word in _parts(found)]


@lru_cache(maxsize=200_000)
def _parts(identifier: str) -> tuple[str, ...]:
    if len(identifier) > _LONGEST:
        return ()
    parts = [part.lower() for part in _PART.findall(identifier)]
    whole = identifier.replace("_", "").lower()
    kept = [part for part in parts if len(part) > 1]
    if len(parts) > 1 and len(whole) > 1:
        kept.append(whole)
    return tuple(kept)


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

        numpy.save(folder / _FILE, unit(self.embed(texts)) if texts else numpy.zeros((0, 0), "float32"))

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
        vector = unit(self.embed([query]))[0]
        if vector.shape[0] != self.vectors.shape[1]:
            raise InfraError(
                f"the model of embeddings gives vectors of {vector.shape[0]} numbers, and gave some of "
                f"{self.vectors.shape[1]} to the index: name another --crbench-cache",
                reason="unreadable",
            )
        return self.vectors @ vector


def unit(vectors: Sequence[Sequence[float]]) -> Any:
    """Return vectors of length 1 as an array; those of length 0 stay."""
    import numpy

    made = numpy.asarray(vectors, dtype="float32")
    # In 64 bits: the square of a large number of 32 is none.
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", made, made, dtype="float64"))
    lengths[lengths == 0] = 1.0
    return (made / lengths[:, None]).astype("float32")
