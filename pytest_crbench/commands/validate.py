"""``crbench validate``: whether hidden tests fail at head and pass at fixed, every time."""

from __future__ import annotations

import sys
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from ..host import trees
from ..text.printable import many, printable
from .common import SANDBOX, add_options, settings_of

if TYPE_CHECKING:
    import argparse

    from ..core.model import Dataset, Instance
    from ..core.settings import Settings
    from ..validation.validate import Validation


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "validate",
        help="check that hidden tests fail at head and pass at fixed",
        description="Run every hidden test several times at head and at fixed, in the chosen sandbox. Exit "
        "status: 0 everything holds, 1 something does not, 2 wrong usage, or something could not be run.",
    )
    parser.add_argument(
        "dataset",
        nargs="*",
        metavar="DATASET",
        help="folder of a dataset or an instance, or a bundled name (default: releases)",
    )
    parser.add_argument("-k", dest="keyword", metavar="TEXT", help="only instances whose id contains TEXT")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs at each side (default 3)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="instances at once (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a report")
    parser.add_argument(
        "--write",
        action="store_true",
        help="record the result in the [validation] table of each instance that holds",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="fetch the sources again, whatever the cache holds: shows that each url still answers",
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="where a check names no exception yet, write the one that its test ends with at head into the "
        "instance (expect); look at the lines first",
    )
    add_options(parser, "sandbox", SANDBOX)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Validate, print a table as results come, write the report; the exit status."""
    from ..core.errors import UsageError
    from ..run.assemble import open_datasets

    fixed = {"reviewer": "none", "agent": "none", "scoring": None, "repeats": None}
    settings = settings_of(args, dataset=args.dataset or None, **fixed)
    if args.repeats < 1 or args.jobs < 1:
        raise UsageError("--repeats and --jobs take whole numbers of at least 1")
    datasets = open_datasets(settings)
    chosen = [i for d in datasets for i in d.instances if not args.keyword or args.keyword in i.id]
    if not chosen:
        raise UsageError(f"no instance matches -k {args.keyword}")
    instances = [i for i in chosen if any(check.test for check in i.checks)]
    if not instances:
        named = " ".join(settings.datasets)
        raise UsageError(
            f"there is nothing to validate in {printable(named)}: its checks have no hidden tests. "
            f"`crbench instances check {printable(named)}` looks at its files"
        )
    if len(instances) < len(chosen):
        left = many(len(chosen) - len(instances), "instance")
        print(f"crbench: {left} without hidden tests left out", flush=True)
    parts = [(d, tuple(i for i in d.instances if i in instances)) for d in datasets]
    with_tests = [replace(dataset, instances=kept) for dataset, kept in parts if kept]
    found, described = _validate(settings, with_tests, args)
    if args.json:
        from ..host.files import write_json

        report = {
            "schema": "crbench-validation-1",
            "sandbox": described,
            "repeats": args.repeats,
            "checks": [v.to_json() for vs in found for v in vs],
        }
        write_json(args.json, report)
    _write(args, instances, found, described)
    return _conclude([v for vs in found for v in vs], len(instances), args.repeats, described)


def _write(
    args: argparse.Namespace,
    instances: list[Instance],
    found: list[list[Validation]],
    described: dict[str, Any],
) -> None:
    from ..datasets.record import write_expected, write_validation

    for instance, validations in zip(instances, found, strict=True):
        if args.accept:
            silent = {check.id for check in instance.checks if not check.expect}
            write_expected(
                instance, {v.check: v.exception for v in validations if v.holds and v.check in silent}
            )
        if args.write and all(v.holds for v in validations):
            write_validation(instance, args.repeats, described)


def _validate(
    settings: Settings, datasets: list[Dataset], args: argparse.Namespace
) -> tuple[list[list[Validation]], dict[str, Any]]:
    """Validate in a run of its own, whose folder nobody needs afterwards."""
    from ..run.assemble import trees_of
    from ..run.run import Run

    instances = [instance for dataset in datasets for instance in dataset.instances]
    found: list[list[Validation]] = []
    with trees.temporary_folder() as folder:
        run = Run(replace(settings, scoring=("tests",), run_dir=folder), datasets)
        try:
            session = run.start().session
            evaluator, sandbox = run.evaluator, run.record.sandbox
            assert sandbox is not None
            print(
                f"crbench: validating {many(len(instances), 'instance')} in the sandbox {sandbox.name}, "
                f"{many(args.repeats, 'run')} at each side",
                flush=True,
            )
            if args.fresh:
                evaluator.trees = trees_of(replace(settings, cache=folder / "sources"))
            elif any(instance.source.kind != "tree" for instance in instances):
                print(
                    "crbench: sources come from the cache where it has them; --fresh fetches them again",
                    flush=True,
                )
            with ThreadPoolExecutor(args.jobs) as pool:
                stopped = Event()
                under_way: list[Future[list[Validation]]] = []
                try:
                    for instance in instances:
                        under_way.append(pool.submit(validate_one, evaluator, instance, args, stopped))
                    for one in under_way:
                        # Not in one wait without end: a signal that the system gives to another thread does
                        # not wake this one, which alone may act on it.
                        while not wait([one], timeout=0.5).done:
                            _raise_first(under_way)
                        found.append(one.result())
                        _print(found[-1])
                except BaseException:
                    stopped.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                    # What runs now ends with its sandbox, also one that is opened only after our signal. Not
                    # by `wait`: to it a cancelled future is not done until a thread has taken it up.
                    while not all(one.done() for one in under_way):
                        run.reap(session)
                        time.sleep(0.2)
                    raise
        finally:
            run.close()
    return found, sandbox.model_dump(exclude_unset=True)


def _raise_first(under_way: list[Future[list[Validation]]]) -> None:
    """Raise what one of the instances raised, without waiting for those before it."""
    for one in under_way:
        if one.done():
            one.result()


def validate_one(
    evaluator: Any, instance: Instance, args: argparse.Namespace, stopped: Event
) -> list[Validation]:
    """Validate one instance; ends between two runs once ``stopped`` is set."""
    from ..scoring.tests.decide import needs_tree_on_path
    from ..validation.validate import validate

    def go_on() -> None:
        if stopped.is_set():
            raise CancelledError

    evaluation = evaluator.at(instance)
    validations = validate(
        evaluation,
        fixed=evaluation.fixed,
        capture=evaluator.capture,
        needs_tree=needs_tree_on_path,
        repeats=args.repeats,
        accept=args.accept,
        before_each=go_on,
    )
    return list(validations)


def _print(validations: list[Validation]) -> None:
    for v in validations:
        asked = v.unknown or v.unconfirmed
        mark = "holds" if v.holds else "FLAKY" if v.flaky else "  ?  " if asked else "FAILS"
        name = f"{v.instance}::{v.check}"
        modules, files = v.modules_from_tree, v.executed_from_tree
        ran = f"runs {many(files, 'file')} of the tree" if files else "reads the tree"
        source = f"{many(modules, 'module')} of the tree" if modules else ran
        source = source if v.head else "not run"
        print(f"  {mark}  {name:<58} {v.head[0] if v.head else '-':<28} {source}", flush=True)
        for line in (*v.lines, *v.problems):
            print(f"         {line}", flush=True)


def _conclude(found: list[Validation], instances: int, repeats: int, described: dict[str, Any]) -> int:
    bad = [v for v in found if not v.holds]
    flaky = [f"{v.instance}::{v.check}" for v in bad if v.flaky]
    held = len(found) - len(bad)
    print(
        f"crbench: {held} of {many(len(found), 'check')} of {many(instances, 'instance')} hold, "
        f"{many(repeats, 'run')} at each side, "
        f"sandbox {described.get('name')}"
    )
    if flaky:
        print(f"crbench: flaky, quarantine them: {', '.join(flaky)}")
    unconfirmed = [f"{v.instance}::{v.check}" for v in bad if v.unconfirmed]
    if unconfirmed:
        print(f"crbench: to be confirmed (see above): {', '.join(unconfirmed)}")
    broken = [v for v in bad if not v.flaky and not v.unknown and not v.unconfirmed]
    if broken:
        print("crbench: broken: " + ", ".join(f"{v.instance}::{v.check}" for v in broken))
    if flaky or broken or unconfirmed:
        print("crbench: FAILED", file=sys.stderr)
        return 1
    if bad:
        print(f"crbench: {many(len(bad), 'check')} could not be run: see above", file=sys.stderr)
        return 2
    return 0
