"""Whether two comments say the same: the protocol of all ways to compare them, and the exact one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ...text.suggestion_blocks import suggestion_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...core.model import ReviewComment

Answer = Literal["yes", "no", "abstain"]


class Pair(NamedTuple):
    """A reference and a comment at its place."""

    reference: ReviewComment
    comment: ReviewComment


@dataclass(frozen=True)
class Compared:
    """One answer for each pair, and what was used up for them."""

    answers: tuple[Answer, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)


class Meaning(Protocol):
    """A way to compare comments."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides its answers, as plain JSON."""

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair whether both say the same.

        An answer depends on the two comments alone, not on the other pairs.

        Raises:
            InfraError: if the pairs could not be compared. That is never a "no".
        """


def prose(comment: ReviewComment) -> str:
    """Return what a comment says in words: its body without suggestion blocks, white space as one blank."""
    body = comment.body.replace("\r\n", "\n")
    if "suggestion" in body:
        lines = body.split("\n")
        for first, last, _ in reversed(suggestion_blocks(body)):
            del lines[first : last + 1]
        body = "\n".join(lines)
    return " ".join(body.split())


def replacement(comment: ReviewComment) -> str:
    """Return the code that a comment suggests, from its own field or its body; "" if none."""
    if comment.suggestion is not None:
        return comment.suggestion
    body = comment.body
    return "".join(text for _, _, text in suggestion_blocks(body)) if "suggestion" in body else ""


def said(comment: ReviewComment) -> str:
    """Return the text that stands for a comment: its words, or its suggestion where it has no words.

    Two comments with the same text say the same; "" is a comment that says nothing.
    """
    return prose(comment) or " ".join(replacement(comment).split())


def texts_of(pairs: Sequence[Pair], text_of: Callable[[ReviewComment], str] = said) -> list[tuple[str, str]]:
    """Return both texts of each pair; of a comment that is in many pairs, its text is made once."""
    texts: dict[int, str] = {}
    for pair in pairs:
        for comment in pair:
            if id(comment) not in texts:
                texts[id(comment)] = text_of(comment)
    return [(texts[id(pair.reference)], texts[id(pair.comment)]) for pair in pairs]


def in_full(comment: ReviewComment) -> str:
    """Return all that a comment says: its body, and the suggestion where the body does not show it."""
    body = comment.body.replace("\r\n", "\n").strip()
    if comment.suggestion is None or (body and "suggestion" in body and suggestion_blocks(body)):
        return body
    shown = comment.suggestion.rstrip("\n") or "(delete these lines)"
    return f"{body}\n\nSuggested replacement:\n{shown}".strip()


class ExactMeaning:
    """Compares texts: white space and suggestion blocks do not count, unless a comment is nothing else."""

    fingerprint: Mapping[str, Any] = {"meaning": "exact", "version": 1}

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair; never abstains. A comment that says nothing is like no other."""
        return Compared(tuple("yes" if equal(*texts) else "no" for texts in texts_of(pairs)))


def equal(one: str, other: str) -> bool:
    """Whether two comments are equal by what they say (see `meaning.said`)."""
    return bool(one) and one == other
