"""A repository in pieces of about a screen: by syntax where there is a grammar, by lines otherwise."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ...host import digest
from ...text.printable import decode
from . import syntax
from .parsing import Parsing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...core.model import Tree

#: Bytes; what is larger is data, or was written by a program.
HUGE = 512 * 1024
#: Characters of a line; the mean of a file beyond which it was not written to be read.
_MEAN_LINE = 200
_LONGEST_LINE = 10_000
_BEGINNING = 1_500
_NAMES = re.compile(
    r"(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|pdm\.lock|"
    r"Pipfile\.lock|Cargo\.lock|composer\.lock|Gemfile\.lock|go\.sum|packages\.lock\.json|"
    r".*\.min\.(js|css)|.*\.map|.*_pb2(_grpc)?\.pyi?|.*\.pb\.(go|cc|h)|.*\.g\.(cs|dart)|.*\.designer\.cs)",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bdo not (edit|modify)\b.*\bgenerated\b|"
    r"\bgenerated\b.*\bdo not (edit|modify)\b|\bauto-?generated (file|code|by|from)\b|"
    r"\bthis (file|code) (is|was|has been) (automatically |auto-)?generated\b",
    re.IGNORECASE | re.DOTALL,
)


def reason(path: str, mode: str, content: bytes) -> str:
    """Say why a file is not indexed, in one word; "" if it is.

    ``link``, ``empty``, ``huge`` (more than 512 KiB), ``binary`` (holds a NUL byte), ``generated`` (by its
    name, by what it says of itself in its first lines, or because its lines are too long to be read).
    """
    if mode == "120000":
        return "link"
    if not content.strip():
        return "empty"
    if len(content) > HUGE:
        return "huge"
    if b"\0" in content:
        return "binary"
    if _NAMES.fullmatch(PurePosixPath(path).name) or _is_generated(content):
        return "generated"
    return ""


def _is_generated(content: bytes) -> bool:
    lines = content.split(b"\n")
    if len(content) / len(lines) > _MEAN_LINE or max(map(len, lines)) > _LONGEST_LINE:
        return True
    return bool(_MARKS.search(content[:_BEGINNING].decode("utf-8", "replace")))


#: Raised when the same tree would be cut otherwise.
VERSION = 1
#: Lines. A chunk is closed once it has ``_ENOUGH`` and a definition follows, and at ``_MOST``; what cannot be
#: divided by syntax and is longer is cut at a blank line, or at ``_MOST``.
_ENOUGH = 15
_MOST = 50
#: A node with fewer lines than this is no reason to begin a new chunk.
_DEFINITION = 3
#: Lines that the head of a definition may have, and still be of one chunk with what it begins.
_HEADING = 4


@dataclass(frozen=True)
class Chunk:
    """Consecutive whole lines of a file: ``lines`` is (first, last), 1-based and inclusive."""

    path: str
    lines: tuple[int, int]
    text: str


@dataclass(frozen=True)
class Chunked:
    """The chunks of a tree by path and line, of how many files, and what was left out, with reasons.

    ``hard`` files were too much for their grammar, and cut by lines.
    """

    chunks: tuple[Chunk, ...]
    files: int
    skipped: tuple[tuple[str, str], ...]
    hard: int = 0


def chunked(tree: Tree) -> Chunked:
    """Cut a tree of the cache into chunks.

    Raises:
        TamperedError: if the tree is not the recorded one.
        OSError: if something cannot be read.
    """
    chunks: list[Chunk] = []
    skipped: list[tuple[str, str]] = []
    files = 0
    with Parsing() as parsing:
        for path, mode, content in digest.verified(tree):
            why = reason(path, mode, content)
            if why:
                skipped.append((path, why))
                continue
            files += 1
            chunks += chunks_of(path, content, parsing.pieces)
        return Chunked(tuple(chunks), files, tuple(skipped), parsing.failed)


def chunks_of(path: str, content: bytes, pieces: syntax.Pieces = syntax.pieces) -> list[Chunk]:
    """Cut one file: every line that is not blank is in one chunk. ``pieces`` says what its grammar finds."""
    lines = [line.removesuffix("\r") for line in decode(content).split("\n")]
    found = []
    for first, last in _spans(lines, pieces(path, content, _MOST)):
        kept = [row for row in range(first, last + 1) if lines[row].strip()]
        if kept:
            text = "\n".join(lines[kept[0] : kept[-1] + 1])
            found.append(Chunk(path, (kept[0] + 1, kept[-1] + 1), text))
    return found


def told(skipped: Iterable[tuple[str, str]]) -> str:
    """Say how many files were left out for which reason; "" if none was."""
    counts = Counter(why for _, why in skipped)
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))


def _spans(lines: list[str], pieces: list[syntax.Piece] | None) -> Iterator[tuple[int, int]]:
    """Yield first and last row of each chunk, from 0; together they cover all rows."""
    begin = 0
    for cut in (*(_cuts(pieces, lines) if pieces else ()), len(lines)):
        yield from _by_lines(lines, begin, cut)
        begin = cut


def _cuts(pieces: list[syntax.Piece], lines: list[str]) -> Iterator[int]:
    """Yield the rows at which new chunks begin, ascending."""
    begin = covered = 0
    glued: int | None = None
    for first, last, whole, leading in pieces:
        start = first if glued is None else glued
        # What leads belongs to the piece below it, unless a blank line is between them.
        if leading and last + 1 < len(lines) and lines[last + 1].strip():
            glued = start
            continue
        glued = None
        size, own = start - begin, last - start + 1
        enough = size >= _ENOUGH and own >= _DEFINITION
        # A definition of several chunks begins its own one; its first line alone (``class A:``) is none.
        full = size + own > _MOST or enough or (size > _HEADING and whole > _MOST)
        # A row that an earlier piece ends on stays with that piece.
        if size > 0 and full and start >= covered:
            yield start
            begin = start
        covered = max(covered, last + 1)


def _by_lines(lines: list[str], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield rows ``begin`` up to, not including, ``end``, divided at blank lines where they are too many."""
    while end - begin > _MOST:
        blank = [row for row in range(begin + _ENOUGH, begin + _MOST) if not lines[row].strip()]
        cut = blank[-1] + 1 if blank else begin + _MOST
        yield begin, cut - 1
        begin = cut
    if end > begin:
        yield begin, end - 1
