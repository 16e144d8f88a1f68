"""``crbench gate RESULTS``: decide over the results of a finished run, outside pytest."""

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
        "gate",
        help="decide over the results of a run",
        description="Decide over the results of a finished run as pytest would have. Exit status: 0 met, "
        "1 not met, 10 too few measurements to decide, 2 wrong usage.",
    )
    parser.add_argument("results", metavar="RESULTS", type=Path, help="results.json, or the folder of a run")
    parser.add_argument(
        "--fail-under",
        action="append",
        default=[],
        metavar="[METRIC][@FACET=VALUE]:RATE",
        help="not met if a rate is lower: 0.30, @category=Security:0.5, macro:25%% (repeatable)",
    )
    parser.add_argument(
        "--fail-over",
        action="append",
        default=[],
        metavar="METRIC[@FACET=VALUE]:NUMBER",
        help="not met if a number is higher: comments_per_pr:20 (repeatable)",
    )
    parser.add_argument(
        "--min-coverage",
        metavar="SHARE",
        help="undecided if less than this share of the selected checks was measured (0.95)",
    )
    parser.add_argument("--baseline", type=Path, metavar="RESULTS", help="results of an earlier run")
    parser.add_argument(
        "--fail-if-regressed",
        nargs="?",
        const="",
        metavar="DROP",
        help="not met if worse than the baseline on the checks that both have: by a paired test with 5 %% "
        "false alarms (p:0.01 for another rate), or by more than DROP, a share",
    )
    parser.add_argument("--json", action="store_true", help="print the decision as JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the conditions and, last, the verdict; the exit status."""
    from ..reports.lines import bounds_lines, lost_lines, notes, unmeasured_lines
    from ..reports.results import load_results
    from ..reports.table import verdict_line
    from ..statistics.gate import check_metrics, decide, make_gate
    from ..text.printable import printable

    try:
        gate = make_gate(
            fail_under=args.fail_under,
            fail_over=args.fail_over,
            min_coverage=args.min_coverage,
            baseline=load_results(args.baseline) if args.baseline else None,
            fail_if_regressed=args.fail_if_regressed,
            prefix="--",
        )
        if not gate.asked:
            raise UsageError(
                "nothing to decide; give --fail-under, --fail-over, --min-coverage or --fail-if-regressed"
            )
        results = load_results(args.results)
        check_metrics(gate, results.scorings, "--")
        summary, *others = results.summaries
        decision = decide(gate, summary, results, others)
    except UsageError as error:
        print(f"crbench gate: {error}", file=sys.stderr)
        return 2
    if args.json:
        from ..reports.results import unmeasured_json
        from ..reports.schema import summary_json

        told = {
            "overall": summary_json(summary)["overall"],
            "unmeasured": unmeasured_json(results),
            "notes": list(notes(results)),
        }
        print(json.dumps({**decision.to_json(), **told}, indent=1))
    else:
        for one in results.summaries:
            if others:
                print(f"{one.scoring}:")
            for line in (*bounds_lines(one), *unmeasured_lines(one, logs=args.results)):
                print(line)
        for note in notes(results):
            print(f"note       {note}")
        for condition in decision.conditions:
            print(f"{condition.outcome:<9}  {printable(condition.text, 1000)}")
        for line in lost_lines(decision):
            print(f"lost       {line}")
        print(verdict_line(decision))
    # A decision that was asked for always has a status.
    return decision.exit_status if decision.exit_status is not None else 2
