"""Review comments in the shape of GitHub's REST API: a list of them, or a review object that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import Parsed, Unreadable
from .draft import draft, take_suggestion
from .jsontext import lines as json_lines
from .jsontext import loads, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import ReviewComment
    from .base import ParseContext


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read a list of review comments, a review with ``comments``, or JSON Lines of either.

    A ``suggestion`` block of a body becomes the comment's suggestion. The body of a review object is a
    general comment.

    Raises:
        Unreadable: if it is neither.
    """
    text, warnings = text_of(raw)
    try:
        value = loads(text, "github review")
    except Unreadable:
        value = json_lines(text, "github review")
        if len(value) < 2:
            raise
    return read(value, context, warnings)


def read(value: Any, context: ParseContext, warnings: tuple[str, ...] = ()) -> Parsed:
    """Read a parsed document.

    Raises:
        Unreadable: if it has not the shape.
    """
    comments: list[ReviewComment] = []
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(item, dict):
            raise Unreadable(f"github review: entry {number} is no object")
        if isinstance(item.get("comments"), list):
            comments += _review(item, context)
        else:
            comments.append(_comment(item, number, context))
    return Parsed(tuple(comments), warnings)


def _review(review: Mapping[str, Any], context: ParseContext) -> list[ReviewComment]:
    comments = []
    if isinstance(review.get("body"), str) and review["body"].strip():
        comments.append(draft(context, body=review["body"], level="general"))
    for number, item in enumerate(review["comments"]):
        if not isinstance(item, dict):
            raise Unreadable(f"github review: comment {number} is no object")
        comments.append(_comment(item, number, context))
    return comments


def _comment(item: Mapping[str, Any], number: int, context: ParseContext) -> ReviewComment:
    if not isinstance(item.get("body"), str):
        raise Unreadable(
            f"github review: comment {number} has no text 'body'. The shape is that of "
            "GET /repos/{owner}/{repo}/pulls/{number}/comments."
        )
    body, suggestion, flags = take_suggestion(item["body"])
    start, end = item.get("start_line"), item.get("line")
    if end is None and item.get("original_line") is not None:
        start, end = item.get("original_start_line"), item["original_line"]
        flags = (*flags, "outdated")
    elif end is None and start is None and item.get("position") is not None:
        flags = (*flags, "position-only")
    if item.get("start_side") not in (None, item.get("side", "RIGHT")):
        flags = (*flags, "two-sided")
        start = None
    return draft(
        context,
        body=body,
        path=item.get("path"),
        start=start,
        end=end,
        side=item.get("side"),
        suggestion=suggestion,
        level="file" if item.get("subject_type") == "file" else None,
        flags=flags,
    )
