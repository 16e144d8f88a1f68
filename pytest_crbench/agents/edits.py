"""Replacing lines of a file as bytes: all other lines stay as they are, line ends included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BOM = b"\xef\xbb\xbf"


class UnfitError(Exception):
    """A replacement that cannot be made in this file; the message says why."""


@dataclass(frozen=True)
class Edit:
    """Replace lines ``first`` to ``last`` (1-based, inclusive) by ``text``; "" deletes them.

    A line end at the end of ``text`` does not count: with or without it, "a" is one line. A line end alone is
    one empty line.
    """

    first: int
    last: int
    text: str

    def __post_init__(self) -> None:
        # Bodies of web forms come with CRLF whatever the file has.
        text = re.sub(r"\r+(\n|\Z)", r"\1", self.text).removesuffix("\n")
        object.__setattr__(self, "text", f"{text}\n" if self.text else "")

    def overlaps(self, other: Edit) -> bool:
        """Whether both replace a line."""
        return self.first <= other.last and other.first <= self.last


def check(data: bytes, edit: Edit) -> None:
    """Make sure that an edit can be made in a file.

    Raises:
        UnfitError: no such lines, a binary file, or text that the file's encoding cannot take.
    """
    if b"\0" in data:
        raise UnfitError("the file is binary")
    count = _line_count(data)
    if not 1 <= edit.first <= edit.last:
        raise UnfitError(f"lines {edit.first}-{edit.last} are no range")
    if edit.last > count:
        raise UnfitError(f"lines {edit.first}-{edit.last} are beyond the end (the file has {count})")
    try:
        edit.text.encode()
        if not edit.text.isascii():
            data.decode()
    except UnicodeEncodeError:
        raise UnfitError("the suggestion holds a lone surrogate") from None
    except UnicodeDecodeError:
        raise UnfitError("the file is not UTF-8 and the suggestion is not ASCII") from None


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return ``data`` with ``edits`` made, bottom-up; they passed `check` and do not overlap."""
    bom, lines = _split(data)
    for edit in sorted(edits, key=lambda e: e.first, reverse=True):
        lines[edit.first - 1 : edit.last] = _replacement(lines, edit)
    return bom + b"".join(lines)


def _replacement(lines: Sequence[bytes], edit: Edit) -> list[bytes]:
    if not edit.text:
        return []
    end = _line_end(lines, edit)
    made = [line.encode() + end for line in edit.text[:-1].split("\n")]
    if not lines[edit.last - 1].endswith(b"\n"):
        made[-1] = made[-1][: -len(end)]
    return made


def _line_end(lines: Sequence[bytes], edit: Edit) -> bytes:
    """Return the line end of what is replaced, else that of the line before it, else LF."""
    for line in (lines[edit.first - 1], *lines[max(edit.first - 2, 0) : edit.first - 1]):
        if line.endswith(b"\n"):
            return b"\r\n" if line.endswith(b"\r\n") else b"\n"
    return b"\n"


def _line_count(data: bytes) -> int:
    """How many lines `_split` would give, without making them: a review may have many suggestions."""
    marked = data == _BOM
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data) and not marked)


def _split(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return the byte order mark, which is no part of line 1, and the lines as git counts them."""
    bom = _BOM if data.startswith(_BOM) else b""
    *whole, rest = data[len(bom) :].split(b"\n")
    return bom, [*(line + b"\n" for line in whole), *([rest] if rest else [])]
