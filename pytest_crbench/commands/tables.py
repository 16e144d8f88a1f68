"""``crbench tables RUN …``: the tables of AACR-Bench's paper over runs that were scored by matching."""

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
        help="tables of reviewers that were scored by matching",
        description="Print four tables, with a row for each run: precision, recall and F1; recall by the "
        "context that a reference needs; by language; by category. Exit status: 0 printed, 2 unreadable or "
        "not scored by matching.",
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
    from ..core.text import inert
    from ..reporting.results import read_results
    from ..reporting.tables import tables, tables_json, tables_markdown, tables_text

    try:
        found = tables([read_results(path) for path in args.runs])
    except UsageError as error:
        print(f"crbench tables: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(tables_json(found), indent=1, ensure_ascii=False))
    elif args.markdown:
        print(tables_markdown(found), end="")
    else:
        print("\n".join(map(inert, tables_text(found))))
    return 0
