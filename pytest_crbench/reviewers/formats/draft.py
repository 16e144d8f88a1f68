"""One comment from whatever a format says of it: the rules that all formats share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...core.model import Level, ReviewComment, Side
from ...text.printable import clean, clip
from ...text.suggestion_blocks import suggestion_block, suggestion_blocks
from .edits import MAX_LINE, line_number
from .paths import OUTSIDE, repository_path

if TYPE_CHECKING:
    from .base import ParseContext

#: Longest body that is kept, in bytes of UTF-8; head and tail remain of a longer one.
BODY_LIMIT = 64 * 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BIDI = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_SIDES: dict[str, Side] = {
    "left": "left",
    "old": "left",
    "base": "left",
    "right": "right",
    "new": "right",
    "head": "right",
    "": "right",
}


def draft(
    context: ParseContext,
    *,
    body: object,
    path: object = None,
    start: object = None,
    end: object = None,
    side: object = None,
    suggestion: str | None = None,
    severity: object = None,
    rule: object = None,
    level: object = None,
    flags: tuple[str, ...] = (),
) -> ReviewComment:
    """Make a comment without an id; every departure from what the tool wrote leaves a flag.

    Lines that are below 1, missing or no numbers make a comment on the file; no path makes a general one,
    which keeps its lines. An inverted range is swapped. A suggestion that has no lines of head to replace
    becomes a block of the body.
    """
    context.room.take()
    where, noted = repository_path(path, context)
    lines, line_flags = line_range(start, end)
    which, side_flags = side_of(side)
    text, body_flags = tidy(body)
    context.room.add(text)
    found = [*flags, *noted, *line_flags, *side_flags, *body_flags]
    at: Level = "inline"
    if where is None:
        at = "general"
        if lines is not None:
            found.append("no-path")
    elif level == "general":
        at = "general"
    elif lines is None or level == "file":
        at = "file"
    if at != "inline" and where is not None:
        # Without a path they are no place to us, but the published evaluator compares them (matching.legacy).
        lines = None
    if suggestion is not None:
        suggestion = clean(suggestion).replace("\r\n", "\n")
        if (
            where is None
            or lines is None
            or which == "left"
            or OUTSIDE in noted
            or len(suggestion) > BODY_LIMIT
        ):
            # As a suggestion block: matching compares only the words around such blocks.
            text, more = tidy(f"{text}\n\n{suggestion_block(suggestion)}")
            suggestion = None
            found += ["suggestion-unplaced", *more]
    return ReviewComment(
        id="",
        body=text,
        path=where,
        lines=lines,
        side=which,
        level=at,
        suggestion=suggestion,
        severity=_word(severity, lower=True),
        rule=_word(rule),
        flags=tuple(dict.fromkeys(found)),
    )


def line_range(start: object, end: object) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    """Return a 1-based inclusive range: half-given is one line, inverted is swapped, invalid is None.

    A range with an end below 1 is no place: its other end would be a line that the tool did not name.
    """
    first, last = line_number(start), line_number(end)
    strange = any(v not in (None, "") and line_number(v) is None and v != 0 for v in (start, end))
    flags = ("line-invalid",) if strange else ()
    if (first or last) and (_below(start) or _below(end)):
        return None, ("line-invalid",)
    if first is None or last is None:
        only = last if first is None else first
        return (None if only is None else (only, only)), flags
    if first > last:
        return (last, first), (*flags, "range-swapped")
    return (first, last), flags


def _below(value: object) -> bool:
    try:
        return value not in (None, "") and float(str(value)) < 1
    except ValueError:
        return False


def side_of(value: object) -> tuple[Side, tuple[str, ...]]:
    """Return the side that a tool's word means; an unknown word is the right side, flagged."""
    if value is None:
        return "right", ()
    found = _SIDES.get(value.strip().lower()) if isinstance(value, str) else None
    return (found, ()) if found else ("right", ("side-unknown",))


def tidy(body: object) -> tuple[str, tuple[str, ...]]:
    """Make a body safe to keep: no control characters or lone surrogates, bounded; flags what was done."""
    text = clean(_cut(body)) if isinstance(body, str) else ""
    flags = []
    if _CONTROL.search(text):
        text = _CONTROL.sub("\ufffd", text)
        flags.append("control-characters")
    if _BIDI.search(text):
        flags.append("bidi")
    data, clipped = clip(text.encode("utf-8", "replace"), BODY_LIMIT)
    if clipped:
        text = data.decode("utf-8", "replace")
        flags.append("clipped")
    if not text.strip():
        flags.append("empty-body")
    return text.strip(), tuple(flags)


def _cut(body: str) -> str:
    """Leave the middle out of a text that is clipped anyway: many comments may name one of megabytes."""
    return body if len(body) <= 4 * BODY_LIMIT else body[: 2 * BODY_LIMIT] + body[-2 * BODY_LIMIT :]


def take_suggestion(body: str) -> tuple[str, str | None, tuple[str, ...]]:
    """Split the first suggestion block from a Markdown body: (rest, replacement text, flags).

    The replacement's lines end with a newline each; "" deletes the lines (an empty block). A block that is
    never closed, or lies within another, is none.
    """
    blocks = suggestion_blocks(body) if "suggestion" in body else []
    if not blocks:
        return body, None, ()
    first, last, text = blocks[0]
    lines = body.split("\n")
    before, after = "\n".join(lines[:first]).rstrip(), "\n".join(lines[last + 1 :]).lstrip()
    return f"{before}\n\n{after}".strip(), text, ("several-suggestions",) if len(blocks) > 1 else ()


def _word(value: object, *, lower: bool = False) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    if isinstance(value, int) and abs(value) > MAX_LINE:
        return None
    # Many comments may name one word of megabytes.
    word = _BIDI.sub("\ufffd", _CONTROL.sub("\ufffd", clean(str(value)[:1000]))).strip()[:200]
    return (word.lower() if lower else word) or None
