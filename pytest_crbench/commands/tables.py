"""``crbench tables RUN …``: the tables of c-CRAB's and of AACR-Bench's paper over some runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError

if TYPE_CHECKING:
    import argparse


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "tables",
        help="tables of several runs",
        description="Print tables with a row for each run. Of hidden tests: pass rates by kind, which checks "
        "are passed by which runs, pass rates by category. Of matching: precision, recall and F1; recall by "
        "the context that a reference needs; by language; by category. Exit status: 0 printed, 2 unreadable, "
        "or without a scoring in common.",
    )
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", type=Path, help="results.json, or the folder of a run"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print GitHub-flavoured Markdown")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the tables; the exit status."""
    from ..reports.results import load_results
    from ..reports.tables import remarks, tables, tables_json, tables_markdown, tables_text
    from ..text.printable import escaped, inert

    try:
        runs = [load_results(path) for path in args.runs]
        found, said = tables(runs), remarks(runs)
    except UsageError as error:
        print(f"crbench tables: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(tables_json(found), indent=1, ensure_ascii=False))
        # The list of tables is for programs; people must be told all the same.
        for line in said:
            print(f"crbench tables: note: {inert(line)}", file=sys.stderr)
    elif args.markdown:
        print(tables_markdown(found), end="")
        print("".join(f"- {escaped(line, 1000)}\n" for line in said), end="")
    else:
        notes = ["", *(f"note  {line}" for line in said)] if said else []
        print("\n".join(map(inert, [*tables_text(found), *notes])))
    return 0
