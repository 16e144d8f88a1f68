"""Reviewdog's diagnostic formats: ``rdjson`` (one result) and ``rdjsonl`` (one diagnostic per line).

Columns count bytes of UTF-8 from 1 and the end is exclusive; a range without columns is whole lines, its end
included (reviewdog, proto/rdf/reviewdog.proto).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...text.printable import clean
from .base import Parsed, Unreadable
from .draft import BODY_LIMIT, draft, line_range
from .edits import Edit, Lines, Replacement, Unit, as_lines, line_number
from .jsontext import empty_in_prose, refuse_failure, text_of, whole
from .jsontext import lines as json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import ReviewComment
    from .base import ParseContext

_SEVERITIES = {1: "error", 2: "warning", 3: "info", 0: None, "UNKNOWN_SEVERITY": None}


def parse_result(raw: bytes, context: ParseContext) -> Parsed:
    """Read ``rdjson``. No findings are ``{"diagnostics": []}``.

    Raises:
        Unreadable: if it is not that.
    """
    document = whole(raw, "rdjson")
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("diagnostics"), list):
        raise Unreadable('rdjson: an object with a list "diagnostics" is expected')
    failure = refuse_failure(value, "rdjson", empty=not value["diagnostics"])
    if document.prose and not value["diagnostics"]:
        raise empty_in_prose("rdjson")
    return Parsed(
        tuple(
            _comment(item, number, context, value.get("severity"), value.get("source"))
            for number, item in enumerate(value["diagnostics"])
        ),
        (*document.remarks, *failure),
    )


def parse_lines(raw: bytes, context: ParseContext) -> Parsed:
    """Read ``rdjsonl``. The format cannot say "no findings": a line ``{"diagnostics": []}`` does.

    Raises:
        Unreadable: if a line is no diagnostic.
    """
    text, remarks = text_of(raw)
    comments: list[ReviewComment] = []
    rows = json_lines(text, "rdjsonl")
    if not rows:
        raise Unreadable("rdjsonl: there is no line", reason="empty")
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict) and row.get("diagnostics") == []:
            continue
        comments.append(_comment(row, number, context, None, None))
    return Parsed(tuple(comments), remarks)


def _comment(item: Any, number: int, context: ParseContext, severity: Any, source: Any) -> ReviewComment:
    if not isinstance(item, dict) or not isinstance(item.get("message"), str):
        raise Unreadable(f"rdjson: diagnostic {number} has no text 'message'")
    place = _dict(item.get("location"))
    span = _dict(place.get("range"))
    start, end = _dict(span.get("start")), _dict(span.get("end"))
    last: Any = end.get("line")
    if end.get("column") == 1 and _after(last, start.get("line")):
        last -= 1  # the exclusive end is the start of the next line
    level = item.get("severity", severity)
    comment = draft(
        context,
        body=item["message"],
        path=place.get("path"),
        start=start.get("line"),
        end=last or None,  # 0 is how protocol buffers write a number that was not set
        severity=_SEVERITIES.get(level, level) if isinstance(level, int | str) else None,
        rule=_dict(item.get("code")).get("value"),
    )
    return _with_suggestion(comment, item.get("suggestions"), context, item.get("source", source))


def _with_suggestion(
    comment: ReviewComment, suggestions: Any, context: ParseContext, source: Any
) -> ReviewComment:
    """Add the suggestion where whole lines can say it.

    Several suggestions at one place are alternatives: the first is taken. Several at places apart are parts
    of one change (so ruff writes them): all are taken.
    """
    if not isinstance(suggestions, list) or not suggestions:
        return comment
    found = None
    flags = comment.flags
    if comment.lines is not None and comment.path is not None and (lines := context.head.lines(comment.path)):
        # Ruff counts characters, not bytes, in spite of the format.
        unit: Unit = "characters" if _dict(source).get("name") == "ruff" else "utf-8"
        edits = [_edit(lines, _dict(s), unit) for s in suggestions[:200]]
        known = [edit for edit in edits if edit is not None]
        if len(known) == len(suggestions):
            found = as_lines(lines, known, comment.lines)
            if found is None and len(known) > 1 and _alternatives(known):
                found = as_lines(lines, known[:1], comment.lines)
                flags = (*flags, "several-suggestions")
    return placed(replace(comment, flags=flags), found, context)


def placed(comment: ReviewComment, found: Replacement | None, context: ParseContext) -> ReviewComment:
    """Give a comment its suggestion; flags a range that had to grow, or a suggestion that is lost."""
    if found is None or len(found.text) > BODY_LIMIT:
        return replace(comment, flags=(*comment.flags, "suggestion-lost"))
    context.room.add(found.text)
    grown = ("range-widened",) if found.lines != comment.lines else ()
    return replace(comment, lines=found.lines, suggestion=clean(found.text), flags=(*comment.flags, *grown))


def _alternatives(edits: list[Edit]) -> bool:
    first = edits[0]
    return all((e.start < first.end and first.start < e.end) or e.start == first.start for e in edits[1:])


def _edit(lines: Lines, suggestion: Mapping[str, Any], unit: Unit) -> Edit | None:
    span, text = _dict(suggestion.get("range")), suggestion.get("text", "")
    start, end = _dict(span.get("start")), _dict(span.get("end"))
    if not isinstance(text, str):
        return None
    if start.get("column") is None and end.get("column") is None:
        whole_lines, _ = line_range(start.get("line"), end.get("line"))
        if whole_lines is None or whole_lines[1] > lines.count:
            return None
        if text and not text.endswith("\n"):
            text += "\n"
        return Edit(lines.starts[whole_lines[0] - 1], lines.end_of(whole_lines[1]), text)
    first = _offset(lines, start, unit)
    last = _offset(lines, end, unit) if end else first
    return None if first is None or last is None or last < first else Edit(first, last, text)


def _offset(lines: Lines, position: Mapping[str, Any], unit: Unit) -> int | None:
    line, column = line_number(position.get("line")), line_number(position.get("column", 1))
    return None if line is None or column is None else lines.offset(line, column, unit)


def _after(last: Any, first: Any) -> bool:
    a, b = line_number(first), line_number(last)
    return isinstance(last, int) and a is not None and b is not None and b > a


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
