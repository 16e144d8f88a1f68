"""What stages used up, as plain numbers by name: tokens, calls, cost, seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def added(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of two usages, name by name."""
    return {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
