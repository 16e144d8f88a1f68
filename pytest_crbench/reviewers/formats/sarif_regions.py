"""SARIF regions: by line and column, or by offset into the artifact (SARIF 3.30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .draft import line_number
from .edits import Edit, Lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .edits import Unit


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
