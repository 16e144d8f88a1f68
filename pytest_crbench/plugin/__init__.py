"""The pytest11 entry point; the rest is registered only in runs that use an option of ours.

Loaded in every run on the machine, and read piece by piece by pytest: kept short. ``bench/plugin_load.py``.
"""

import os.path
from itertools import pairwise
from typing import Any

import pytest

#: What turns the benchmark on.
SWITCHES = ("reviewer", "replay", "resume")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):  # type: ignore[no-untyped-def]
    """Add all options if this run uses one, else the switches alone: a conftest file may ask for them.

    Not in ``pytest_addoption``: with their ini twins they would cost every run on the machine 0.5 ms.
    """
    used = _used(early_config, args)
    if used:
        from .switched import register

        register(early_config, parser, args)
    else:
        group = parser.getgroup("crbench")
        for name in SWITCHES:
            group.addoption(f"--crbench-{name}", dest=f"crbench_{name}")
            parser.addini(f"crbench_{name}", "", default=None)
    if used or _apart(args):
        from .given import check_place

        check_place(early_config, parser)
    result = yield
    if any(name.startswith("pytest_crbench_") for name in vars(early_config.pluginmanager.hook)):
        from .given import add_hooks

        add_hooks(early_config.pluginmanager)
    if used:
        from .given import note_typed

        note_typed(early_config, parser)
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, under ``--strict-markers`` too."""
    config.addinivalue_line(
        "markers", "crbench(kind, category, language): a check of a code-review benchmark"
    )
    if _used(config, ()) and not config.pluginmanager.has_plugin("crbench-switched"):
        raise pytest.UsageError(
            "crbench: the plugin was loaded too late to read its keys in the ini file: load it by "
            "-p pytest_crbench.plugin, not by pytest_plugins of a conftest file"
        )


def _used(config: Any, args: Any) -> bool:
    """Whether an option of ours is given, or may be: a file of arguments is not opened here.

    ``args`` holds those of ``addopts`` and PYTEST_ADDOPTS too, each option as argparse will take it.
    """
    known = config.known_args_namespace
    # `Config.inicfg` is deprecated in pytest 9; in 8 there is nothing else, and -o is not in it.
    ini = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    return bool(
        known.help
        or any(word.startswith(("--crbench-", "@")) for word in args)
        or any(key.startswith("crbench_") for key in (*ini, *(known.override_ini or ())))
    )


def _apart(args: list[str]) -> bool:
    """Whether a path stands behind an option: pytest, not knowing the option, took it for one of tests."""
    exists = os.path.exists  # unlike that of a Path, it takes the longest -k
    return any(
        option.startswith("-") and "=" not in option and value[:1] not in ("", "-") and exists(value)
        for option, value in pairwise(args)
    )
