"""``crbench doctor``: says what is missing before work starts."""

from __future__ import annotations

import contextlib
import json
import secrets
from typing import TYPE_CHECKING, Any

from .common import add_options, settings_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ..core.finding import Finding
    from ..core.settings import Settings

#: What only says how results are judged, or how a run that works is cut: nothing on the machine decides it.
_LEFT_OUT = (
    "fail-under", "fail-over", "min-coverage", "baseline", "fail-if-regressed", "fail-on-miss", "repeats",
    "rerun-errors",
)  # fmt: skip


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    from ..plugin.options import options

    parser: argparse.ArgumentParser = subparsers.add_parser(
        "doctor",
        help="say what is missing before work starts",
        description="Look at everything that a run would need: programs, sandbox, space, package index, "
        "model, dataset. The options are those of pytest without `crbench-`; what is not given is taken "
        "from the pytest configuration of the current folder. Changes nothing. Exit status: 0 a run can "
        "start, 1 something that it needs is missing, 2 wrong usage.",
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also ask the package index from a container, and the endpoint for its models (no tokens)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_options(parser, "options of a run", {name for name, *_ in options()}.difference(_LEFT_OUT))
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Look, and print a line for each finding as it comes; the exit status."""
    from ..core.finding import Level
    from ..doctor.looks import Examination

    settings, problem = _settings(args)
    findings: list[Finding] = []
    looked = Examination(settings, secrets.token_hex(8), deep=args.deep).findings()
    with contextlib.closing(looked):
        for finding in _all(problem, looked):
            findings.append(finding)
            if not args.json:
                print(_line(finding), flush=True)
    lacking = sum(f.level is Level.MISSING for f in findings)
    if args.json:
        checks = [{**vars(f), "level": f.level.value} for f in findings]
        print(json.dumps({"schema": "crbench-doctor-1", "ready": not lacking, "checks": checks}, indent=1))
    else:
        print(_conclusion(lacking, sum(f.level is Level.WARNING for f in findings)))
    return 1 if lacking else 0


def _all(problem: Finding | None, others: Iterator[Finding]) -> Iterator[Finding]:
    if problem is not None:
        yield problem
    yield from others


def _line(finding: Finding) -> str:
    advice = f". {finding.advice}" if finding.advice else ""
    return f"{finding.level.value:<8} {finding.name:<18} {finding.found}{advice}"


def _conclusion(lacking: int, warnings: int) -> str:
    from ..text.printable import many

    noted = f", {many(warnings, 'warning')}" if warnings else ""
    if lacking:
        return f"crbench doctor: {many(lacking, 'thing')} missing{noted}"
    return f"crbench doctor: a run can start{noted}"


def _settings(args: argparse.Namespace) -> tuple[Settings, Finding | None]:
    """Read the settings as pytest would read them here; what stands in pytest's way is a finding.

    Raises:
        UsageError: naming the option.
    """
    from ..core.finding import missing
    from ..plugin.configuration import configured

    here = configured(_arguments(args))
    if here.settings is not None:
        return here.settings, None
    advice = "Run pytest --version here and correct its configuration; what follows is without it"
    return settings_of(args), missing("pytest", f"does not start here ({here.refusal})", advice)


def _arguments(args: argparse.Namespace) -> list[str]:
    """The options of a run, as pytest takes them."""
    arguments = []
    for name, value in vars(args).items():
        if not name.startswith("crbench_") or value is None or name == "crbench_former":
            continue
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        arguments += [option if value is True else f"{option}={one}" for one in values]
    return arguments
