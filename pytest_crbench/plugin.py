"""The pytest11 entry point; the rest is registered only when asked for.

Loaded in every run on the machine, and read piece by piece by pytest: kept short. ``bench/plugin_load.py``.
"""

import os
import sys

import pytest

_SWITCHES = ("reviewer", "replay", "resume")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add all options if this run may use them, else the switches alone."""
    if _mentioned([*sys.argv, os.environ.get("PYTEST_ADDOPTS", "")]):
        from .register import register

        register(parser, pluginmanager)
        return
    group = parser.getgroup("crbench")
    for name in _SWITCHES:
        group.addoption(f"--crbench-{name}", dest=f"crbench_{name}", nargs="?", const="latest")
        parser.addini(f"crbench_{name}", "", default=None)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config, parser, args):  # type: ignore[no-untyped-def]
    """Add what is missing where an ini file, ``pytest.main`` or a conftest file uses it."""
    path = early_config.inipath
    text = path.read_text("utf-8", "replace") if path else ""
    if not hasattr(early_config.known_args_namespace, "crbench_agent") and _mentioned([*args, text]):
        from .register import register

        register(parser, early_config.pluginmanager, _SWITCHES)
    result = yield
    if any(name.startswith("pytest_crbench_") for name in vars(early_config.pluginmanager.hook)):
        from .register import add_hooks

        add_hooks(early_config.pluginmanager)
    return result


def _mentioned(words: list[str]) -> bool:
    return any("crbench" in word or word in ("-h", "--help") for word in words)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, under ``--strict-markers`` too."""
    config.addinivalue_line(
        "markers", "crbench(kind, category, language): a check of a code-review benchmark"
    )
