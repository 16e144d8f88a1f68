"""The pytest11 entry point: options, the marker, the hooks; the rest is registered only when asked for.

pytest loads this module in every run on the machine. A run that does not mention us pays for three options,
the marker and the hooks' names: ``bench/plugin_load.py`` measures that.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

#: Any of these turns the benchmark on; they exist in every run, the other options where they may be used.
_SWITCHES: dict[str, dict[str, str]] = {
    "reviewer": {},
    "replay": {},
    "resume": {"nargs": "?", "const": "latest"},
}
_HELP = ("-h", "--help")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add all options if this run may use them, else the switches alone."""
    if _mentioned([*sys.argv, os.environ.get("PYTEST_ADDOPTS", "")]):
        from .register import add_hooks, add_options

        add_options(parser)
        add_hooks(pluginmanager)
        return
    group = parser.getgroup("crbench")
    for name, attributes in _SWITCHES.items():
        group.addoption(f"--crbench-{name}", dest=f"crbench_{name}", default=None, **attributes)
        parser.addini(f"crbench_{name}", "", default=None)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """Add what is missing where an ini file, ``pytest.main``, a controller or a conftest file uses it."""
    manager = early_config.pluginmanager
    switched_on = any(getattr(early_config.option, f"crbench_{name}", None) for name in _SWITCHES)
    if hasattr(early_config.known_args_namespace, "crbench_agent"):
        pass  # all of it is there
    elif switched_on or _mentioned([*args, _ini_text(early_config)]):
        from .register import add_hooks, add_options

        add_options(parser, present=_SWITCHES)
        add_hooks(manager)
    result = yield
    # A vendor's conftest may implement our hooks in any run; pytest refuses hooks that nobody specified.
    if any(name.startswith("pytest_crbench_") for name in vars(manager.hook)):
        from .register import add_hooks

        add_hooks(manager)
    return result


def _ini_text(config: pytest.Config) -> str:
    """The ini file as it is: pytest offers what it parsed only for options that are known already."""
    if config.inipath is None:
        return ""
    return config.inipath.read_text(encoding="utf-8", errors="replace")


def _mentioned(words: Iterable[str]) -> bool:
    return any("crbench" in word or word in _HELP for word in words)


def pytest_configure(config: pytest.Config) -> None:
    """Register the rest of the plugin if this run asks for it."""
    config.addinivalue_line(
        "markers",
        "crbench(kind=None, category=None, language=None): a check of a code-review benchmark; "
        "select by -m 'crbench(category=\"Security\")'",
    )
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
