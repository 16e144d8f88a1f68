"""One condition of a gate, and numbers as its sentences show them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

Outcome = Literal["met", "not-met", "undecided", "none"]


@dataclass(frozen=True)
class Condition:
    """One condition of the gate and what became of it; ``text`` reads in the verdict line.

    ``lost`` are the checks (dataset, instance, id) that the baseline passed and this run did not.
    """

    label: str
    outcome: Outcome
    text: str
    lost: tuple[tuple[str, str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The condition as plain JSON."""
        lost = [dict(zip(("dataset", "instance", "check"), name, strict=True)) for name in self.lost]
        return {"label": self.label, "outcome": self.outcome, "text": self.text, "lost": lost}


def shown(value: Fraction, bound: Fraction | None = None) -> str:
    """Three decimals, or as many as it takes not to look like the other side of ``bound``."""
    for digits in range(3, 16):
        text = f"{float(value):.{digits}f}"
        if bound is None or _order(Fraction(text), bound) == _order(value, bound):
            return text
    # Equal to a bound that no decimals give, as a rate may be to a baseline's.
    return f"{float(value):.3f}" if value == bound else str(value)


def _order(a: Fraction, b: Fraction) -> int:
    return (a > b) - (a < b)
