"""Registered in runs that mention the benchmark: looks whether it is switched on, and if so activates it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .plugin import _SWITCHES

if TYPE_CHECKING:
    from collections.abc import Generator


def pytest_configure(config: pytest.Config) -> None:
    """Register the rest of the plugin if this run asks for it."""
    for name in _SWITCHES:
        # A shell variable that is not set: running something else, without the gate, would look like success.
        if config.getoption(f"crbench_{name}") == "":
            raise pytest.UsageError(f"crbench: --crbench-{name}= is empty: give it a value, or leave it out")
    if _wanted(config):
        from .activate import activate

        activate(config)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Distribute by worksteal where ``-n`` comes without ``--dist``: it recovers from a worker's crash.

    pytest-xdist turns ``--dist=no`` into ``load`` in its own implementation, which this one wraps.
    """
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no" and _wanted(config):
        config.option.dist = "worksteal"
    return (yield)


def _wanted(config: pytest.Config) -> bool:
    names = [f"crbench_{name}" for name in _SWITCHES]
    return any(config.getoption(name) or config.getini(name) for name in names)
