"""Hooks that a vendor's conftest.py or plugin can implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Instance


@pytest.hookspec
def pytest_crbench_select(config: pytest.Config, instances: list[Instance]) -> None:
    """Filter or reorder, in place, the instances of a dataset before they become items.

    Called in the controller and in every worker; it must do the same in each (no clock, no network, no
    random order), or pytest-xdist refuses the collection.
    """


@pytest.hookspec
def pytest_crbench_verdict(config: pytest.Config, row: dict[str, Any], review: dict[str, Any] | None) -> None:
    """Called in the controller for every verdict as it arrives.

    ``row`` is one of the ``verdicts`` of results.json, ``review`` that of its ``reviews`` which it names.
    """


@pytest.hookspec
def pytest_crbench_summary(config: pytest.Config, results: dict[str, Any]) -> Sequence[str] | None:
    """Called in the controller before the table is printed; returned lines are printed below it."""
