"""All options on pytest's command line with their ini twins, and our hooks, for runs that may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import IMPLIED, OPTIONS, ini_name

if TYPE_CHECKING:
    from collections.abc import Collection

    import pytest

_ACTIONS: dict[str, dict[str, object]] = {
    "value": {"action": "store"},
    "list": {"action": "append"},
    "flag": {"action": "store_true"},
    "optional": {"action": "store", "nargs": "?"},
}


def register(
    parser: pytest.Parser, manager: pytest.PytestPluginManager, present: Collection[str] = ()
) -> None:
    """Add options (but those ``present``), hooks, and what looks whether the benchmark is switched on."""
    from . import switched

    add_options(parser, present)
    add_hooks(manager)
    if not manager.has_plugin("crbench-switched"):
        manager.register(switched, "crbench-switched")


def add_options(parser: pytest.Parser, present: Collection[str] = ()) -> None:
    """Add every option but those whose names are ``present``."""
    group = parser.getgroup("crbench", "code-review benchmark (pytest-crbench)")
    for name, kind, metavar, text in OPTIONS:
        if name in present:
            continue
        attributes: dict[str, object] = {**_ACTIONS[kind], "default": None, "dest": ini_name(name)}
        if kind != "flag":
            attributes["metavar"] = metavar
        if kind == "optional":
            attributes["const"] = IMPLIED[name]
        group.addoption(f"--crbench-{name}", help=text, **attributes)
        ini_type = "linelist" if kind == "list" else "string"
        parser.addini(ini_name(name), text, type=ini_type, default=None)  # type: ignore[arg-type]


def add_hooks(manager: pytest.PytestPluginManager) -> None:
    """Make our hooks known, once."""
    from . import hookspecs

    known = getattr(manager.hook, "pytest_crbench_select", None)
    if known is None or known.spec is None:
        manager.add_hookspecs(hookspecs)
