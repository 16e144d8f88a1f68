"""What is odd about AACR-Bench's data, and what is done about it; docs/aacr.md has the same table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..text.suggestion_blocks import suggestion_blocks
from .aacr import read
from .native import noted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.datasets import Note
    from .aacr import Samples
    from .aacr_schema import CommentEntry, PullRequestEntry

    Said = tuple[PullRequestEntry, CommentEntry]

_SUGGESTION = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*suggestion\b", re.MULTILINE)


def notes(path: Path) -> list[Note]:
    """Return what is odd about the data, from its files alone.

    Raises:
        UsageError: if they cannot be read.
    """
    samples = read(path)
    entries = samples.measured()
    said = [(entry, comment) for entry in entries for comment in entry.comments]
    return [
        *_at_places(said),
        *_of_texts(said, samples),
        *_of_origin(said, entries),
        *noted(
            "no-reference",
            "the pull request has rejected comments only, and nothing to find: it is left out",
            [f"{e.id} ({len(e.comments)} rejected)" for e in samples.left_out()],
        ),
        *noted("key-not-read", "a key that is not known", _unknown(samples)),
    ]


def _at_places(said: list[Said]) -> list[Note]:
    return [
        *noted(
            "range-reversed",
            "the last line comes first: read in order",
            _where(said, lambda _e, c: c.from_line > c.to_line),
        ),
        *noted(
            "place-shared",
            "an earlier comment of the pull request is at the same place; each is a check",
            _repeated(said, lambda e, c: (e.id, c.place)),
        ),
        *noted("side-left", "about lines of base: matched on that side", _where(said, _is_left)),
    ]


def _of_texts(said: list[Said], samples: Samples) -> list[Note]:
    texts = {(entry.id.casefold(), _text(comment)) for entry, comment in said}
    rejected = [(entry, comment) for entry in samples.negatives for comment in entry.comments]
    return [
        *noted(
            "note-repeated",
            "an earlier comment has the same text, at another place; each is a check",
            _repeated(said, lambda _e, c: _text(c)),
        ),
        *noted(
            "note-in-both",
            "a rejected comment has the text of a reference of the same pull request; both stay",
            _where(rejected, lambda e, c: (e.id.casefold(), _text(c)) in texts),
        ),
        *noted(
            "trailing-space",
            "white space at the end of the text is taken off",
            _where(said, lambda _e, c: c.note != c.note.rstrip()),
        ),
        *noted(
            "suggestion-block",
            "a suggested change stays part of the text",
            _where(said, lambda _e, c: _begins_suggestion(c)),
        ),
        *noted(
            "suggestion-cut-off",
            "a suggested change that does not end; its lines count as words",
            _where(said, lambda _e, c: _begins_suggestion(c) and not suggestion_blocks(c.note)),
        ),
    ]


def _of_origin(said: list[Said], entries: list[PullRequestEntry]) -> list[Note]:
    share = round(100 * sum(c.is_ai_comment for _e, c in said) / max(len(said), 1))
    return [
        *noted(
            "written-by-model",
            f"{share} % of the references; the facet origin tells them from people's",
            _where(said, lambda _e, c: c.is_ai_comment),
        ),
        *noted(
            "no-human-comment",
            "every reference of the pull request was written by a model",
            [e.id for e in entries if all(c.is_ai_comment for c in e.comments)],
        ),
    ]


def _begins_suggestion(comment: CommentEntry) -> bool:
    return _SUGGESTION.search(comment.note) is not None


def _is_left(_entry: PullRequestEntry, comment: CommentEntry) -> bool:
    return comment.side == "left"


def _text(comment: CommentEntry) -> str:
    return " ".join(comment.note.split())


def _where(said: list[Said], odd: Callable[[PullRequestEntry, CommentEntry], bool]) -> list[str]:
    return [_place(entry, comment) for entry, comment in said if odd(entry, comment)]


def _repeated(said: list[Said], key: Callable[[PullRequestEntry, CommentEntry], object]) -> list[str]:
    seen: set[object] = set()
    found = []
    for entry, comment in said:
        name = key(entry, comment)
        if name in seen:
            found.append(_place(entry, comment))
        seen.add(name)
    return found


def _place(entry: PullRequestEntry, comment: CommentEntry) -> str:
    """Say where a comment is, its lines in the order of the file."""
    return f"{entry.id}: {comment.path}:{comment.from_line}-{comment.to_line}"


def _unknown(samples: Samples) -> list[str]:
    entries = (*samples.positives, *samples.negatives)
    known = {"category"}  # what kind of change it is
    keys = {key for entry in entries for key in entry.model_extra or ()} - known
    keys |= {f"comments.{key}" for e in entries for c in e.comments for key in c.model_extra or ()}
    return sorted(keys)
