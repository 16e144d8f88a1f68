"""``crbench demo``: a first look, without Docker and without a key; everything is really run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from .common import SANDBOX, add_options, settings_of

if TYPE_CHECKING:
    import argparse

    from ..core.settings import Settings

#: Small pull requests of different packages: some whose comments carry a suggestion, some whose do not.
INSTANCES = (
    "cachetools-7.2.4",
    "decorator-5.1.0",
    "humanize-4.12.1",
    "markdown-3.9",
    "marshmallow-4.1.1",
    "python-multipart-0.0.18",
    "tomlkit-0.12.0",
    "xmltodict-0.14.0",
)
#: Ruff says with each finding which lines it would replace by what, where it knows.
_RUFF = "check --isolated --no-cache --exit-zero --output-format=rdjson --select=E4,E7,E9,F,B {workspace}"


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo",
        help="evaluate two reviewers on a handful of pull requests, without Docker and key",
        description="Evaluate the human comments, then the tool ruff, on a handful of bundled pull requests: "
        "a coding agent applies the suggestions of the comments, hidden tests decide. Needs the package "
        "index, no Docker and no key. Takes a minute or two.",
    )
    parser.add_argument("--dataset", metavar="PATH", help="another copy of the bundled dataset")
    add_options(parser, "sandbox and runs", (*SANDBOX[1:], "run-dir"))
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run both reviewers, print a table each and the comparison; the exit status."""
    from ..reports.comparison import comparison_text
    from ..reports.results import load_results
    from ..statistics.compare import compare

    settings = settings_of(args, dataset=[args.dataset] if args.dataset else None)
    if importlib.util.find_spec("ruff") is None:
        raise UsageError(
            "the demo reviews with ruff beside the human comments: pip install 'pytest-crbench[demo]'"
        )
    began = time.monotonic()
    _say("1 of 2: the human comments themselves. Some of them carry a suggestion; the agent applies those.")
    human = _evaluate(settings, "human", "human")
    _say("2 of 2: ruff, a linter, as the reviewer. The agent applies the fixes that ruff suggests.")
    ruff = _evaluate(settings, f"cmd:{_quoted(sys.executable)} -m ruff {_RUFF}", "ruff")
    _say("The two side by side, on the same checks:")
    print("\n".join(comparison_text(compare(load_results(human), load_results(ruff)))))
    _say(
        f"done in {time.monotonic() - began:.0f} s. Every review, patch and output of a hidden test is in",
        f"  {human}",
        f"  {ruff}",
        "Next, your own reviewer:",
        "  pytest --crbench-agent=suggestions --crbench-reviewer='cmd:mytool --base {base} --head {head}'",
    )
    return 0


def _evaluate(settings: Settings, reviewer: str, name: str) -> Path:
    """Run pytest as a user would, apart from any configuration of the folder that we are started in."""
    from ..datasets import open_dataset

    run_dir = settings.run_dir.absolute()
    dataset = open_dataset(settings.datasets[0])
    known = {instance.id for instance in dataset.instances}
    if known.isdisjoint(INSTANCES):
        raise UsageError(f"--dataset={settings.datasets[0]} is no copy of the bundled dataset: leave it out")
    before = {p.name for p in run_dir.glob("*")}
    empty = settings.cache.absolute() / "demo"
    empty.mkdir(parents=True, exist_ok=True)
    (empty / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(empty / "pytest.ini"),
        "--rootdir",
        str(empty),
        # The table and the verdict, without the heading of a session.
        "-q",
        "-p",
        "no:cacheprovider",
        *(["-n", "2"] if (os.cpu_count() or 1) > 1 else []),
        f"--crbench-reviewer={reviewer}",
        "--crbench-agent=suggestions",
        "--crbench-sandbox=local",
        f"--crbench-dataset={settings.datasets[0]}",
        f"--crbench-run-dir={run_dir}",
        f"--crbench-cache={settings.cache.absolute()}",
        *([f"--crbench-reviewer-name={name}"] if name != "human" else []),
        *([f"--crbench-ca-bundle={settings.ca_bundle}"] if settings.ca_bundle else []),
        *([f"--crbench-index-url={settings.index_url}"] if settings.index_url else []),
        *(f"{dataset.name}::{instance}" for instance in INSTANCES if instance in known),
    ]
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    done = subprocess.run(argv, env=environment, check=False)
    made = [p for p in run_dir.glob("*") if p.name not in before and (p / "results.json").is_file()]
    if done.returncode != 0 or len(made) != 1:
        raise UsageError(
            f"the evaluation of {name} ended with exit status {done.returncode}; its output above says why"
        )
    # As the user can type it.
    return made[0].relative_to(Path.cwd()) if made[0].is_relative_to(Path.cwd()) else made[0]


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word).replace("{", "{{").replace("}", "}}")


def _say(*lines: str) -> None:
    print()
    for line in lines:
        print(f"crbench demo: {line}", flush=True)
