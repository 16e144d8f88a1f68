"""Options that several subcommands share, under the names they have in pytest without the ``crbench-``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..run.settings import read

if TYPE_CHECKING:
    import argparse

    from ..core.settings import Settings

_SHARED = (
    "sandbox",
    "base-image",
    "ca-bundle",
    "index-url",
    "cache",
    "min-free",
    "disk-budget",
    "memory",
    "cpus",
    "pids",
    "test-timeout",
)


def add_sandbox_options(parser: argparse.ArgumentParser, *, leave_out: tuple[str, ...] = ()) -> None:
    """Add the options of sandboxes, indexes and the cache."""
    from ..run.options import OPTIONS

    group = parser.add_argument_group("sandbox")
    for name, _kind, metavar, text in OPTIONS:
        if name in _SHARED and name not in leave_out:
            group.add_argument(f"--{name}", metavar=metavar, help=text)


def settings_of(args: argparse.Namespace, **fixed: Any) -> Settings:
    """Read the settings of a subcommand; ``fixed`` are the ones it does not leave to the user.

    Raises:
        UsageError: naming the option.
    """
    return read(lambda name: fixed.get(name, getattr(args, name, None)), Path.cwd())
