"""JSON from programs that do not always write only JSON: whole documents, lines, fences, prose."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core import plainjson
from ...core.text import printable
from .base import INPUT_LIMIT, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

#: A review begins with an object, or with a list of objects; a log line ("[INFO] ...") does not.
_OPENING = re.compile(r"^[ \t]*(?=\{[ \t\r\n]{0,200}[\"}]|\[[ \t\r\n]{0,200}[{\]])", re.MULTILINE)
#: Characters that the search in prose may look at altogether: hostile text must not cost minutes.
_SEARCH_BUDGET = 64 * 1024 * 1024


@dataclass(frozen=True)
class Document:
    """A JSON value and how it was found."""

    value: Any
    warnings: tuple[str, ...] = ()


class Ambiguous(Unreadable):
    """JSON that means one thing to programs that take the first of two equal keys, and another to others."""


def text_of(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode UTF-8, or UTF-16 where a byte-order mark says so; what is invalid is replaced, with a warning.

    Raises:
        Unreadable: if there is too much of it.
    """
    if len(raw) > INPUT_LIMIT:
        raise Unreadable(
            f"the review has {len(raw)} bytes, more than the {INPUT_LIMIT} that are read. Let the tool "
            "report only the changed files."
        )
    encoding = "utf-8-sig"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return raw.decode(encoding), ()
    except UnicodeDecodeError:
        text = raw.decode(encoding, "replace")
    return text, ("the output is not valid UTF-8; invalid bytes were replaced",)


def loads(text: str, what: str) -> Any:
    """Parse one JSON document.

    Raises:
        Unreadable: naming ``what`` and the place of the first error; `Ambiguous` for a key that is twice.
    """
    try:
        return plainjson.parse(text, pairs=_object)
    except ValueError as error:
        raise Unreadable(
            f"{what}: not JSON ({printable(str(error), 120)}); it begins with {printable(text[:200], 60)!r}. "
            "Look at the raw output that is kept beside the results."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise Ambiguous(
                    f"an object has the key {printable(key, 60)!r} twice, with different values. Let the "
                    "tool write each once."
                )
    return made


def whole(raw: bytes, what: str) -> Document:
    """Parse output that must be one JSON document and nothing else.

    Raises:
        Unreadable: if it is not.
    """
    text, warnings = text_of(raw)
    return Document(loads(text, what), warnings)


def lines(text: str, what: str) -> list[Any]:
    """Parse JSON Lines; blank lines are skipped.

    Raises:
        Unreadable: naming the first line that is not JSON.
    """
    numbered = ((n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip())
    return [loads(line, f"{what}, line {number}") for number, line in numbered]


def embedded(text: str, accept: Callable[[Any], bool]) -> list[Any]:
    """Find the JSON values in prose that ``accept`` takes: those that stand on lines of their own.

    A fence around them does not matter. A value inside an accepted one is not looked at. JSON in the middle
    of a sentence is never taken: an empty list there is no review.

    Raises:
        Unreadable: if the search would take too long.
    """
    decoder, found, at, spent = json.JSONDecoder(object_pairs_hook=_object), [], 0, 0
    while (opening := _OPENING.search(text, at)) is not None:
        start = at = opening.end()
        spent += 256  # an attempt costs something, even one that fails at once
        if spent > _SEARCH_BUDGET:
            raise Unreadable("the output is prose with too many beginnings of JSON to find a review in it")
        end_of_line = text.find("\n", start)
        at = len(text) if end_of_line < 0 else end_of_line + 1
        try:
            value, end = decoder.raw_decode(text, start)
            plainjson.check_depth(value)
        except json.JSONDecodeError as error:
            # The error itself counts the lines before it, which is quick, but not free.
            spent += error.pos - start + error.pos // 4
            continue
        except (ValueError, RecursionError):  # a number of thousands of digits, or absurd nesting
            spent += 16384
            continue
        spent += end - start
        rest = text[end : text.find("\n", end) if text.find("\n", end) >= 0 else len(text)]
        if not rest.strip() and accept(value):
            found.append(value)
            at = end
    return found
