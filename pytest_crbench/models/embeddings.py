"""Embeddings from an OpenAI-compatible endpoint, through the same door as completions."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import sqlite3
from array import array
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..host import digest
from ..host.pool import Pool
from ..text import urls
from ..text.printable import clean
from .completion import EMBEDDINGS
from .usage import Usage, from_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from .client import Model

#: Texts of one request: servers are known that take no more.
BATCH = 32
#: Requests under way at the same time.
CONCURRENCY = 4
#: Characters of a text that are embedded; models read less, and endpoints refuse what is much longer.
TEXT_LIMIT = 8_000
_EMPTY = "(empty)"


@dataclass(frozen=True)
class Embeddings:
    """Texts to vectors, each text once per model, endpoint and cache.

    ``model`` says where and with which key, patience and budget; its sampling is not used. Of a text its
    first ``text_limit`` characters count.
    ``spent`` is told what each answer used, also where a later one fails.
    """

    model: Model
    vectors: VectorCache | None = None
    batch: int = BATCH
    concurrency: int = CONCURRENCY
    text_limit: int = TEXT_LIMIT
    spent: Callable[[Usage], None] | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the vectors, as plain JSON without credentials."""
        where = urls.public(self.model.base_url)
        return {"model": self.model.model, "base_url": where, "text_limit": self.text_limit}

    def __call__(self, texts: Sequence[str]) -> list[array[float]]:
        """Return one vector of 32-bit numbers per text, in order; see `embed`.

        Raises:
            InfraError: as `embed`.
        """
        return self.embed(texts)[0]

    def embed(self, texts: Sequence[str]) -> tuple[list[array[float]], Usage]:
        """Return one vector per text, in order, all of one length, and what was used for them.

        Raises:
            InfraError: as `Model.complete`; ``unreadable`` also for an answer that lacks a vector.
        """
        wanted = [self._shown(text) for text in texts]
        keys = {text: self._key(text) for text in dict.fromkeys(wanted)}
        known = self.vectors.get(list(keys.values())) if self.vectors else {}
        found = {text: known[key] for text, key in keys.items() if key in known}
        usage = Usage(calls_from_cache=-(-len(found) // self.batch))
        missing = [text for text in keys if text not in found]
        batches = [missing[at : at + self.batch] for at in range(0, len(missing), self.batch)]
        if batches:
            self.model.prepare()
        with Pool(self.concurrency) as pool:
            asked = [pool.submit(self._ask, some) for some in batches]
            for some, answer in zip(batches, asked, strict=True):
                vectors, used = answer.result()
                usage += used
                found.update(zip(some, vectors, strict=True))
        lengths = sorted({len(vector) for vector in found.values()})
        if len(lengths) > 1:
            said = "vectors of different lengths"
            if known:
                said += f" ({', '.join(map(str, lengths))}; some are of an earlier run: if another model has "
                said += "this name now, name another --crbench-cache)"
            raise self._unreadable(said)
        return [found[text] for text in wanted], usage

    def _ask(self, texts: Sequence[str]) -> tuple[list[array[float]], Usage]:
        model = self.model
        if model.ledger:
            model.ledger.check()
        request = {"model": model.model, "input": list(texts), "encoding_format": "float"}
        body, _lost = model.post(EMBEDDINGS, request, None, model.patience.total)
        characters = sum(map(len, texts))
        usage = from_response(body.get("usage"), prompt_characters=characters, completion_characters=0)
        if model.ledger:
            model.ledger.add(usage)
        if self.spent:
            self.spent(usage)
        vectors = self._read(body["data"], len(texts))
        if self.vectors:
            self.vectors.put({self._key(text): v for text, v in zip(texts, vectors, strict=True)})
        return vectors, usage

    def _read(self, data: Any, count: int) -> list[array[float]]:
        items = data if isinstance(data, list) else []
        if len(items) != count:
            raise self._unreadable(f"{len(items)} vectors for {count} texts")
        placed: dict[int, array[float]] = {}
        for place, item in enumerate(items):
            index = item.get("index", place) if isinstance(item, dict) else place
            vector = _vector(item.get("embedding")) if isinstance(item, dict) else None
            if vector is None or not isinstance(index, int):
                raise self._unreadable(f"no vector of numbers in place {place}")
            placed[index] = vector
        if sorted(placed) != list(range(count)):
            raise self._unreadable("vectors whose numbers do not fit the texts")
        return [placed[index] for index in range(count)]

    def _shown(self, text: str) -> str:
        text = clean(text)[: self.text_limit]
        return text if text.strip() else _EMPTY  # endpoints refuse what is empty

    def _key(self, text: str) -> str:
        return digest.of([self.identity, text])

    def _unreadable(self, what: str) -> InfraError:
        where = urls.public(self.model.base_url)
        return InfraError(
            f"{where} ({self.model.model}) answered with {what}. Check that it is a model of embeddings "
            "(--crbench-embedding-model, --crbench-llm embedding-base-url).",
            reason="unreadable",
        )


def _vector(value: Any) -> array[float] | None:
    """Read a list of finite numbers, or the base64 of 32-bit ones, which some servers send unasked."""
    try:
        if isinstance(value, str):
            vector = array("f", base64.b64decode(value, validate=True))
        elif isinstance(value, list):
            vector = array("f", value)
        else:
            return None
    except (TypeError, ValueError, OverflowError, binascii.Error):
        return None
    return vector if vector and all(map(math.isfinite, vector)) else None


#: Seconds to wait for another process that writes.
_TIMEOUT = 60.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
#: Keys per question: SQLite binds 999 values at the least.
_AT_ONCE = 500
_CHECK = 8


@dataclass(frozen=True)
class VectorCache:
    """Vectors of 32-bit numbers in one SQLite file; any number of processes and threads may use it.

    A repository has tens of thousands of pieces: a file each would take longer to write than to embed.
    Nothing here raises: what cannot be read is asked for again, what cannot be written is not kept.
    """

    path: Path

    def get(self, keys: Sequence[str]) -> dict[str, array[float]]:
        """Return the vectors that are known, by key (hex digests)."""
        found: dict[str, array[float]] = {}
        if not self.path.exists():
            return found
        try:
            with closing(self._open()) as database:
                for some in _batched(keys, _AT_ONCE):
                    marks = ",".join("?" * len(some))
                    wanted = [bytes.fromhex(key) for key in some]
                    rows = database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", wanted)
                    for key, data in rows:
                        vector = _unpacked(data)
                        if vector is not None:
                            found[bytes(key).hex()] = vector
        except sqlite3.OperationalError:
            pass  # busy or unreadable: as if it were not there
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self.path.unlink()  # no database (any more): it is made again
        return found

    def put(self, vectors: Mapping[str, array[float]]) -> None:
        """Keep vectors, in one transaction."""
        rows = [(bytes.fromhex(key), _packed(vector)) for key, vector in vectors.items()]
        with suppress(OSError, sqlite3.DatabaseError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as database, database:
                database.execute(_SCHEMA)
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_TIMEOUT)


def _packed(vector: array[float]) -> bytes:
    data = vector.tobytes()
    return hashlib.sha256(data).digest()[:_CHECK] + data


def _unpacked(data: bytes) -> array[float] | None:
    """SQLite does not notice a changed byte: a vector carries a check of its own."""
    check, rest = bytes(data[:_CHECK]), bytes(data[_CHECK:])
    if len(rest) % 4 or hashlib.sha256(rest).digest()[:_CHECK] != check:
        return None
    return array("f", rest)


def _batched(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for at in range(0, len(keys), size):
        yield keys[at : at + size]
