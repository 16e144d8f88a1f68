"""What calls of a model use, and what that costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where an endpoint does not count, a token is taken to be four characters (OpenAI's rule of thumb).
_CHARACTERS_PER_TOKEN = 4
_MOST = 10**15
_DEAREST = 1e9


@dataclass(frozen=True)
class Usage:
    """Counts of calls and tokens; adds up with ``+``.

    ``cached_tokens`` are those of ``prompt_tokens`` that the endpoint had in its own cache.
    ``calls_from_cache`` were answered by ours. ``estimated_calls``: the endpoint gave no counts.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    calls_from_cache: int = 0
    estimated_calls: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def as_dict(self) -> dict[str, int]:
        """Return the counts as plain JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Usage:
        """Read what `as_dict` gave; what is missing counts as 0."""
        return cls(**{f.name: _count(value.get(f.name)) for f in fields(cls)})


class Meter:
    """Adds up what calls of several threads use."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._lock = Lock()

    def add(self, usage: Usage) -> None:
        """Add what one call used."""
        with self._lock:
            self.usage += usage


def from_response(usage: Any, *, prompt_characters: int, completion_characters: int) -> Usage:
    """Read the ``usage`` object of one response, or estimate it from the lengths if there is none."""
    if not isinstance(usage, dict) or not (
        _count(usage.get("prompt_tokens")) or _count(usage.get("completion_tokens"))
    ):
        return Usage(
            calls=1,
            prompt_tokens=-(-prompt_characters // _CHARACTERS_PER_TOKEN),
            completion_tokens=-(-completion_characters // _CHARACTERS_PER_TOKEN),
            estimated_calls=1,
        )
    details = usage.get("prompt_tokens_details")
    return Usage(
        calls=1,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
    )


@dataclass(frozen=True)
class Price:
    """Price of a million prompt tokens and of a million completion tokens, in one currency of the user's."""

    prompt: float
    completion: float

    @classmethod
    def parse(cls, text: str) -> Price:
        """Read ``IN:OUT``, for example ``0.25:2``.

        Raises:
            UsageError: if it is not two numbers of 0 or more.
        """
        try:
            prompt, completion = (float(part) for part in text.split(":"))
        except ValueError:
            prompt = completion = -1.0
        if not (0 <= prompt < _DEAREST and 0 <= completion < _DEAREST):
            raise UsageError(
                f"--crbench-price={printable(text, 60)}: expected IN:OUT, the prices of a million prompt and "
                "of a million completion tokens, for example 0.25:2"
            )
        return cls(prompt, completion)

    def cost(self, usage: Usage) -> float:
        """Return what ``usage`` costs; tokens from the endpoint's cache count in full (an upper bound)."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


def _count(value: Any) -> int:
    """What is no number of tokens (infinity, an integer of a hundred digits) is not told."""
    return int(value) if isinstance(value, (int, float)) and 0 < value < _MOST else 0
