"""Digests: of values, of files and of whole trees. All are lower-case hex SHA-256."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from .trees import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a plain value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def of(value: Any) -> str:
    """Digest of a plain JSON value."""
    return hashlib.sha256(canonical(value)).hexdigest()


def of_bytes(data: bytes) -> str:
    """Digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def of_file(path: Path) -> str:
    """Digest of a file's content.

    Raises:
        OSError: if the file cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def walk(root: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield (POSIX path, git mode, content) of every file and symlink under ``root``, sorted by path bytes.

    Modes are git's: ``100644``, ``100755`` and ``120000`` (content: the link's target). A ``.git`` at the
    top is left out. Links are never followed.

    Raises:
        OSError: if something cannot be read.
    """
    for path, entry in scan(root).items():
        yield path, entry.mode, entry.read()


def of_tree(root: Path) -> str:
    """Digest of a tree: every path, mode and content (see `walk`); empty folders do not count."""
    whole = hashlib.sha256()
    for path, mode, content in walk(root):
        whole.update(b"%s %s\0%d\0" % (mode.encode(), os.fsencode(path), len(content)))
        whole.update(content)
    return whole.hexdigest()
