"""Digests: of values, of files and of whole trees. All are lower-case hex SHA-256."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from ..core.errors import TamperedError
from .trees import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..core.model import Tree


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
    for entry in walk(root):
        _add(whole, *entry)
    return whole.hexdigest()


def verified(tree: Tree) -> Iterator[tuple[str, str, bytes]]:
    """Walk a tree of the cache (see `walk`), and make sure at the end that it was the recorded one.

    Between the fetching of a tree and its use, programs ran on this machine that could write to the cache.

    Raises:
        TamperedError: ``cache-changed``; what was made of the tree must not be used.
        OSError: if something cannot be read.
    """
    whole = hashlib.sha256()
    for entry in walk(tree.path):
        _add(whole, *entry)
        yield entry
    if whole.hexdigest() != tree.digest:
        raise TamperedError(
            f"the cached tree {tree.path} was changed after it was fetched: something that ran on this "
            "machine, the reviewer perhaps, wrote to the cache. The next run makes the tree again",
            reason="cache-changed",
        )


def verify(tree: Tree) -> None:
    """Make sure that a tree of the cache is still the recorded one.

    Raises:
        TamperedError: as `verified`.
        OSError: if something cannot be read.
    """
    for _entry in verified(tree):
        pass


def _add(whole: Any, path: str, mode: str, content: bytes) -> None:
    whole.update(b"%s %s\0%d\0" % (mode.encode(), os.fsencode(path), len(content)))
    whole.update(content)
