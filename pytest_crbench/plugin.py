"""The pytest11 entry point: options, the marker, the hooks; the rest is registered only when asked for.

pytest loads this module in every run on the machine; it imports nothing but the table of options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .options import IMPLIED, OPTIONS, ini_name

if TYPE_CHECKING:
    from collections.abc import Generator

_ACTIONS: dict[str, dict[str, object]] = {
    "value": {"action": "store"},
    "list": {"action": "append"},
    "flag": {"action": "store_true"},
    "optional": {"action": "store", "nargs": "?"},
}
#: Any of these turns the benchmark on.
_SWITCHES = ("reviewer", "replay", "resume")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their ini twins."""
    group = parser.getgroup("crbench", "code-review benchmark (pytest-crbench)")
    for name, kind, metavar, text in OPTIONS:
        attributes: dict[str, object] = {**_ACTIONS[kind], "default": None, "dest": ini_name(name)}
        if kind != "flag":
            attributes["metavar"] = metavar
        if kind == "optional":
            attributes["const"] = IMPLIED[name]
        group.addoption(f"--crbench-{name}", help=text, **attributes)
        ini_type = "linelist" if kind == "list" else "string"
        parser.addini(ini_name(name), text, type=ini_type, default=None)  # type: ignore[arg-type]


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Make the hooks known, so that a vendor's conftest may implement them in any run."""
    from . import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register the rest of the plugin if this run asks for it."""
    config.addinivalue_line(
        "markers",
        "crbench(kind=None, category=None, language=None): a check of a code-review benchmark; "
        "select by -m 'crbench(category=\"Security\")'",
    )
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
    return any(config.getoption(ini_name(name)) or config.getini(ini_name(name)) for name in _SWITCHES)
