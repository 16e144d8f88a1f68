"""A reviewer, coding agent, sandbox, test runner and report of another package, in one run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import MODES, Pull, run, write_dataset
from support.foreign import install

if TYPE_CHECKING:
    from pathlib import Path

PARTS = '''
from pathlib import Path

from pytest_crbench import AgentKind, Report, Review, ReviewComment, ReviewerKind, Revision, SandboxKind
from pytest_crbench.sandbox.local import LocalBackend
from pytest_crbench.scoring.tests.pytest_runner import PytestRunner


class Says(ReviewerKind):
    """``says:WORDS`` says the words of every pull request; without any it is the built-in ``none``."""

    shareable = False
    name = "says"

    def make(self, argument, settings, run, enclosure):
        self.fingerprint = {"name": "says", "words": argument}
        return self if argument else "none"

    def review(self, task):
        return Review((ReviewComment("c", self.fingerprint["words"]),), self.name)


class Fixes(AgentKind):
    """Puts right what the one word of the review names."""

    name = "fixes"
    runs_on_clean_review = False

    def make(self, argument, settings, run):
        self.fingerprint = {"name": self.name, "argument": argument}
        return self

    def revise(self, task):
        copy = task.directory / "copy"
        task.checkout(copy)
        word = task.review.comments[0].body
        for file in copy.glob("shop/" + word + "_.py"):
            file.write_text("def " + word + "():\\n    return " + repr(word) + "\\n")
        return Revision(task.capture(copy), self.name, "finished")


class BoxBackend(LocalBackend):
    name = "box"


class Box(SandboxKind):
    def make(self, settings):
        return BoxBackend(settings)


class Mine(PytestRunner):
    name = "mine"
    version = "mine 1"


class Page(Report):
    file = "page.txt"

    def content(self, results, decision, run):
        key = "sk-0123456789abcdef0123456789abcdef"
        return f"{results.reviewer}: {decision.verdict} {len(results.verdicts)} {key}\\n"


SAYS, FIXES, BOX, MINE, PAGE = Says(), Fixes(), Box(), Mine(), Page()
'''
ENTRIES = [
    ("reviewers", "says = vendor_parts:SAYS"),
    ("agents", "fixes = vendor_parts:FIXES"),
    ("sandboxes", "box = vendor_parts:BOX"),
    ("runners", "mine = vendor_parts:MINE"),
    ("reports", "page = vendor_parts:PAGE"),
]
OPTIONS = (
    "--crbench-reviewer=says:price",
    "--crbench-agent=fixes",
    "--crbench-sandbox=box",
    "--crbench-report=page",
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module of the parts, installed."""
    return install(tmp_path / "site", monkeypatch, "vendor_parts", PARTS, *ENTRIES)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    place = write_dataset(tmp_path / "data", [Pull("first", hard=("price", "tax"))])
    file = place / "first" / "instance.toml"
    file.write_text(file.read_text().replace('runner = "pytest"', 'runner = "mine"'))
    return place


@pytest.mark.network
@pytest.mark.parametrize("mode", ["serial", "xdist"])
def test_one_run_of_five_parts(folder: Path, data: Path, cache: Path, installed: Path, mode: str) -> None:
    key = "sk-0123456789abcdef0123456789abcdef"
    done = run(folder, data, cache, *OPTIONS, *MODES[mode], env={"CRBENCH_API_KEY": key})
    assert done.outcomes() == {"passed": 1, "missed": 1}, done.output
    assert "reviewer says, agent fixes, sandbox box" in done.output
    found = done.results()
    assert {row["check"]: row["status"] for row in found["verdicts"]} == {"price": "passed", "tax": "missed"}
    assert found["run"]["sandbox"]["name"] == "box"
    said = (done.runs[-1] / "page.txt").read_text()
    assert said == f"says: {done.verdict.removeprefix('crbench: ')} 2 [redacted]\n"
    again = run(folder, data, cache, "--crbench-resume", "--crbench-sandbox=box")
    assert again.outcomes() == {"passed": 1, "missed": 1}, again.output


@pytest.mark.network
def test_the_doctor_looks_at_the_sandbox(data: Path, cache: Path, installed: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pytest_crbench.cli", "doctor", "--sandbox=box", "--agent=fixes"]
    places = [f"--dataset={data}", f"--cache={cache}", "--reviewer=says:x"]
    said = subprocess.run([*command, *places], cwd=folder, capture_output=True, text=True, check=False)
    assert re.search(r"sandbox +box, isolation", said.stdout), said
    assert re.search(r"coding agent +fixes", said.stdout), said
    installed.write_text(PARTS.replace("return BoxBackend(settings)", "raise OSError('no box')"))
    said = subprocess.run([*command, *places], cwd=folder, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "sandbox 'box' failed: OSError: no box" in " ".join(said.stdout.split())


@pytest.mark.usefixtures("installed")
def test_a_spec_of_ours_may_stand_for_it(folder: Path, data: Path, cache: Path) -> None:
    matching = ("--crbench-scoring=matching", "--crbench-matcher=exact")
    done = run(folder, data, cache, "--crbench-reviewer=says", *matching, "--crbench-offline")
    assert "reviewer none" in done.output


@pytest.mark.parametrize(
    ("old", "new", "option", "said"),
    [
        ("return self if", "raise LookupError('no lamp') if", "", "LookupError: no lamp"),
        (
            'class BoxBackend(LocalBackend):\n    name = "box"',
            'class BoxBackend(LocalBackend):\n    name = "local"',
            "",
            "the backend of the sandbox 'box' is named 'local'",
        ),
        (
            'file = "page.txt"',
            'file = "../page.txt"',
            "",
            "the report 'page' cannot be written: '../page.txt'",
        ),
        ('file = "page.txt"', 'file = "results.json"', "", "the report 'page' cannot be written"),
        ("", "", "--crbench-report=paper", "unknown report 'paper'; known: json, markdown, page"),
        (
            "",
            "",
            "--crbench-agent=fixs",
            "one of llm (the default), suggestions, reference, none, cmd:TEMPLATE, fixes",
        ),
        ("", "", "--crbench-sandbox=bx", "no such sandbox; choose one of auto, docker, local, box"),
        ("", "", "--crbench-reviewer-image=i", "--crbench-reviewer-image is for programs"),
        ("", "", "--crbench-reviewer=sais", "Did you mean 'says'?"),
    ],
)
def test_what_cannot_work_is_refused_before_the_run(
    folder: Path, data: Path, cache: Path, installed: Path, old: str, new: str, option: str, said: str
) -> None:
    installed.write_text(PARTS.replace(old, new) if old else PARTS)
    done = run(folder, data, cache, *OPTIONS, *([option] if option else []))
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_where_the_package_is_gone_the_dataset_names_the_runner(
    folder: Path, data: Path, cache: Path
) -> None:
    done = run(folder, data, cache, "--crbench-reviewer=none")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "environment.runner" in done.output
    assert 'one of "pytest": install the package that has it' in done.output


@pytest.mark.network
def test_a_report_that_fails_takes_no_verdict_with_it(
    folder: Path, data: Path, cache: Path, installed: Path
) -> None:
    installed.write_text(PARTS.replace("        key =", "        raise KeyError('no page')\n        key ="))
    done = run(folder, data, cache, *OPTIONS, "--crbench-fail-under=0.5")
    assert done.status == 0, done.output
    assert "the report 'page' failed: KeyError: 'no page'" in done.output
    assert json.loads((done.runs[-1] / "results.json").read_text())["gate"]["outcome"] == "met"
