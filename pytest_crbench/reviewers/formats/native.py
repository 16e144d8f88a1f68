"""Our own JSON: ``{"comments": [...]}``, a bare list, or one comment per line.

The keys are told in docs/writing-a-reviewer.md.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ...text.printable import printable
from .base import Parsed, Remark, Unreadable
from .draft import draft, take_suggestion
from .jsontext import IN_PROSE, empty_in_prose, refuse_failure, review_in, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import ReviewComment
    from .base import ParseContext

#: The key by which a tool says that it got no answer from what it depends on.
_OUTSIDE = "outside_failure"
_PLACE = ("path", "file", "line", "lines", "start_line", "end_line", "side", "level")
_SPELLED = ("lines", "start_line", "line", "end_line")
#: The keys that may place a comment together, each pair in the order first, last.
_SPELLINGS = frozenset(
    {
        (),
        ("lines",),
        ("line",),
        ("start_line",),
        ("end_line",),
        ("start_line", "end_line"),
        ("start_line", "line"),
        ("line", "end_line"),
    }
)
#: How other formats and models spell lines and files, in lower case without "_" and "-": read as nothing,
#: such a comment would lose its place.
_OTHER_LINES = re.compile(
    r"(?:start|end|from|to)(?:line|row)?(?:no|number)?|(?:begin|first|last|original|originalstart)(?:line|row)"
    r"|line(?:start|end|no|number|range)|row|range|(?:original)?position"
)
_OTHER_PATHS = frozenset(["filename", "filepath", "relativepath"])
_KNOWN = frozenset({"id", "body", "suggestion", "severity", "rule", *_PLACE})
_HOW = 'Write {"comments": [{"path": "a.py", "lines": [1, 2], "body": "..."}]}, or {"comments": []} for none.'


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read native output; JSON in a Markdown fence, or on lines of its own in prose, is read too.

    Raises:
        Unreadable: if there is no review in it, or more than one, or a clean one among other words.
    """
    text, remarks = text_of(raw)
    output = review_in(text, "native review", is_either)
    (value,) = output.values
    if not isinstance(value, list | dict):
        raise Unreadable(f"native review: a list or an object is expected. {_HOW}")
    if output.prose:
        remarks = (*remarks, IN_PROSE)
    parsed = read(value, context, remarks)
    # An empty list in prose does not say that the review was completed.
    completed = isinstance(value, dict) and value.get("completed") is True
    if output.prose and not (parsed.comments or parsed.outside or completed):
        raise empty_in_prose("native review", '{"comments": [], "completed": true}')
    return parsed


def read(value: Any, context: ParseContext, remarks: tuple[Remark, ...] = ()) -> Parsed:
    """Read a parsed native document.

    Raises:
        Unreadable: if it has not the shape.
    """
    if isinstance(value, dict) and value.get(_OUTSIDE):
        if not isinstance(value[_OUTSIDE], str):
            raise Unreadable(f"native review: {_OUTSIDE!r} is no text that says what failed.")
        return Parsed((), remarks, outside=value[_OUTSIDE])
    usage: dict[str, float] = {}
    if isinstance(value, dict) and "comments" in value:
        usage = _usage(value.get("usage"))
        items = value["comments"]
        remarks = (*remarks, *refuse_failure(value, "native review", empty=not items))
        if value.get("completed") is False:
            unfinished = "the tool says that its review was not completed"
            if not items:
                raise Unreadable(f"native review: {unfinished}: this is no clean review")
            remarks = (*remarks, Remark(unfinished, "not-completed"))
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
        ignored = f"keys that mean nothing here were ignored: {names}"
        remarks = (*remarks, Remark(ignored, "unknown-key", len(unknown)))
    return Parsed(tuple(comments), remarks, usage=usage)


def is_either(value: Any) -> bool:
    """Whether a value has the shape of a native review, or of one comment."""
    return is_review(value) or is_comment(value)


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


def _comment(item: Any, number: int, context: ParseContext) -> ReviewComment:
    if not isinstance(item, dict) or not isinstance(item.get("body"), str):
        keys = (
            ", ".join(sorted(printable(str(k), 30) for k in item)[:8]) if isinstance(item, dict) else "none"
        )
        raise Unreadable(f"native review: comment {number} has no text 'body' (keys found: {keys}). {_HOW}")
    start, end = _lines(item, number)
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


def _lines(item: Mapping[str, Any], number: int) -> tuple[Any, Any]:
    """Return first and last line, in one of the spellings of `_SPELLINGS`.

    Raises:
        Unreadable: for another spelling, whose meaning would be a guess.
    """
    wrong = _misspelt(item)
    keys = tuple(key for key in _SPELLED if item.get(key) is not None)
    if not wrong and keys in _SPELLINGS:
        found = [item[key] for key in keys]
        if keys != ("lines",):
            return (found[0], found[-1]) if found else (None, None)
        lines = found[0]
        if not isinstance(lines, list):
            return lines, lines
        if len(lines) <= 2:
            return (lines[0], lines[-1]) if lines else (None, None)
    shown = ", ".join(wrong or keys)
    raise Unreadable(
        f"native review: comment {number} gives its place as {printable(shown, 200)}. Write lines: [first, "
        "last], line, start_line and end_line, start_line and line, or line and end_line; and path."
    )


def _misspelt(item: Mapping[str, Any]) -> list[str]:
    """Name the keys that give a place in a way that is not read."""
    lost = not (item.get("path") or item.get("file"))
    found = []
    for key in (str(key) for key, value in item.items() if value is not None and key not in _SPELLED):
        plain = key.lower().replace("_", "").replace("-", "")
        if _OTHER_LINES.fullmatch(plain) or (lost and plain in _OTHER_PATHS):
            found.append(key)
    return sorted(found)


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
