"""Suggestion blocks in Markdown: what forges let an author apply with one click."""

from __future__ import annotations

import re

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`\r]*)\r?$")


def suggestion_blocks(body: str) -> list[tuple[int, int, str]]:
    """Return every suggestion block as (first line, last line, replacement), lines counted from 0.

    A fence is closed by one of the same character that is at least as long, as in CommonMark. Takes time
    proportional to the body: it may come from anybody.
    """
    blocks: list[tuple[int, int, str]] = []
    opened: re.Match[str] | None = None
    start = 0
    lines = body.split("\n")
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened, start = fence, number
        elif _closes(fence, opened):
            if opened["info"].strip() == "suggestion":
                inner = lines[start + 1 : number]
                blocks.append((start, number, _text(inner, opened["indent"])))
            opened = None
    return blocks


def suggestion_block(text: str) -> str:
    """Return a text as a suggestion block, with a fence that the text cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}suggestion\n{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{fence}"


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    return not fence["info"].strip() and fence["fence"].startswith(opened["fence"])


def _text(lines: list[str], indent: str) -> str:
    return "".join(line.removesuffix("\r").removeprefix(indent) + "\n" for line in lines)
