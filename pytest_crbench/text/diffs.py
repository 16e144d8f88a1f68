"""Which lines a git diff shows, and what it renames and removes; a damaged diff is read as far as it goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from .fences import clip
from .printable import decode, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Span = tuple[int, int]
_FILE = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_ESCAPE = re.compile(rb'\\([0-7]{1,3}|[abfnrtv"\\])')
_LETTERS = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11, b'"': 34, b"\\": 92}
_NAME_LINES = (b"rename from ", b"rename to ", b"copy from ", b"copy to ", b"--- ", b"+++ ")


@dataclass(frozen=True)
class FileDiff:
    """One file of a diff: its names (None: it is not there on that side) and the line spans of its hunks.

    A span is (first, last), 1-based, inclusive, with the hunk's context. ``whole`` says that lines tell
    nothing: the file is binary, or its hunks cannot be read (then ``note`` says why).
    """

    old: str | None
    new: str | None
    left: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    whole: bool = False
    note: str = ""


@dataclass(frozen=True)
class DiffMap:
    """The places that a git diff shows; no bytes make a question about them fail."""

    diff: bytes

    @cached_property
    def files(self) -> tuple[FileDiff, ...]:
        """The diff, file by file."""
        starts = [match.start() for match in _FILE.finditer(self.diff)]
        return tuple(_file(self.diff[start:end]) for start, end in pairwise([*starts, len(self.diff)]))

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every path of the diff, old names of renamed files included."""
        return frozenset(self._by_path)

    @cached_property
    def removed(self) -> tuple[str, ...]:
        """The paths that the diff deletes."""
        return tuple(file.old for file in self.files if file.old is not None and file.new is None)

    @cached_property
    def renames(self) -> Mapping[str, str]:
        """New names by old names."""
        return {f.old: f.new for f in self.files if f.old and f.new and f.old != f.new}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What could not be read in full, one sentence each."""
        found = [file.note for file in self.files if file.note]
        if self.diff.strip() and not self.files:
            found.append("the diff has no file header that git writes: no comment counts as outside it")
        return tuple(found)

    def shows(self, path: str, side: str, lines: Span | None) -> bool:
        """Whether the diff shows any of ``lines`` of ``path`` on ``side`` ("left" is the base).

        ``lines`` None asks for the file as a whole. Context lines count, as on a forge. A renamed file is
        one file under both names; a file whose lines tell nothing counts as a whole. Where a part of the
        diff does not even tell its file, what the rest says of other files proves nothing.
        """
        files = self._by_path.get(path)
        if files is None:
            return self._nameless
        for file in files:
            if lines is None or file.whole:
                return True
            spans = file.left if side == "left" else file.right
            if any(first <= lines[1] and lines[0] <= last for first, last in spans):
                return True
        return False

    @cached_property
    def _nameless(self) -> bool:
        if not self.files:
            return bool(self.diff.strip())
        return any(file.old is None and file.new is None for file in self.files)

    @cached_property
    def _by_path(self) -> Mapping[str, Sequence[FileDiff]]:
        found: dict[str, list[FileDiff]] = {}
        for file in self.files:
            for name in {file.old, file.new} - {None}:
                found.setdefault(str(name), []).append(file)
        return found


def unquoted(raw: bytes) -> bytes:
    """Undo git's quoting of unusual paths (double quotes, octal escapes); what is not quoted stays."""
    if len(raw) < 2 or not (raw.startswith(b'"') and raw.endswith(b'"')):
        return raw
    return _ESCAPE.sub(_unescape, raw[1:-1])


def _unescape(match: re.Match[bytes]) -> bytes:
    said = match[1]
    return bytes([_LETTERS[said] if said in _LETTERS else int(said, 8) & 255])


def parts(diff: bytes) -> Iterator[tuple[str | None, str | None, bytes]]:
    """Yield old name, new name (None: it is not there on that side) and the hunks of each file of a diff."""
    starts = [match.start() for match in _FILE.finditer(diff)]
    for start, end in pairwise([*starts, len(diff)]):
        header, hunks = _split(diff[start:end])
        yield (*_names(header), hunks)


def _split(section: bytes) -> tuple[bytes, bytes]:
    at = _HUNK.search(section)
    return (section[: at.start()], section[at.start() :]) if at else (section, b"")


def _file(section: bytes) -> FileDiff:
    header, hunks = _split(section)
    old, new = _names(header)
    if b"\nBinary files " in header or b"\nGIT binary patch\n" in header:
        return FileDiff(old, new, whole=True)
    name = new or old or "a file without a name"
    if not hunks:
        # A header of hunks without any: the diff ends too early, or says something else there.
        cut = b"\n+++ " in header
        return FileDiff(old, new, whole=cut, note=f"{name}: there are no hunks" if cut else "")
    return _with_hunks(old, new, hunks, name)


def _with_hunks(old: str | None, new: str | None, hunks: bytes, name: str) -> FileDiff:
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    # Names of our own, so that no odd one reaches the parser; only the hunks matter here.
    text = "--- a/x\n+++ b/x\n" + hunks.decode("utf-8", "surrogateescape")
    try:
        found = [hunk for file in PatchSet(text, metadata_only=True) for hunk in file]
    except (UnidiffParseError, ValueError, IndexError) as error:
        note = f"{name}: its hunks do not add up ({printable(str(error), 120)}): it counts as a whole"
        return FileDiff(old, new, whole=True, note=note)
    left = tuple((h.source_start, h.source_start + h.source_length - 1) for h in found if h.source_length)
    right = tuple((h.target_start, h.target_start + h.target_length - 1) for h in found if h.target_length)
    return FileDiff(old, new, left, right)


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


def _same_name(rest: bytes) -> str | None:
    """Read ``a/NAME b/NAME``, where NAME may hold blanks: both halves are equally long."""
    return _prefixed(rest[: len(rest) // 2])


def _prefixed(raw: bytes) -> str | None:
    name = _path(raw)
    return None if name in ("", "/dev/null") else name.partition("/")[2] or name


def _path(raw: bytes) -> str:
    # git ends a name that holds blanks with a tab. Paths of comments are plain text as well.
    return decode(unquoted(raw.removesuffix(b"\t")))


#: Characters of a diff in a prompt; a longer one loses whole files.
DIFF_LIMIT = 150_000


def clip_diff(diff: str, wanted: Sequence[str], limit: int = DIFF_LIMIT) -> tuple[str, tuple[str, ...]]:
    """Keep what fits of a diff, file by file; returns it and the paths of the files left out.

    Files that a comment names (``wanted``) are kept first, then the others in order. The parts that are
    kept stay in order. If not even the first wanted file fits, its middle is left out.
    """
    if len(diff) <= limit:
        return diff, ()
    parts = [part for part in re.split(r"(?m)^(?=diff --git )", diff) if part]
    named = [any(path in part.split("\n", 1)[0] for path in wanted) for part in parts]
    kept: dict[int, str] = {}
    room = limit
    for index in sorted(range(len(parts)), key=lambda i: (not named[i], i)):
        part = parts[index]
        if len(part) > room and not kept:
            part = clip(part, room)
        if len(part) <= room or not kept:
            kept[index] = part
            room -= len(part)
    left_out = tuple(_file_of(parts[i]) for i in range(len(parts)) if i not in kept)
    return "".join(kept[index] for index in sorted(kept)), left_out


def _file_of(part: str) -> str:
    header = part.split("\n", 1)[0]
    return header.rpartition(" b/")[2] or header
