"""The ``crbench`` command: one module of ``commands`` per subcommand."""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING

from . import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Wrong usage, as pytest's own commands and argparse have it; a run's verdict never has this status.
USAGE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns its exit status."""
    from .core.errors import NO_WINDOWS, CrbenchError

    if sys.platform == "win32":
        print(f"crbench: error: {NO_WINDOWS}", file=sys.stderr)
        return USAGE
    from .host.signals import terminate_as_interrupt

    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding than UTF-8 gets escapes, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    args = _parser().parse_args(argv)
    restore = terminate_as_interrupt()
    try:
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except CrbenchError as error:
        print(f"crbench: error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("crbench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (a pager, head): no fault.
        sys.stderr.close()
        return 0
    finally:
        restore()


def _parser() -> argparse.ArgumentParser:
    from .commands import calibrate, clean, compare, demo, doctor, gate, instances, show, tables, validate

    parser = argparse.ArgumentParser(
        prog="crbench",
        description="Code-review benchmarks. The benchmark itself runs as pytest --crbench-reviewer=…",
    )
    parser.add_argument("--version", action="version", version=f"crbench {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (demo, doctor, instances, validate, calibrate, show, compare, tables, gate, clean):
        command.add_parser(subparsers)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
