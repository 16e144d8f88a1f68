"""Small datasets of our own, and pytest runs over them as a vendor would start them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_crbench.core.model import Instance

#: How a run is distributed: every mode must give the same answer.
MODES = {"serial": [], "xdist": ["-n", "2"], "no-xdist": ["-p", "no:xdist"]}

_COMMENT = """
[[comment]]
id = "{id}"
level = "inline"
path = "shop/{module}.py"
lines = [2, 2]
kind = "behavioral"
category = "{category}"
body = "The {id} is wrong."
test = "test_{id}.py"
{suggestion}
{expect}
"""
_INSTANCE = """
schema = 1
id = "{id}"
language = "Python"
origin = "pull_request"

[source]
kind = "tree"
base = "base"
head = "head"
fixed = "fixed"

[pull_request]
title = "Add prices"
body = "Adds prices."

[environment]
python = "{python}"
runner = "pytest"
import_roots = ["."]
install = "none"
requirements = {requirements}
"""


@dataclass(frozen=True)
class Pull:
    """One small pull request: ``fixable`` checks carry a suggestion that resolves them, ``hard`` none."""

    id: str
    fixable: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()
    #: A specifier that no interpreter satisfies makes every check an infra_error.
    python: str = ">=3.8"
    category: str = "Security"
    tests: dict[str, str] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    #: The exception that every check expects at head; "" for none.
    expect: str = ""


def write_dataset(folder: Path, pulls: list[Pull], name: str = "small") -> Path:
    """Write a dataset of ``tree`` instances; a check ``x`` tests that ``shop.x_.x()`` returns "x"."""
    folder.mkdir(parents=True)
    (folder / "dataset.toml").write_text(
        f'schema = 1\nname = "{name}"\ntitle = "Small"\nnotice = "Made by the tests of this package."\n'
    )
    for pull in pulls:
        _write_instance(folder / pull.id, pull)
    return folder


def _write_instance(folder: Path, pull: Pull) -> None:
    folder.mkdir()
    text = _INSTANCE.format(id=pull.id, python=pull.python, requirements=json.dumps(pull.requirements))
    checks = [*pull.fixable, *pull.hard]
    for check in checks:
        suggestion = f"suggestion = '''    return \"{check}\"'''" if check in pull.fixable else ""
        expect = f'expect = "{pull.expect}"' if pull.expect else ""
        text += _COMMENT.format(
            id=check, module=f"{check}_", category=pull.category, suggestion=suggestion, expect=expect
        )
        default = (
            f'from shop.{check}_ import {check}\n\n\ndef test_{check}():\n    assert {check}() == "{check}"\n'
        )
        (folder / f"test_{check}.py").write_text(pull.tests.get(check, default))
    (folder / "instance.toml").write_text(text)
    for side, value in (("base", "base"), ("head", "wrong"), ("fixed", None)):
        package = folder / side / "shop"
        package.mkdir(parents=True)
        # Another change in each, and nothing that names the pull request: agents and reviewers read it.
        (package / "__init__.py").write_text(f"# {zlib.crc32(pull.id.encode()):08x}\n")
        for check in checks:
            said = check if value is None else value
            (package / f"{check}_.py").write_text(f'def {check}():\n    return "{said}"\n')


def sample(instances: Sequence[Instance]) -> Sequence[Instance]:
    """Every fifth of the bundled pull requests; all of them if `whole`."""
    return instances if whole() else instances[::5]


def whole() -> bool:
    """Whether to test what an ordinary session takes a part of: CRBENCH_TEST_WHOLE=1, before a release."""
    return bool(os.environ.get("CRBENCH_TEST_WHOLE"))


@dataclass(frozen=True)
class Run:
    """A finished pytest run."""

    status: int
    output: str
    folder: Path

    @property
    def verdict(self) -> str:
        """The last line printed."""
        return self.output.strip().splitlines()[-1]

    @property
    def runs(self) -> list[Path]:
        """The run directories, oldest first."""
        return sorted((self.folder / ".crbench" / "runs").glob("*"), key=lambda p: p.stat().st_mtime)

    def results(self) -> dict:
        """The results.json of the latest run."""
        return json.loads((self.runs[-1] / "results.json").read_text("utf-8"))

    def rows(self) -> list[dict]:
        """Its verdicts, each with what is known of its review in it."""
        return rows_of(self.results())

    def statuses(self) -> dict[str, str]:
        """Status by ``instance::check``."""
        return {f"{r['instance']}::{r['check']}": r["status"] for r in self.results()["verdicts"]}

    def outcomes(self) -> dict[str, int]:
        """Counts of pytest's own summary line."""
        lines = [line for line in self.output.splitlines() if re.search(r" in [\d.]+s", line)]
        return {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", lines[-1].split(" in ")[0])}


def rows_of(results: dict) -> list[dict]:
    """The verdicts of a results.json, each with what is known of its review in it."""
    reviews = {row["id"]: row for row in results["reviews"]}
    return [_joined(row, reviews.get(row["review"], {})) for row in results["verdicts"]]


def _joined(row: dict, review: dict) -> dict:
    tables = {name: {**review.get(name, {}), **row[name]} for name in ("keys", "durations", "usage")}
    return {**row, **tables, "stop_reason": review.get("stop_reason"), "review": review}


def command(dataset: Path | None, cache: Path, *arguments: str, cacheprovider: bool = False) -> list[str]:
    """The command line of a run in the local sandbox."""
    return [
        sys.executable,
        "-m",
        "pytest",
        *([] if cacheprovider else ["-p", "no:cacheprovider"]),
        # Of our own tests and of what we use; they take as long to load as all that a run needs.
        *("-p", "no:hypothesispytest", "-p", "no:anyio"),
        *([f"--crbench-dataset={dataset}"] if dataset else []),
        f"--crbench-cache={cache}",
        *([] if any("crbench-sandbox" in a for a in arguments) else ["--crbench-sandbox=local"]),
        *arguments,
    ]


def environment() -> dict[str, str]:
    """The environment of a run: nothing of the outer pytest's."""
    gone = (
        "PYTEST_",
        "TASK_SESSION",
        "TASK_PROCESS",
        "OPENAI_",
        "CRBENCH_API_KEY",
        "GITHUB_STEP_SUMMARY",
    )
    return {k: v for k, v in os.environ.items() if not k.startswith(gone)}


def run(
    folder: Path,
    dataset: Path | None,
    cache: Path,
    *arguments: str,
    env: dict[str, str] | None = None,
    cacheprovider: bool = False,
    timeout: float = 300,
) -> Run:
    """Run pytest in ``folder`` to its end."""
    done = subprocess.run(
        command(dataset, cache, *arguments, cacheprovider=cacheprovider),
        cwd=folder,
        env={**environment(), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return Run(done.returncode, done.stdout, folder)


def run_and_signal(
    folder: Path, dataset: Path, cache: Path, *arguments: str, number: int = signal.SIGINT, when: Path
) -> Run:
    """Start pytest in ``folder`` and signal the controller once ``when`` exists."""
    process = subprocess.Popen(
        command(dataset, cache, *arguments),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not when.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    return Run(process.returncode, output, folder)
