"""What the user gave for this run: options typed, keys of the ini file, and the place that pytest took."""

from __future__ import annotations

import inspect
import itertools
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..run.options import FOLDED_IN, RENAMED
from .options import ini_name, options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_LISTS = {ini_name(name) for name, kind, *_ in options() if kind in ("list", "folded")}


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
        for name in (*(option for option, *_ in options()), *FOLDED_IN)
        if getattr(found, ini_name(name), None) is not None or ini_name(name) in overridden
    )
    config.stash[TYPED] = Typed(tuple(names), tuple(found.file_or_dir))


def former_names(config: pytest.Config) -> tuple[str, ...]:
    """Return the options that are given under a name that they had before, in command line and ini file."""
    keys = _ini_keys(config)
    in_ini = (name for name in (*FOLDED_IN, *RENAMED) if ini_name(name) in keys)
    return tuple(dict.fromkeys((*(config.getoption("crbench_former", None) or ()), *in_ini)))


def ini_values(config: pytest.Config) -> dict[str, Any]:
    """Return the keys that look like ours, with values: text, bool, number, or a list for a list option.

    What ``-o`` overrides is overridden. pytest's own reading refuses numbers for options of text.
    """
    values = {key: _read(key, value) for key, value in _ini_keys(config).items()}
    for former, name in RENAMED.items():
        if ini_name(former) in values:
            values.setdefault(ini_name(name), values.pop(ini_name(former)))
    return values


def _ini_keys(config: Any) -> dict[str, Any]:
    # `Config.inicfg` is deprecated in pytest 9, which wraps a value with its origin; 8 has nothing else, and
    # applies overrides only as it reads a value.
    ini = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    values = {key: getattr(value, "value", value) for key, value in ini.items()}
    values |= dict(text.split("=", 1) for text in config.known_args_namespace.override_ini or ())
    return {key: value for key, value in values.items() if key.startswith("crbench_")}


def _read(key: str, value: Any) -> Any:
    if key not in _LISTS:
        return value
    items = value.splitlines() if isinstance(value, str) else value if isinstance(value, list) else [value]
    return [text for item in items if (text := str(item).strip())]


def holds_everything(config: pytest.Config, path: Path) -> bool:
    """Whether a path is the root folder or above it (``pytest .``): naming it chooses nothing."""
    return config.rootpath.resolve().is_relative_to(path.resolve())


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
    addopts: Any = getattr(keys.get("addopts"), "value", keys.get("addopts")) or ()
    always = parser.parse_known_args(shlex.split(addopts) if isinstance(addopts, str) else addopts)
    if not (_gives(typed) or _gives(always) or any(key.startswith("crbench_") for key in keys)):
        return
    raise pytest.UsageError(
        f"crbench: pytest took the value of an option for a path of tests, and so took "
        f"{_place(config.rootpath, config.inipath)}, not {_place(rootdir, inipath)}: write "
        f"{_joined(_words(config), typed.file_or_dir)}, with = and no space"
    )


def _gives(namespace: argparse.Namespace) -> bool:
    return any(name.startswith("crbench_") and value is not None for name, value in vars(namespace).items())


def _place(rootdir: Path, inipath: Path | None) -> str:
    return f"the ini file {inipath}" if inipath else f"the root folder {rootdir} without an ini file"


def _joined(words: Sequence[str], paths: Sequence[str]) -> str:
    """The first option whose value is an existing path behind a space, as it should be written."""
    for option, value in itertools.pairwise(words):
        apart = option.startswith("--") and "=" not in option and not value.startswith("-")
        if apart and value not in paths and Path(value.partition("::")[0]).exists():
            return f"{option}={value}"
    return "--OPTION=PATH"
