"""Numbers as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

    from .intervals import Interval


def percent(value: Fraction | None) -> str:
    """A rate in per cent with one decimal, "-" if there is none."""
    return "-" if value is None else f"{100 * float(value):.1f}"


def span(interval: Interval | None) -> str:
    """An interval in per cent: " 3.1 - 38.9", limits aligned up to 99.9."""
    return "   -" if interval is None else f"{100 * interval.low:4.1f} - {100 * interval.high:4.1f}"


def many(count: int, noun: str) -> str:
    """``1 check``, ``2 checks``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
