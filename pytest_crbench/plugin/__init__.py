"""The pytest11 entry point; the rest is registered only when asked for.

Loaded in every run on the machine, and read piece by piece by pytest: kept short. ``bench/plugin_load.py``.
"""

import os.path
from itertools import pairwise
from typing import Any

import pytest

_SWITCHES = ("reviewer", "replay", "resume")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):  # type: ignore[no-untyped-def]
    """Add all options if this run may use one, else the switches alone: a conftest file may ask for them.

    Not in ``pytest_addoption``: only here are the arguments known, however pytest was started.
    """
    mentioned = _mentioned(early_config, args)
    if mentioned:
        from .switched import register

        register(early_config, parser, args)
    else:
        if _apart(args):
            from .register import check_place

            check_place(early_config, parser)
        group = parser.getgroup("crbench")
        for name in _SWITCHES:
            group.addoption(f"--crbench-{name}", dest=f"crbench_{name}")
            parser.addini(f"crbench_{name}", "", default=None)
    result = yield
    if any(name.startswith("pytest_crbench_") for name in vars(early_config.pluginmanager.hook)):
        from .register import add_hooks

        add_hooks(early_config.pluginmanager)
    if mentioned:
        from .register import note_typed

        note_typed(early_config, parser)
    return result


def _mentioned(config: Any, args: list[str]) -> bool:
    """Whether a key of the ini file or an argument is ours, or may be: a file of arguments is not opened."""
    return bool(
        config.known_args_namespace.help
        or any("crbench" in word or word.startswith("@") for word in args)
        or any(key.startswith("crbench_") for key in ini_of(config))
    )


def _apart(args: list[str]) -> bool:
    """Whether a path stands behind an option: pytest, not knowing the option, took it for one of tests."""
    exists = os.path.exists  # unlike that of a Path, it takes the longest -k
    return any(
        option.startswith("-") and "=" not in option and value[:1] not in ("", "-") and exists(value)
        for option, value in pairwise(args)
    )


def ini_of(config: Any) -> Any:
    """Return the keys and values of the ini file, as pytest keeps them."""
    # `Config.inicfg` is deprecated in pytest 9; in 8 there is nothing else.
    return config._inicfg if hasattr(config, "_inicfg") else config.inicfg


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, under ``--strict-markers`` too."""
    config.addinivalue_line(
        "markers", "crbench(kind, category, language): a check of a code-review benchmark"
    )
    if any(key.startswith("crbench_") for key in ini_of(config)) and not config.pluginmanager.has_plugin(
        "crbench-switched"
    ):
        raise pytest.UsageError(
            "crbench: the plugin was loaded too late to read its keys in the ini file: load it by "
            "-p pytest_crbench.plugin, not by pytest_plugins of a conftest file"
        )
