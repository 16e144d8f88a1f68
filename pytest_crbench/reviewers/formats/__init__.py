"""Review formats: a parser of raw output for each name; ``auto`` tells the format by the content."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...text.printable import printable
from . import checkstyle, github, native, rdjson, sarif, tagged
from .base import HeadFiles, ParseContext, Parsed, Remark, Unreadable
from .jsontext import documents, flat, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .base import Parser


__all__ = ["PARSERS", "HeadFiles", "ParseContext", "Parsed", "Remark", "Unreadable", "parse"]


def parse(raw: bytes, format: str, context: ParseContext) -> Parsed:
    """Read raw output in a named format.

    Raises:
        Unreadable: if it is not of that format; reason ``empty`` if nothing was written at all.
    """
    if not raw.strip():
        raise Unreadable(
            "the reviewer wrote nothing. That there are no findings must be said in its format "
            f"({_clean(format)}).",
            reason="empty",
        )
    return PARSERS[format](raw, context)


def _clean(name: str) -> str:
    return {
        "sarif": 'a run with "results": []',
        "rdjson": '{"diagnostics": []}',
        "rdjsonl": 'the line {"diagnostics": []}',
        "checkstyle": "<checkstyle></checkstyle>",
        "github": "[]",
        "tagged": "<end/>",
    }.get(name, '{"comments": []} or []')


_GITHUB = frozenset(
    {
        "subject_type",
        "start_side",
        "diff_hunk",
        "commit_id",
        "original_line",
        "original_start_line",
        "original_commit_id",
        "position",
        "pull_request_review_id",
        "event",
        "html_url",
    }
)
_NATIVE = frozenset(["lines", "end_line", "file", "suggestion", "severity", "rule", "level", "usage"])
_LINTERS = ("sarif", "rdjson", "rdjsonl", "checkstyle")
#: A tag of another name is that of a model which thinks aloud before it writes its review.
_XML = re.compile(r"\s*<(?:\?xml|!|checkstyle)", re.IGNORECASE)
_ADVICE = (
    "Name it with --crbench-review-format (native, github, sarif, rdjson, rdjsonl, checkstyle); many tools "
    "write SARIF when asked to."
)


def parse_detected(raw: bytes, context: ParseContext) -> Parsed:
    """Read output in the format that it has; the first remark says which was taken.

    Raises:
        Unreadable: if the content does not settle it, or is not of the format that it seems to be.
    """
    name, parser = _detect(raw)
    parsed = parser(raw, context)
    return replace(parsed, remarks=(Remark(f"format taken from the content: {name}"), *parsed.remarks))


def linter_format(raw: bytes) -> str | None:
    """Name the format of linters that output seems to be in; None for any other, and for what is damaged."""
    try:
        name, _parser = _detect(raw)
    except Unreadable:
        return None
    return name if name in _LINTERS else None


def _detect(raw: bytes) -> tuple[str, Parser]:
    text, _ = text_of(raw)
    if _XML.match(text):
        return "checkstyle", checkstyle.parse
    values = documents(text, "review").values
    if len(values) == 1 and isinstance(values[0], dict):
        if isinstance(values[0].get("runs"), list):
            return "sarif", sarif.parse
        if isinstance(values[0].get("diagnostics"), list):
            return "rdjson", rdjson.parse_result
    if all(_is_diagnostic(value) for value in values):
        return "rdjsonl", rdjson.parse_lines
    return _own_or_github(flat(list(values)) if len(values) > 1 else flat(values[0]))


def _own_or_github(value: Any) -> tuple[str, Parser]:
    items = value if isinstance(value, list) else [value]
    reviews = bool(items) and all(isinstance(i, dict) and isinstance(i.get("comments"), list) for i in items)
    if not (native.is_review(value) or native.is_comment(value) or reviews):
        keys = ", ".join(sorted(map(str, value))[:8]) if isinstance(value, dict) else type(value).__name__
        shown = printable(keys, 200)
        raise Unreadable(f"this JSON is no review that is known by its content ({shown}). {_ADVICE}")
    keys_found: set[str] = set()
    shouted = False
    for item in items:
        inner = item.get("comments") if isinstance(item.get("comments"), list) else []
        for entry in (item, *inner):
            if isinstance(entry, dict):
                keys_found.update(map(str, entry))
                shouted = shouted or entry.get("side") in ("LEFT", "RIGHT")
    theirs, ours = bool(keys_found & _GITHUB) or shouted, bool(keys_found & _NATIVE)
    if theirs and ours:
        raise Unreadable(f"this JSON has keys of both the native and the GitHub format. {_ADVICE}")
    return ("github", github.parse) if theirs else ("native", native.parse)


def _is_diagnostic(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return (isinstance(value.get("message"), str) and isinstance(value.get("location"), dict)) or (
        value.get("diagnostics") == []
    )


#: Every format by the name that ``--crbench-review-format`` takes.
PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        "auto": parse_detected,
        "native": native.parse,
        "github": github.parse,
        "sarif": sarif.parse,
        "rdjson": rdjson.parse_result,
        "rdjsonl": rdjson.parse_lines,
        "checkstyle": checkstyle.parse,
        "tagged": tagged.parse,
    }
)
