"""``crbench clean``: removes what sandboxes left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common import add_options, settings_of

if TYPE_CHECKING:
    import argparse

    from ..core.sandbox import SandboxSettings


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
    parser.add_argument(
        "--keep",
        metavar="SIZE",
        help="keep images and cache entries up to SIZE (5g), those used last, and remove the rest",
    )
    parser.add_argument("--force", action="store_true", help="also what a run under way uses")
    add_options(parser, "options of a run", ("cache",))
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Clean, and say what was removed; the exit status."""
    from ..core.errors import UsageError
    from ..core.sandbox import SandboxSettings
    from ..run.settings import bytes_of
    from ..sandbox.clean import clean

    if args.keep is not None and (args.all or args.force):
        raise UsageError("--keep goes neither with --all nor with --force")
    keep = None if args.keep is None else bytes_of("--keep", args.keep)
    settings = settings_of(args)
    sandbox = SandboxSettings(settings.cache, session="")
    try:
        done = clean(sandbox, images=keep is None, cache=args.all, force=args.force)
        kept = None if keep is None else _keep(sandbox, keep)
    except PermissionError as error:
        raise UsageError(f"cannot clean {error.filename or settings.cache}: {error.strerror}") from error
    print(
        f"crbench: removed {done.containers} containers, {done.images} images, "
        f"{done.sandboxes} local sandboxes"
        + (f", {done.cache_entries} entries of {settings.cache}" if args.all else "")
    )
    if done.in_use:
        print(f"crbench: {done.in_use} are in use by a run under way and stay (--force removes them too)")
    if kept is not None:
        print(f"crbench: {kept}")
    for note in done.notes:
        print(f"crbench: {note}")
    return 0


def _keep(settings: SandboxSettings, keep: int) -> str:
    """Remove what was used least recently, down to ``keep`` bytes; what is told of it."""
    from ..core.errors import InfraError
    from ..host.eviction import told
    from ..host.space import size
    from ..sandbox.disk import evict_to
    from ..sandbox.engine import connect

    try:
        client = connect()
    except InfraError:
        client = None  # no engine, no images: `clean` has noted it
    done = evict_to(client, settings, keep)
    more = ", which runs under way use or other images need" if done.left > keep else ""
    return f"removed {told(done)}; {size(done.left)} are left{more}"
