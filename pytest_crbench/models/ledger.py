"""The budget of a whole run: one file for all its workers, looked at before each call.

A limit per process does not bound a run of many (SWE-agent#979).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..host.files import locked, write_json
from ..text import plainjson
from .usage import Price, Usage

if TYPE_CHECKING:
    from pathlib import Path


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
            raise _exceeded(f"{spent.tokens} tokens", "--crbench-max-total-tokens", self.total_tokens)
        if self.total_cost is not None:
            cost = self._cost(value)
            if cost >= self.total_cost:
                raise _exceeded(f"{cost:.4f} of cost", "--crbench-max-total-cost", self.total_cost)

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
