"""Completions shared between runs by content: the same question to the same model is asked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..host import digest
from ..host.files import write_json
from ..text import plainjson

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class CompletionCache:
    """Response bodies below ``root``, as ``<2 hex>/<digest>.json``; only successes are stored."""

    root: Path

    def key(self, question: Any) -> str:
        """Digest of all that decides an answer (URL, request, repeat); plain JSON, no credentials."""
        return digest.of(question)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the stored response, or None; an unreadable file counts as absent and is replaced."""
        try:
            stored = plainjson.parse(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None
        response = stored.get("response") if isinstance(stored, dict) else None
        return response if isinstance(response, dict) else None

    def put(self, key: str, question: Any, response: dict[str, Any]) -> None:
        """Store a response beside what was asked, so that a reader sees what it belongs to.

        Raises:
            InfraError: if the disk is full or the folder cannot be written to.
        """
        write_json(self._path(key), {"question": question, "response": response})

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}.json"
