"""Options that several subcommands share, under the names they have in pytest without the ``crbench-``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin.options import ACTIONS, IMPLIED, ini_name, options
from ..run.options import add_former_names
from ..run.settings import found_in, read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

    from ..core.settings import Settings

SANDBOX = ("sandbox", "base-image", "ca-bundle", "index-url", "cache", "limit")


def add_options(parser: argparse.ArgumentParser, title: str, names: Collection[str]) -> None:
    """Add a group with these options of the plugin, and with all names that options had before."""
    group = parser.add_argument_group(title)
    for name, kind, metavar, text in options():
        if name in names:
            attributes: dict[str, Any] = {**ACTIONS[kind], "dest": ini_name(name), "default": None}
            if metavar:
                attributes["metavar"] = metavar
            if name in IMPLIED:
                attributes["const"] = IMPLIED[name]
            group.add_argument(f"--{name}", help=text.replace("%", "%%"), **attributes)
    add_former_names(group.add_argument, "", names)


def settings_of(args: argparse.Namespace, **fixed: Any) -> Settings:
    """Read the settings of a subcommand; ``fixed`` are the ones it does not leave to the user.

    Raises:
        UsageError: naming the option.
    """

    def given(name: str) -> Any:
        if name in fixed:
            return fixed[name]
        return found_in(lambda option: getattr(args, ini_name(option), None), name)

    return read(given, Path.cwd())
