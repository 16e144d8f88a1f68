"""Where a quoted piece of code is in the hunk that was asked about: found or not, and never guessed."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from ...text.fences import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...core.model import Side
    from ...text.hunks import Hunk

NOT_FOUND, AMBIGUOUS = "snippet-not-found", "snippet-ambiguous"
Lines = tuple[int, int]


def locate(quoted: str, hunk: Hunk, side: Side) -> tuple[Lines | None, str]:
    """Return first and last line of ``quoted`` on ``side`` of the hunk, or None and why (a flag).

    The quotation may be lines of the diff, with their markers (those of the other side do not count then), or
    plain code. It is looked for as it is first; then white space within lines, and blank lines, do not count;
    then the same with HTML's escapes undone. The first way that finds anything decides: one place is the
    answer, several are ambiguous.
    """
    shown = hunk.left if side == "left" else hunk.right
    ways = [(quoted, _as_it_is), (quoted, _squeezed)]
    plain = html.unescape(quoted)
    if plain != quoted:
        ways.append((plain, _squeezed))
    ways.append((plain, _as_shown))
    for text, way in ways:
        found = _places(text.split("\n"), shown, side, way)
        if len(found) == 1:
            return found.pop(), ""
        if found:
            return None, AMBIGUOUS
    return None, NOT_FOUND


def _places(
    quoted: Sequence[str],
    shown: Sequence[tuple[int, str]],
    side: Side,
    way: Callable[[Iterable[tuple[int, str]]], list[tuple[int, str]]],
) -> set[Lines]:
    where = way(shown)
    found: set[Lines] = set()
    for form in (_of_diff(quoted, side), list(quoted)):
        wanted = [text for _, text in way(enumerate(form or ()))]
        if not any(text.strip() for text in wanted):
            continue
        found |= {
            (where[at][0], where[at + len(wanted) - 1][0])
            for at in range(len(where) - len(wanted) + 1)
            if all(where[at + i][1] == text for i, text in enumerate(wanted))
        }
    return found


def _of_diff(quoted: Sequence[str], side: Side) -> list[str] | None:
    """Read a quotation as lines of a diff; None if it is none."""
    other = "+" if side == "left" else "-"
    lines = [line for line in quoted if not line.startswith("@@ ") and not line.startswith("\\ ")]
    if any(line[:1] not in ("", " ", "+", "-") for line in lines):
        return None
    return [line[1:] for line in lines if line[:1] != other]


def _as_it_is(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(number, text.removesuffix("\r")) for number, text in lines]


def _as_shown(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    # Some models leave out the sign for a character that cannot be shown.
    return _squeezed((number, visible(text).replace("\ufffd", "")) for number, text in lines)


def _squeezed(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    squeezed = ((number, "".join(text.split())) for number, text in lines)
    return [(number, text) for number, text in squeezed if text]
