"""Registered in runs that use an option of ours: decides whether the benchmark runs (docs/gating.md)."""

from __future__ import annotations

import copy
import difflib
import sys
from typing import TYPE_CHECKING

import pytest

from ..run.options import FOLDED_IN, RENAMED
from ..text.printable import printable
from . import SWITCHES
from .given import TYPED, Typed, add_hooks, holds_everything, ini_values
from .options import add_options, ini_name, options

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

#: Options that ask for a gate, or for another exit status.
_GATE = ("fail-under", "fail-over", "min-coverage", "fail-if-regressed", "fail-on-miss")
#: Options of pytest that print something and run nothing.
_SHOWS = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")


def register(config: pytest.Config, parser: pytest.Parser, args: Sequence[str]) -> None:
    """Add all options, and register what looks whether the benchmark is switched on."""
    add_options(parser)
    for key in map(ini_name, (*FOLDED_IN, *RENAMED)):
        parser.addini(key, "", default=None)
    add_hooks(config.pluginmanager)
    config.pluginmanager.register(sys.modules[__name__], "crbench-switched")
    # pytest has read the arguments before, and may have taken the value of an option of ours for a path.
    known = parser.parse_known_args(args, namespace=copy.copy(config.option))
    ours = {name: value for name, value in vars(known).items() if name.startswith("crbench_")}
    vars(config.known_args_namespace).update(file_or_dir=known.file_or_dir, **ours)


def pytest_configure(config: pytest.Config) -> None:
    """Register the rest of the plugin if this run asks for it; refuse what would skip the gate silently."""
    _check_keys(config)
    for name, *_ in options():
        # A shell variable that is not set: running something else, without the gate, would look like success.
        if config.getoption(ini_name(name)) in ("", [""]):
            raise pytest.UsageError(f"crbench: --crbench-{name}= is empty: give it a value, or leave it out")
    if config.getoption("crbench_contract"):
        from .activate import activate_contracts

        activate_contracts(config, _typed(config).paths)
    elif _active(config):
        from .activate import activate

        activate(config)
    elif _on(config):
        from .idle import Dormant

        config.pluginmanager.register(Dormant(), "crbench-dormant")
    elif not any(getattr(config.option, name, False) for name in _SHOWS):
        _check_off(config)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Distribute by worksteal where ``-n`` comes without ``--dist``: it recovers from a worker's crash.

    pytest-xdist turns ``--dist=no`` into ``load`` in its own implementation, which this one wraps.
    """
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no" and _active(config):
        config.option.dist = "worksteal"
    return (yield)


def _on(config: pytest.Config) -> bool:
    ini = ini_values(config)
    return any(config.getoption(f"crbench_{name}") or ini.get(f"crbench_{name}") for name in SWITCHES)


def _active(config: pytest.Config) -> bool:
    return (
        _on(config)
        and not config.getoption("crbench_contract")
        and (bool(_typed(config).options) or not _own_tests_only(config))
    )


def _typed(config: pytest.Config) -> Typed:
    return config.stash.get(TYPED, Typed())


def _check_keys(config: pytest.Config) -> None:
    known = [ini_name(name) for name, *_ in options()]
    for key in ini_values(config):
        try:
            config.getini(key)
        except ValueError:  # nobody has registered it
            near = difflib.get_close_matches(key.replace("-", "_"), known, 1)
            meant = f". Did you mean {near[0]}?" if near else "; docs/options.md lists the keys"
            raise pytest.UsageError(
                f"crbench: {_where(config)}: unknown key {printable(key, 80)}{meant}"
            ) from None
        except (TypeError, pytest.UsageError):
            continue  # a number in TOML, see `given.ini_values`


def _check_off(config: pytest.Config) -> None:
    typed = _typed(config)
    switch = "--crbench-reviewer=SPEC (or --crbench-replay=RUN, --crbench-resume)"
    if typed.options:
        raise pytest.UsageError(
            f"crbench: --crbench-{typed.options[0]} is given, but no reviewer, so no benchmark would run: "
            f"add {switch}, or leave it out"
        )
    if _own_tests_only(config):
        return
    ini = ini_values(config)
    for name in _GATE:
        found = config.getoption(ini_name(name)) or ini.get(ini_name(name))
        if found not in (None, [], "", False, "false"):
            raise pytest.UsageError(
                f"crbench: {_where(config)}: {ini_name(name)} asks for a gate, but no reviewer is named, so "
                f"no benchmark would run: add crbench_reviewer = SPEC, give {switch}, or name the paths of "
                "your own tests"
            )


def _own_tests_only(config: pytest.Config) -> bool:
    """Whether paths are named, and all are of the user's own tests. Opens no dataset: takes milliseconds."""
    paths = _typed(config).paths
    base = config.invocation_params.dir
    named = config.getoption("crbench_dataset") or ini_values(config).get("crbench_dataset") or ()
    # A kind may stand before the path, and a folder may have a colon in its name.
    places = {part for spec in named for part in (spec, spec.partition(":")[2] or spec)}
    datasets = {(base / place).resolve() for place in places}
    return bool(paths) and all(_is_own(config, argument, datasets) for argument in paths)


def _is_own(config: pytest.Config, argument: str, datasets: set[Path]) -> bool:
    head, names, _ = argument.partition("::")
    base = config.invocation_params.dir
    path = base / head
    if config.option.pyargs and "." in head and head.replace(".", "").isidentifier() and not path.exists():
        return True  # a module
    if not path.exists() or path.resolve() in datasets or holds_everything(config, path):
        return False
    # A folder cannot be followed by "::": such an argument is the node id of a benchmark.
    return not path.is_dir() or not (
        names or (path / "dataset.toml").exists() or (path / "instance.toml").exists()
    )


def _where(config: pytest.Config) -> str:
    return str(config.inipath or "the command line")
