"""Ids and flags of a whole review: what depends on the diff and on the other comments."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ..host import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core.model import ReviewComment

    InDiff = Callable[[str, str, tuple[int, int] | None], bool]


def normalise(comments: Iterable[ReviewComment], *, in_diff: InDiff) -> tuple[ReviewComment, ...]:
    """Give every comment its flags and a stable id; as many come out as go in, in the same order.

    ``in_diff`` gets a path, a side and lines; None asks for the file as a whole. An id depends on the
    comment's content alone; equal comments are numbered in order.
    """
    return identified(flagged(comments, in_diff=in_diff))


def flagged(comments: Iterable[ReviewComment], *, in_diff: InDiff) -> tuple[ReviewComment, ...]:
    """Flag what lies ``outside-diff``, lines that only the other side shows, and every ``duplicate``."""
    seen: set[tuple[object, ...]] = set()
    result = []
    for comment in comments:
        flags = list(comment.flags)
        if comment.path is not None and "outside-tree" not in flags:
            flags += _misplaced(comment, comment.path, in_diff)
        same = (comment.path, comment.lines, comment.side, " ".join(comment.body.split()).casefold())
        if same in seen:
            flags.append("duplicate")
        seen.add(same)
        result.append(replace(comment, flags=tuple(dict.fromkeys(flags))))
    return tuple(result)


def _misplaced(comment: ReviewComment, path: str, in_diff: InDiff) -> list[str]:
    if in_diff(path, comment.side, comment.lines):
        return []
    other = "left" if comment.side == "right" else "right"
    elsewhere = comment.lines is not None and in_diff(path, other, comment.lines)
    return ["outside-diff", "other-side"] if elsewhere else ["outside-diff"]


def identified(comments: Iterable[ReviewComment]) -> tuple[ReviewComment, ...]:
    """Give ids made of the content; the second equal comment ends in ``-2``, and so on."""
    count: Counter[str] = Counter()
    result = []
    for comment in comments:
        content = [comment.path, comment.lines, comment.side, comment.level, comment.body]
        name = digest.of([*content, comment.suggestion, comment.severity, comment.rule])[:12]
        count[name] += 1
        result.append(replace(comment, id=name if count[name] == 1 else f"{name}-{count[name]}"))
    return tuple(result)
