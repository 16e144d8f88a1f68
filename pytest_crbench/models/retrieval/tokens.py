"""Words of code: identifiers, and their parts."""

from __future__ import annotations

import re
from functools import lru_cache

#: Raised when the same text would give other words.
VERSION = 1
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W\d_a-z]+(?![^\W\d_A-Z])|[^\W\d_]?[^\W\d_A-Z]+|\d+")
#: Characters; what is longer is no word (a digest, a key).
_LONGEST = 60


def words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case.

    An identifier of several parts (``parseHTTPHeader``, ``parse_http_header``) gives its parts and itself,
    without underscores, so that both spellings are one word. Single characters are no words.
    """
    return [word for found in _WORD.findall(text) for word in _parts(found)]


@lru_cache(maxsize=200_000)
def _parts(identifier: str) -> tuple[str, ...]:
    if len(identifier) > _LONGEST:
        return ()
    parts = [part.lower() for part in _PART.findall(identifier)]
    whole = identifier.replace("_", "").lower()
    kept = [part for part in parts if len(part) > 1]
    if len(parts) > 1 and len(whole) > 1:
        kept.append(whole)
    return tuple(kept)
