"""Tokens and cost of model calls, and the budget that all processes of a run share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UsageError
from ..host.files import locked, write_json
from ..text import plainjson
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
                f"--crbench-llm price={printable(text, 60)}: expected IN:OUT, the prices of a million prompt "
                "and of a million completion tokens, for example 0.25:2"
            )
        return cls(prompt, completion)

    def cost(self, usage: Usage) -> float:
        """Return what ``usage`` costs; tokens from the endpoint's cache count in full (an upper bound)."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


def _count(value: Any) -> int:
    """What is no number of tokens (infinity, an integer of a hundred digits) is not told."""
    return int(value) if isinstance(value, (int, float)) and 0 < value < _MOST else 0


@dataclass(frozen=True)
class Ledger:
    """Adds up the usage of all processes of a run in ``path``; a resumed run goes on from what is there.

    Calls that run at the same moment as the one that reaches the total are not recalled: a run may pass its
    total by the calls under way, one for each worker whose agent runs, several for one that matches.
    """

    path: Path
    total_tokens: int | None = None
    total_cost: float | None = None
    price: Price | None = None

    def check(self) -> None:
        """Let a call through if the run still has budget.

        Raises:
            InfraError: ``budget``, if a total is reached; ``ledger``, if the file cannot be read.
        """
        if self.total_tokens is None and self.total_cost is None:
            return
        value = self._read()
        spent = Usage.from_dict(value)
        if self.total_tokens is not None and spent.tokens >= self.total_tokens:
            raise _exceeded(f"{spent.tokens} tokens", "--crbench-llm max-total-tokens", self.total_tokens)
        if self.total_cost is not None:
            cost = self._cost(value)
            if cost >= self.total_cost:
                raise _exceeded(f"{cost:.4f} of cost", "--crbench-llm max-total-cost", self.total_cost)

    def add(self, usage: Usage, cost: float | None = None) -> None:
        """Add the usage of one call; ``cost`` counts where there is no price or no token to make one of.

        Raises:
            InfraError: if the file cannot be read or written.
        """
        with locked(self.path.with_name(f".{self.path.name}.lock"), log=lambda _line: None, what="ledger"):
            before = self._read()
            value: dict[str, Any] = (Usage.from_dict(before) + usage).as_dict()
            reported = _reported(before)
            if cost is not None and (self.price is None or not usage.tokens):
                reported += cost
            if reported:
                value["reported_cost"] = round(reported, 9)
            if self.price is not None or reported:
                value["cost"] = round(self._cost(value), 6)
            write_json(self.path, value)

    def spent(self) -> Usage:
        """Return what the run has used so far.

        Raises:
            InfraError: if the file is there and cannot be read: an unknown sum is not 0.
        """
        return Usage.from_dict(self._read())

    def _cost(self, value: dict[str, Any]) -> float:
        priced = self.price.cost(Usage.from_dict(value)) if self.price is not None else 0.0
        return priced + _reported(value)

    def _read(self) -> dict[str, Any]:
        try:
            value = plainjson.parse(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unreadable() from error
        if not isinstance(value, dict):
            raise self._unreadable()
        return value

    def _unreadable(self) -> InfraError:
        return InfraError(
            f"cannot read {self.path}, which holds what the run has used; delete it to count from 0 again",
            reason="ledger",
        )


def _reported(value: dict[str, Any]) -> float:
    cost = value.get("reported_cost", 0.0)
    return float(cost) if isinstance(cost, int | float) and 0 <= cost < float("inf") else 0.0


def _exceeded(spent: str, option: str, limit: float) -> InfraError:
    return InfraError(
        f"the run has used {spent}, its total is {option}={limit}: no further model call is made. "
        f"Raise {option} and finish the run with --crbench-resume --crbench-rerun-errors.",
        reason="budget",
    )
