"""Review comments in the shape of GitHub's REST API: a list of them, or a review object that holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...text.hunks import numbered
from .base import Parsed, Remark, Unreadable
from .draft import draft, take_suggestion
from .edits import line_number
from .jsontext import IN_PROSE, empty_in_prose, refuse_failure, review_in, text_of
from .native import is_either

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import ReviewComment, Side
    from .base import ParseContext


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read a list of review comments, a review with ``comments``, pages or JSON Lines of either.

    A ``suggestion`` block of a body becomes the comment's suggestion. The body of a review object is a
    general comment.

    Raises:
        Unreadable: if it is neither.
    """
    text, remarks = text_of(raw)
    output = review_in(text, "github review", is_either, several=True)
    parsed = read(output.values[0], context, remarks)
    if not output.prose:
        return parsed
    if not parsed.comments:
        raise empty_in_prose("github review")
    return replace(parsed, remarks=(*parsed.remarks, IN_PROSE))


def read(value: Any, context: ParseContext, remarks: tuple[Remark, ...] = ()) -> Parsed:
    """Read a parsed document.

    Raises:
        Unreadable: if it has not the shape.
    """
    thread = _Thread(context)
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(item, dict):
            raise Unreadable(f"github review: entry {number} is no object")
        if not isinstance(item.get("comments"), list):
            thread.add(item, number)
            continue
        if isinstance(item.get("body"), str) and item["body"].strip():
            thread.comments.append(draft(context, body=item["body"], level="general"))
        remarks = (*remarks, *refuse_failure(item, "github review", empty=not item["comments"]))
        for inner, comment in enumerate(item["comments"]):
            if not isinstance(comment, dict):
                raise Unreadable(f"github review: comment {inner} is no object")
            thread.add(comment, inner)
    comments, lost = thread.joined()
    if lost:
        said = f"{lost} replies to comments that are not here were left out"
        remarks = (*remarks, Remark(said, "lost-reply", lost))
    return Parsed(comments, remarks)


class _Thread:
    """Collects comments; an entry with ``in_reply_to_id`` is a reply, kept with the comment it answers."""

    def __init__(self, context: ParseContext) -> None:
        self.context = context
        self.comments: list[ReviewComment] = []
        self.replies: list[tuple[Any, ReviewComment]] = []
        self._by_id: dict[Any, int] = {}
        self._by_place: dict[Any, int] = {}

    def add(self, item: Mapping[str, Any], number: int) -> None:
        comment = _comment(item, number, self.context)
        if item.get("in_reply_to_id") is not None:
            self.replies.append((item["in_reply_to_id"], comment))
            return
        self._by_place.setdefault(_place(comment), len(self.comments))
        if isinstance(item.get("id"), int | str):
            self._by_id[item["id"]] = len(self.comments)
        self.comments.append(comment)

    def joined(self) -> tuple[tuple[ReviewComment, ...], int]:
        """Return the comments with their replies, which may be listed first, and how many answer none."""
        answers: dict[int, list[str]] = {}
        lost = 0
        for parent, reply in self.replies:
            known = self._by_id.get(parent) if isinstance(parent, int | str) else None
            at = self._by_place.get(_place(reply)) if known is None else known
            if at is None:
                lost += 1
            else:
                answers.setdefault(at, []).append(reply.body)
        comments = (replace(c, replies=tuple(answers.get(at, ()))) for at, c in enumerate(self.comments))
        return tuple(comments), lost


def _place(comment: ReviewComment) -> tuple[Any, ...]:
    return comment.path, comment.lines, comment.side


def _comment(item: Mapping[str, Any], number: int, context: ParseContext) -> ReviewComment:
    if not isinstance(item.get("body"), str):
        raise Unreadable(
            f"github review: comment {number} has no text 'body'. The shape is that of "
            "GET /repos/{owner}/{repo}/pulls/{number}/comments."
        )
    if ours := [key for key in ("lines", "end_line") if item.get(key) is not None]:
        raise Unreadable(
            f"github review: comment {number} has {ours[0]!r}, a key of the native format which would be "
            "lost. Use --crbench-review-format=native, or GitHub's keys: start_line and line."
        )
    body, suggestion, flags = take_suggestion(item["body"])
    start, end, side = item.get("start_line"), item.get("line"), item.get("side")
    if end is None and item.get("original_line") is not None:
        start, end = item.get("original_start_line"), item["original_line"]
        flags = (*flags, "outdated")
    elif end is None and start is None and item.get("subject_type") != "file":
        end, shown, more = _by_position(item, context)
        side, flags = shown or side, (*flags, *more)
    if item.get("start_side") not in (None, item.get("side", "RIGHT")):
        flags = (*flags, "two-sided")
        start = None
    return draft(
        context,
        body=body,
        path=item.get("path"),
        start=start,
        end=end,
        side=side,
        suggestion=suggestion,
        level="file" if item.get("subject_type") == "file" else None,
        flags=flags,
    )


def _by_position(
    item: Mapping[str, Any], context: ParseContext
) -> tuple[int | None, Side | None, tuple[str, ...]]:
    """Place a comment by the hunk that it comes with, which ends at its line, or by its position in the diff.

    Returns line, side and flags: ``position-unknown`` where neither has such a line.
    """
    position, original = item.get("position"), item.get("original_position")
    flags = ("outdated",) if position is None and original is not None else ()
    found: Mapping[Side, int] = {}
    if isinstance(item.get("diff_hunk"), str) and item["diff_hunk"].startswith("@@"):
        found = numbered(item["diff_hunk"].rstrip("\n"))[-1]
    elif position is None and original is None:
        return None, None, ()
    if not found:
        number = line_number(original if position is None else position)
        rows = context.positions.get(str(item.get("path")), ())
        found = rows[number] if number is not None and number < len(rows) else {}
    if not found:
        return None, None, (*flags, "position-unknown")
    # A context line is on both sides, and on the right one unless the comment says otherwise.
    left = "right" not in found or (item.get("side") == "LEFT" and "left" in found)
    side: Side = "left" if left else "right"
    return found[side], side, flags
