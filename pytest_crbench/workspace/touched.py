"""Which lines a diff shows, and what it renames; a damaged diff is read as far as it goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Span = tuple[int, int]
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_ESCAPE = re.compile(rb'\\([0-7]{1,3}|[abfnrtv"\\])')
_LETTERS = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11, b'"': 34, b"\\": 92}


@dataclass(frozen=True)
class FileDiff:
    """One file of a diff: its names (None: it is not there on that side) and the line spans of its hunks.

    A span is (first, last), 1-based, inclusive, with the hunk's context; ``binary`` files have no spans.
    """

    old: str | None
    new: str | None
    left: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    binary: bool = False
    note: str = ""


@dataclass(frozen=True)
class DiffMap:
    """The places that a git diff shows."""

    diff: bytes

    @cached_property
    def files(self) -> tuple[FileDiff, ...]:
        """The diff, file by file."""
        starts = [m.start() for m in re.finditer(rb"^diff --git ", self.diff, re.MULTILINE)]
        return tuple(_file(self.diff[start:end]) for start, end in pairwise([*starts, len(self.diff)]))

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every path of the diff, old names of renamed files included."""
        return frozenset(name for file in self.files for name in (file.old, file.new) if name is not None)

    @cached_property
    def renames(self) -> Mapping[str, str]:
        """New names by old names."""
        return {f.old: f.new for f in self.files if f.old and f.new and f.old != f.new}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What could not be read in full, one sentence each."""
        found = [file.note for file in self.files if file.note]
        if self.diff.strip() and not self.files:
            found.append("the diff has no file header that git writes; every comment counts as outside it")
        return tuple(found)

    def is_touched(self, path: str, side: str, lines: Span | None) -> bool:
        """Whether the diff shows any of ``lines`` of ``path`` on ``side`` ("left" or "right").

        A renamed file is one file under both names. A binary file, and ``lines=None``, count as a whole.
        """
        for file in self._by_path.get(path, ()):
            spans = file.left if side == "left" else file.right
            if lines is None or file.binary:
                return True
            if any(first <= lines[1] and lines[0] <= last for first, last in spans):
                return True
        return False

    @cached_property
    def _by_path(self) -> Mapping[str, tuple[FileDiff, ...]]:
        found: dict[str, tuple[FileDiff, ...]] = {}
        for file in self.files:
            for name in {file.old, file.new} - {None}:
                assert name is not None
                found[name] = (*found.get(name, ()), file)
        return found


def in_diff(diff: bytes) -> Callable[[str, str, Span | None], bool]:
    """Return the question ``(path, side, lines) -> bool`` of `DiffMap.is_touched` for one diff."""
    return DiffMap(diff).is_touched


def _file(section: bytes) -> FileDiff:
    at = _HUNK.search(section)
    header, hunks = (section[: at.start()], section[at.start() :]) if at else (section, b"")
    old, new = _names(header)
    binary = b"\nBinary files " in header or b"\nGIT binary patch\n" in header
    left, right, note = _spans(hunks, new or old or "a file without a name")
    return FileDiff(old, new, left, right, binary, note)


def _names(header: bytes) -> tuple[str | None, str | None]:
    """Take the names from the lines that say them alone; from ``diff --git`` only where there is no other."""
    lines = header.split(b"\n")
    said = {word: line[len(word) :] for line in lines for word in _NAME_LINES if line.startswith(word)}
    old = said.get(b"rename from ", said.get(b"copy from "))
    new = said.get(b"rename to ", said.get(b"copy to "))
    if old is not None and new is not None:
        return _path(old), _path(new)
    both = _same_name(lines[0][len(b"diff --git ") :])
    first = _prefixed(said[b"--- "]) if b"--- " in said else both
    second = _prefixed(said[b"+++ "]) if b"+++ " in said else both
    if any(line.startswith(b"new file mode ") for line in lines):
        first = None
    if any(line.startswith(b"deleted file mode ") for line in lines):
        second = None
    return first, second


_NAME_LINES = (b"rename from ", b"rename to ", b"copy from ", b"copy to ", b"--- ", b"+++ ")


def _same_name(rest: bytes) -> str | None:
    """Read ``a/NAME b/NAME``, where NAME may hold blanks: both halves are equally long."""
    half = rest[: len(rest) // 2]
    return _prefixed(half)


def _prefixed(raw: bytes) -> str | None:
    name = _path(raw)
    return None if name == "/dev/null" else name.partition("/")[2] or name


def _path(raw: bytes) -> str:
    raw = raw.removesuffix(b"\t")  # git ends a name that holds blanks with a tab
    if len(raw) > 1 and raw.startswith(b'"') and raw.endswith(b'"'):
        raw = _ESCAPE.sub(_unescape, raw[1:-1])
    return raw.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    said = match[1]
    return bytes([_LETTERS[said] if said in _LETTERS else int(said, 8) & 255])


def _spans(hunks: bytes, name: str) -> tuple[tuple[Span, ...], tuple[Span, ...], str]:
    if not hunks:
        return (), (), ""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    # Names of our own, so that no odd one reaches the parser; only the hunks matter here.
    text = "--- a/x\n+++ b/x\n" + hunks.decode("utf-8", "surrogateescape")
    try:
        found = [
            (h.source_start, h.source_length, h.target_start, h.target_length)
            for file in PatchSet(text, metadata_only=True)
            for h in file
        ]
        note = ""
    except UnidiffParseError as error:
        found = [_numbers(match) for match in _HUNK.finditer(hunks)]
        note = f"{name}: the hunks do not add up ({error}); their headers were believed"
    left = tuple((start, start + length - 1) for start, length, _, _ in found if length)
    right = tuple((start, start + length - 1) for _, _, start, length in found if length)
    return left, right, note


def _numbers(match: re.Match[bytes]) -> tuple[int, int, int, int]:
    first, second = (1 if size is None else int(size) for size in (match[2], match[4]))
    return int(match[1]), first, int(match[3]), second
