"""``crbench compare A B``: two runs on the checks both have."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.scoring import SCORINGS

if TYPE_CHECKING:
    import argparse


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare",
        help="compare two runs on the checks both have",
        description="Compare two runs, paired on the checks both have: who passed what, and differences by "
        "facet. Refuses runs made by different coding agents, sandboxes or environments. "
        "Exit status: 0 compared, 2 refused or unreadable.",
    )
    parser.add_argument("first", metavar="A", type=Path, help="results.json, or the folder of a run")
    parser.add_argument("second", metavar="B", type=Path, help="results.json, or the folder of a run")
    parser.add_argument(
        "--scoring", choices=SCORINGS.names(), help="scoring to compare (default: the first both have)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print GitHub-flavoured Markdown")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the comparison; the exit status."""
    from ..reports.comparison import comparison_json, comparison_markdown, comparison_text
    from ..reports.results import load_results
    from ..statistics.compare import compare

    try:
        found = compare(load_results(args.first), load_results(args.second), args.scoring)
    except UsageError as error:
        print(f"crbench compare: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(comparison_json(found), indent=1))
    elif args.markdown:
        print(comparison_markdown(found), end="")
    else:
        print("\n".join(comparison_text(found)))
    return 0
