"""``crbench clean``: removes what sandboxes left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common import settings_of

if TYPE_CHECKING:
    import argparse


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "clean",
        help="remove our containers and images, and with --all the cache",
        description="Remove the containers, images and local sandboxes that carry our labels. What a run "
        "under way uses stays, unless --force. Runs in .crbench/runs are never touched.",
    )
    parser.add_argument(
        "--all", action="store_true", help="also empty the cache (archives, trees, environments)"
    )
    parser.add_argument("--force", action="store_true", help="also what a run under way uses")
    parser.add_argument("--cache", metavar="DIR", help="the cache folder (default: the user's cache)")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Clean, and say what was removed; the exit status."""
    from ..core.errors import UsageError
    from ..sandbox.clean import clean
    from ..sandbox.settings import SandboxSettings

    settings = settings_of(args)
    try:
        done = clean(SandboxSettings(settings.cache, session=""), cache=args.all, force=args.force)
    except PermissionError as error:
        raise UsageError(f"cannot clean {error.filename or settings.cache}: {error.strerror}") from error
    print(
        f"crbench: removed {done.containers} containers, {done.images} images, "
        f"{done.sandboxes} local sandboxes"
        + (f", {done.cache_entries} entries of {settings.cache}" if args.all else "")
    )
    if done.in_use:
        print(f"crbench: {done.in_use} are in use by a run under way and stay (--force removes them too)")
    for note in done.notes:
        print(f"crbench: {note}")
    return 0
