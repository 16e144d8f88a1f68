"""Review formats: one table from a name to the parser of its raw output."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from . import auto, checkstyle, github, native, rdjson, sarif, tagged
from .base import HeadFiles, ParseContext, Parsed, Remark, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .base import Parser

#: Every format by the name that ``--crbench-review-format`` takes.
PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        "auto": auto.parse,
        "native": native.parse,
        "github": github.parse,
        "sarif": sarif.parse,
        "rdjson": rdjson.parse_result,
        "rdjsonl": rdjson.parse_lines,
        "checkstyle": checkstyle.parse,
        "tagged": tagged.parse,
    }
)

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
