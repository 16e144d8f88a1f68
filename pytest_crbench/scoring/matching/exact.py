"""Two comments say the same if they are the same text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .meaning import Compared, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .meaning import Pair


class ExactMeaning:
    """Compares texts: white space and suggestion blocks do not count, unless a comment is nothing else."""

    fingerprint: Mapping[str, Any] = {"meaning": "exact", "version": 1}

    def same(self, pairs: Sequence[Pair]) -> Compared:
        """Answer for each pair; never abstains. A comment that says nothing is like no other."""
        return Compared(tuple("yes" if equal(*texts) else "no" for texts in texts_of(pairs)))


def equal(one: str, other: str) -> bool:
    """Whether two comments are equal by what they say (see `meaning.said`)."""
    return bool(one) and one == other
