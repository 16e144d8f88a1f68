"""Runners of hidden tests: what an instance's ``runner`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.runner import Runner


def runners() -> dict[str, Runner]:
    """Return every runner, by the name that instances use."""
    from .pytest_runner import PytestRunner

    return {"pytest": PytestRunner()}
