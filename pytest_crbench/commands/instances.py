"""``crbench instances check``: what is wrong with the files of a dataset, and what is odd about it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ..core.scoring import scoring_of
from ..text.printable import many, printable

if TYPE_CHECKING:
    import argparse

_NAME = 26


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "instances",
        help="look at the files of a dataset",
        description="Look at the files of a dataset. Nothing is fetched, and nothing of it is run.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="say what is broken, and what is odd",
        description="Read a dataset as a run does, and say what is broken in its files and what is odd about "
        "it. Nothing is fetched, and nothing of it is run. Exit status: 0 it can be used, whatever the "
        "notes; 1 it is broken; 2 wrong usage, or there is no such dataset.",
    )
    check.add_argument(
        "dataset",
        nargs="*",
        metavar="DATASET",
        default=["releases"],
        help="folder of a dataset or an instance, a bundled name, or aacr:PATH (default: releases)",
    )
    check.add_argument("--where", action="store_true", help="list each place that a note is about")
    check.add_argument("--json", action="store_true", help="print JSON, with all places")
    check.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Look at each dataset, print what was found; the exit status."""
    found = [_look(spec) for spec in args.dataset]
    broken = [one for one in found if one["problems"]]
    if args.json:
        print(json.dumps({"schema": "crbench-instances-1", "datasets": found}, indent=1))
        return 1 if broken else 0
    for one in found:
        _print(one, where=args.where)
    if broken:
        print(f"crbench: BROKEN: {', '.join(printable(one['spec']) for one in broken)}", file=sys.stderr)
        return 1
    return 0


def _look(spec: str) -> dict[str, Any]:
    """Return what there is to say of one dataset, as plain JSON.

    Raises:
        UsageError: if there is no such dataset.
    """
    from ..datasets import notes_of, open_dataset
    from ..datasets.problems import BrokenDatasetError

    try:
        dataset = open_dataset(spec)
        notes = notes_of(spec, dataset)
    except BrokenDatasetError as error:
        return {"spec": spec, "name": None, "problems": list(error.problems), "notes": []}
    checks = [check for instance in dataset.instances for check in instance.checks]
    return {
        "spec": spec,
        "name": dataset.name,
        "digest": dataset.digest,
        "scoring": dataset.scoring,
        "instances": len(dataset.instances),
        "checks": len(checks),
        "hidden_tests": sum(bool(check.test) for check in checks),
        "rejected": sum(len(instance.rejected) for instance in dataset.instances),
        "problems": [],
        "notes": [{"name": n.name, "count": len(n.where), "said": n.said, "where": n.where} for n in notes],
    }


def _print(found: dict[str, Any], *, where: bool) -> None:
    if found["problems"]:
        print(f"crbench: {printable(found['spec'])}: {many(len(found['problems']), 'problem')}")
        for problem in found["problems"]:
            print(f"  {problem}")
        return
    parts = [many(found["instances"], "instance"), many(found["checks"], "check")]
    if found["rejected"]:
        parts.append(many(found["rejected"], "rejected comment"))
    parts.append(scoring_of(found["scoring"]).decided)
    print(f"crbench: {found['name']}: {', '.join(parts)}")
    for note in found["notes"]:
        print(f"  {note['count']:>5}  {note['name']:<{_NAME}}{note['said']}")
        for place in note["where"] if where else ():
            print(f"         {place}")
    if not found["notes"]:
        print("         nothing odd")
