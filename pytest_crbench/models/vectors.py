"""Embeddings shared between runs by content: one text is embedded once per model and endpoint."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

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
