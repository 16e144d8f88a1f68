"""Places within lines: edits of parts of them as one replacement of whole lines, and SARIF regions (3.30)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Larger line numbers are no line numbers.
MAX_LINE = 100_000_000
Unit = Literal["characters", "utf-8", "utf-16"]
#: A fix may reach this many lines beyond the comment's own; further away, it is not the comment's suggestion.
REACH = 10
#: Lines and replacements of more characters are not looked at: nobody reads them, and many may name them.
_LONGEST = 128 * 1024


@dataclass(frozen=True)
class Edit:
    """Replace ``text[start:end]`` (offsets in characters) of a file by ``replacement``."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True)
class Replacement:
    """New text for whole lines, first and last included, 1-based."""

    lines: tuple[int, int]
    text: str


class Lines:
    """A text with the offsets of its lines; only a newline ends a line, as for git."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        while (found := text.find("\n", self.starts[-1])) >= 0:
            self.starts.append(found + 1)
        if len(self.starts) > 1 and self.starts[-1] == len(text):
            self.starts.pop()

    @property
    def count(self) -> int:
        """How many lines there are (0 for an empty text)."""
        return len(self.starts) if self.text else 0

    def end_of(self, line: int) -> int:
        """Offset after the line's newline."""
        return self.starts[line] if line < len(self.starts) else len(self.text)

    @cached_property
    def encoded(self) -> tuple[bytes, list[int]]:
        """The text in UTF-8, and the offsets of its lines there."""
        data = self.text.encode()
        starts = [0, *(match.end() for match in re.finditer(b"\n", data))]
        return data, starts[: len(self.starts)]

    def of_byte(self, offset: int) -> int:
        """Offset in characters of an offset in bytes; within a character, that of its end."""
        data, starts = self.encoded
        line = bisect_right(starts, offset) - 1
        return self.starts[line] + len(data[starts[line] : offset].decode("utf-8", "replace"))

    def line_at(self, offset: int) -> int:
        """The 1-based line that holds an offset."""
        return bisect_right(self.starts, offset)

    def offset(self, line: int, column: int, unit: Unit = "characters") -> int | None:
        """Offset of a 1-based line and column; None if there is no such place.

        The line after the last one has a column 1: the end of the text.
        """
        if line == self.count + 1 and column == 1:
            return len(self.text)
        if not 1 <= line <= self.count or column < 1:
            return None
        if self.end_of(line) - self.starts[line - 1] > _LONGEST:
            return None
        content = self.text[self.starts[line - 1] : self.end_of(line)]
        content = content.removesuffix("\n").removesuffix("\r")
        index = column - 1 if unit == "characters" else _characters(content, column - 1, unit)
        return None if index is None or index > len(content) else self.starts[line - 1] + index


def as_lines(index: Lines, edits: list[Edit], lines: tuple[int, int]) -> Replacement | None:
    """Express edits of a file as one replacement that covers ``lines``.

    None if the edits overlap, leave the file, reach more than `REACH` lines beyond ``lines``, or if that is
    very much text.
    """
    text = index.text
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    if not ordered or not index.count or lines[1] > index.count:
        return None
    if any(before.end > after.start for before, after in pairwise(ordered)):
        return None
    if ordered[0].start < 0 or ordered[-1].end > len(text) or any(e.start > e.end for e in ordered):
        return None
    first = min(lines[0], index.line_at(ordered[0].start))
    if ordered[0].start == len(text) and text.endswith("\n"):
        first = min(first, index.count)
    end = ordered[-1].end
    whole = end > ordered[-1].start and text[end - 1] == "\n"
    last = max(lines[1], min(index.line_at(end - 1 if whole else end), index.count))
    if index.end_of(last) - index.starts[first - 1] > _LONGEST:
        return None
    new = _applied(text, ordered, index.starts[first - 1], index.end_of(last))
    if new and not new.endswith("\n") and last < index.count:
        # The last newline is gone: the next line is joined to this one and belongs to the replacement.
        last += 1
        new = _applied(text, ordered, index.starts[first - 1], index.end_of(last))
    if first < lines[0] - REACH or last > lines[1] + REACH:
        return None
    return Replacement((first, last), new.replace("\r\n", "\n"))


def _applied(text: str, edits: list[Edit], start: int, end: int) -> str:
    parts, at = [], start
    for edit in edits:
        parts += [text[at : edit.start], edit.replacement]
        at = edit.end
    return "".join([*parts, text[at:end]])


def _characters(content: str, count: int, unit: Unit) -> int | None:
    """How many characters the first ``count`` units are; None if that splits a character."""
    encoding = "utf-8" if unit == "utf-8" else "utf-16-le"
    size = count if unit == "utf-8" else 2 * count
    data = content.encode(encoding, "surrogatepass")
    if size > len(data):
        return None
    try:
        return len(data[:size].decode(encoding))
    except UnicodeDecodeError:
        return None


def lines_of(region: Mapping[str, Any], lines: Lines | None) -> tuple[Any, Any]:
    """Return the raw first and last line of a region; offsets need the file's text."""
    start, end = region.get("startLine"), region.get("endLine")
    if start is not None or end is not None:
        first, last = line_number(start), line_number(end)
        # A region ends before its end column: one that ends at column 1 does not touch that line.
        if first is not None and last is not None and last > first and region.get("endColumn") == 1:
            return first, last - 1
        return start, end
    span = _offsets(region, lines) if lines and lines.text else None
    if span is None or lines is None:
        return None, None
    first_offset, end_offset = span
    return lines.line_at(first_offset), lines.line_at(max(first_offset, end_offset - 1))


def edit_of(replacement: Mapping[str, Any], lines: Lines, unit: Unit) -> Edit | None:
    """Return the edit that a ``replacement`` makes; None if the text does not have its region."""
    region = replacement.get("deletedRegion")
    content = replacement.get("insertedContent")
    new = content.get("text", "") if isinstance(content, dict) else ""
    if not isinstance(region, dict) or not isinstance(new, str) or (content and "binary" in content):
        return None
    if region.get("startLine") is None:
        span = _offsets(region, lines)
        return None if span is None else Edit(*span, new)
    text = lines.text
    first = line_number(region["startLine"])
    last = line_number(region.get("endLine", first))
    if first is None or last is None:
        return None
    start = lines.offset(first, line_number(region.get("startColumn", 1)) or 0, unit)
    if region.get("endColumn") is not None:
        end = lines.offset(last, line_number(region["endColumn"]) or 0, unit)
    elif last <= lines.count:  # without an end column a region ends with its last line, the newline excluded
        end = lines.end_of(last)
        end -= 2 if text[max(end - 2, 0) : end] == "\r\n" else text[max(end - 1, 0) : end] in ("\n", "\r")
    else:
        end = None
    return None if start is None or end is None or end < start else Edit(start, end, new)


def _offsets(region: Mapping[str, Any], lines: Lines) -> tuple[int, int] | None:
    start, length = _number(region.get("charOffset")), _number(region.get("charLength", 0))
    if start is None:
        start, length = _number(region.get("byteOffset")), _number(region.get("byteLength", 0))
        if start is None or length is None:
            return None
        if start + length > len(lines.encoded[0]):
            return None
        return lines.of_byte(start), lines.of_byte(start + length)
    if length is None or start + length > len(lines.text):
        return None
    return start, start + length


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**40 else None


def line_number(value: object) -> int | None:
    """Return a line number that can be one, else None (0, negative, no number, absurdly large)."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_LINE:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 1 <= value <= MAX_LINE else None
