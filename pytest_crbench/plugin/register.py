"""All options on pytest's command line with their ini twins, and our hooks, for runs that may use them."""

from __future__ import annotations

import inspect
import itertools
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..run.options import IMPLIED, OPTIONS, ini_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_ACTIONS: dict[str, dict[str, object]] = {
    "value": {"action": "store"},
    "list": {"action": "append"},
    "flag": {"action": "store_true"},
    "optional": {"action": "store", "nargs": "?"},
}


@dataclass(frozen=True)
class Typed:
    """What the user wrote for this one run: on the command line, in a file named there, in PYTEST_ADDOPTS.

    ``options`` are names of ours, ``paths`` the paths and node ids. What ``addopts`` of the ini file adds to
    every run is in neither.
    """

    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


TYPED = pytest.StashKey[Typed]()


def note_typed(config: pytest.Config, parser: pytest.Parser) -> None:
    """Note what the user wrote for this run, once the options of conftest files are known too."""
    found = _typed(config, parser)
    overridden = {text.split("=", 1)[0] for text in found.override_ini or ()}
    names = (
        name
        for name, *_ in OPTIONS
        if getattr(found, ini_name(name), None) is not None or ini_name(name) in overridden
    )
    config.stash[TYPED] = Typed(tuple(names), tuple(found.file_or_dir))


def holds_everything(config: pytest.Config, path: Path) -> bool:
    """Whether a path is the root folder or above it (``pytest .``): naming it chooses nothing."""
    return config.rootpath.resolve().is_relative_to(path.resolve())


def add_options(parser: pytest.Parser) -> None:
    """Add every option."""
    group = parser.getgroup("crbench", "code-review benchmark (pytest-crbench)")
    for name, kind, metavar, text in OPTIONS:
        attributes: dict[str, object] = {**_ACTIONS[kind], "default": None, "dest": ini_name(name)}
        if kind != "flag":
            attributes["metavar"] = metavar
        if kind == "optional":
            attributes["const"] = IMPLIED[name]
        group.addoption(f"--crbench-{name}", help=text.replace("%", "%%"), **attributes)
        ini_type = "linelist" if kind == "list" else "string"
        parser.addini(ini_name(name), text, type=ini_type, default=None)  # type: ignore[arg-type]


def add_hooks(manager: pytest.PytestPluginManager) -> None:
    """Make our hooks known, once."""
    from . import hookspecs

    known = getattr(manager.hook, "pytest_crbench_select", None)
    if known is None or known.spec is None:
        manager.add_hookspecs(hookspecs)


def _typed(config: pytest.Config, parser: pytest.Parser) -> argparse.Namespace:
    return parser.parse_known_args(_words(config))


def _words(config: pytest.Config) -> list[str]:
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, config.invocation_params.args)]


def check_place(config: pytest.Config, parser: pytest.Parser) -> None:
    """Refuse to go on where the value of an option, of whatever plugin, was taken for a path of tests.

    pytest looks for its ini file before it knows the options of plugins: after ``--crbench-run-dir /data`` it
    looks beside ``/data``, and misses the ini file that asks for the gate. Where neither the one file nor the
    command line has anything of ours, that is none of our business.

    Raises:
        pytest.UsageError: naming the option.
    """
    from _pytest.config.findpaths import determine_setup

    typed = _typed(config, parser)
    given: dict[str, Any] = {
        "inifile": typed.inifilename,
        "override_ini": typed.override_ini,
        "args": typed.file_or_dir,
        "rootdir_cmd_arg": typed.rootdir or None,
        "invocation_dir": config.invocation_params.dir,
    }
    # pytest 8 does not take all of these.
    wanted = inspect.signature(determine_setup).parameters
    rootdir, inipath, keys, *_ = determine_setup(**{name: given[name] for name in wanted})
    if (rootdir, inipath) == (config.rootpath, config.inipath):
        return
    if not any("crbench" in word for word in (*_words(config), *keys, *map(str, keys.values()))):
        return
    raise pytest.UsageError(
        f"crbench: pytest took the value of an option for a path of tests, and so took "
        f"{_place(config.rootpath, config.inipath)}, not {_place(rootdir, inipath)}: write "
        f"{_joined(_words(config), typed.file_or_dir)}, with = and no space"
    )


def _place(rootdir: Path, inipath: Path | None) -> str:
    return f"the ini file {inipath}" if inipath else f"the root folder {rootdir} without an ini file"


def _joined(words: Sequence[str], paths: Sequence[str]) -> str:
    """The first option whose value is an existing path behind a space, as it should be written."""
    for option, value in itertools.pairwise(words):
        apart = option.startswith("--") and "=" not in option and not value.startswith("-")
        if apart and value not in paths and Path(value.partition("::")[0]).exists():
            return f"{option}={value}"
    return "--OPTION=PATH"
