"""Our own JSON: ``{"comments": [...]}``, a bare list, or one comment per line.

The keys are told in docs/writing-a-reviewer.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.digest import canonical
from ...core.text import printable
from .base import Parsed, Unreadable
from .draft import draft, take_suggestion
from .jsontext import Ambiguous, embedded, loads, text_of
from .jsontext import lines as json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import ReviewComment
    from .base import ParseContext

#: The key by which a tool says that it got no answer from what it depends on.
_OUTSIDE = "outside_failure"
_PLACE = ("path", "file", "line", "lines", "start_line", "end_line", "side", "level")
_KNOWN = frozenset({"id", "body", "suggestion", "severity", "rule", *_PLACE})
_HOW = 'Write {"comments": [{"path": "a.py", "lines": [1, 2], "body": "..."}]}, or {"comments": []} for none.'


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read native output; JSON in a Markdown fence, or on lines of its own in prose, is found too.

    Raises:
        Unreadable: if there is no review in it, or more than one.
    """
    text, warnings = text_of(raw)
    value, found = _value(text)
    return read(value, context, (*warnings, *found))


def read(value: Any, context: ParseContext, warnings: tuple[str, ...] = ()) -> Parsed:
    """Read a parsed native document.

    Raises:
        Unreadable: if it has not the shape.
    """
    if isinstance(value, dict) and value.get(_OUTSIDE):
        if not isinstance(value[_OUTSIDE], str):
            raise Unreadable(f"native review: {_OUTSIDE!r} is no text that says what failed.")
        return Parsed((), warnings, outside=value[_OUTSIDE])
    usage: dict[str, float] = {}
    if isinstance(value, dict) and "comments" in value:
        usage = _usage(value.get("usage"))
        items = value["comments"]
    else:
        items = [value] if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise Unreadable(f"native review: 'comments' is no list. {_HOW}")
    unknown: set[str] = set()
    comments = []
    for number, item in enumerate(items):
        comments.append(_comment(item, number, context))
        unknown.update(str(key) for key in item if key not in _KNOWN)
    if unknown:
        names = ", ".join(printable(name, 40) for name in sorted(unknown)[:8])
        warnings = (*warnings, f"keys that mean nothing here were ignored: {names}")
    return Parsed(tuple(comments), warnings, usage=usage)


def is_comment(value: Any) -> bool:
    """Whether a value has the shape of one native comment."""
    return isinstance(value, dict) and isinstance(value.get("body"), str)


def is_review(value: Any) -> bool:
    """Whether a value has the shape of a native review (a list may be empty)."""
    if isinstance(value, dict) and isinstance(value.get(_OUTSIDE), str) and value[_OUTSIDE]:
        return True
    if isinstance(value, dict) and isinstance(value.get("comments"), list):
        value = value["comments"]
    return isinstance(value, list) and all(is_comment(item) for item in value)


def _value(text: str) -> tuple[Any, tuple[str, ...]]:
    try:
        value = loads(text, "native review")
    except Ambiguous:
        raise
    except Unreadable as error:
        failure = error
    else:
        if not (is_review(value) or is_comment(value) or isinstance(value, list | dict)):
            raise Unreadable(f"native review: a list or an object is expected. {_HOW}")
        return value, ()
    try:
        rows = json_lines(text, "native review")
    except Unreadable:
        return _searched(text, failure)
    if all(is_comment(row) for row in rows):
        return rows, ()
    return _searched(text, failure)


def _searched(text: str, failure: Unreadable) -> tuple[Any, tuple[str, ...]]:
    found = embedded(text, lambda value: is_review(value) or is_comment(value))
    if not found:
        raise failure
    note = "the review was taken from JSON within other text"
    if all(isinstance(value, dict) and "comments" not in value for value in found):
        return found, (note,)
    if len({canonical(value) for value in found}) > 1:
        raise Unreadable(
            f"native review: the output holds {len(found)} reviews that differ. Let the tool write one."
        )
    return found[0], (note,)


def _comment(item: Any, number: int, context: ParseContext) -> ReviewComment:
    if not isinstance(item, dict) or not isinstance(item.get("body"), str):
        keys = (
            ", ".join(sorted(printable(str(k), 30) for k in item)[:8]) if isinstance(item, dict) else "none"
        )
        raise Unreadable(f"native review: comment {number} has no text 'body' (keys found: {keys}). {_HOW}")
    start, end = _lines(item)
    body, suggestion = item["body"], item.get("suggestion")
    flags: tuple[str, ...] = ()
    if suggestion is None:
        body, suggestion, flags = take_suggestion(body)
    if suggestion is not None and not isinstance(suggestion, str):
        raise Unreadable(f"native review: 'suggestion' of comment {number} is no text. {_HOW}")
    level = item.get("level")
    if level not in (None, "inline", "file", "general"):
        raise Unreadable(f"native review: 'level' of comment {number} is not inline, file or general.")
    return draft(
        context,
        body=body,
        path=item.get("path", item.get("file")),
        start=start,
        end=end,
        side=item.get("side"),
        suggestion=suggestion,
        severity=item.get("severity"),
        rule=item.get("rule"),
        level=level,
        flags=flags,
    )


def _lines(item: Mapping[str, Any]) -> tuple[Any, Any]:
    lines = item.get("lines")
    if isinstance(lines, list):
        return (lines[0] if lines else None), (lines[-1] if lines else None)
    if lines is not None:
        return lines, lines
    return item.get("start_line"), item.get("end_line", item.get("line"))


def _usage(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    return {
        printable(str(key), 60): float(number)
        for key, number in list(value.items())[:50]
        if isinstance(number, int | float)
        and not isinstance(number, bool)
        and abs(number) < 1e18
        and math.isfinite(number)
    }
