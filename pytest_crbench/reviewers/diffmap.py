"""Which lines of which side a diff shows, so that comments outside it can be told."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .formats.paths import unquoted

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True)
class DiffMap:
    """The hunks of a diff by path and side, as inclusive line ranges; ``renames`` maps old to new paths."""

    ranges: Mapping[tuple[str, str], tuple[tuple[int, int], ...]]
    paths: frozenset[str]
    removed: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    #: Parts of the diff that could not be read: what is said of other files then proves nothing.
    unread: int = 0

    def in_diff(self, path: str, side: str, lines: tuple[int, int]) -> bool:
        """Whether a hunk of ``path`` on ``side`` ("left" is the base) shows at least one of ``lines``.

        Lines (0, 0) ask whether the file is in the diff at all. Context lines count, as on a forge.
        """
        if self.unread and path not in self.paths:
            return True
        if lines == (0, 0):
            return path in self.paths
        return any(a <= lines[1] and lines[0] <= b for a, b in self.ranges.get((path, side), ()))


def read_diff(diff: bytes) -> DiffMap:
    """Read a ``git diff``; a file's part that cannot be parsed is left out and counted, never an error."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    text = diff.decode("utf-8", "replace")
    files: list[Any] = []
    unread = 0
    for part in _FILE.split(text):
        if not part.strip():
            continue
        try:
            files += PatchSet(part)
        except (UnidiffParseError, ValueError, IndexError):
            unread += 1
    return _mapped(files, unread)


def _mapped(files: list[Any], unread: int) -> DiffMap:
    ranges: dict[tuple[str, str], tuple[tuple[int, int], ...]] = {}
    paths: set[str] = set()
    removed: list[str] = []
    renames: dict[str, str] = {}
    for file in files:
        old, new = _name(file.source_file), _name(file.target_file)
        left = tuple((h.source_start, h.source_start + h.source_length - 1) for h in file if h.source_length)
        right = tuple((h.target_start, h.target_start + h.target_length - 1) for h in file if h.target_length)
        names = {name for name in (old, new) if name is not None}
        paths |= names
        # The old and the new path of a renamed file are one file.
        for name in names:
            ranges[name, "left"] = left
            ranges[name, "right"] = right
        if old is not None and new is None:
            removed.append(old)
        if old is not None and new is not None and old != new:
            renames[old] = new
    return DiffMap(ranges, frozenset(paths), tuple(removed), renames, unread)


def _name(raw: str | None) -> str | None:
    name = unquoted(raw or "")
    if name in ("", "/dev/null"):
        return None
    return name[2:] if name[:2] in ("a/", "b/") else name
