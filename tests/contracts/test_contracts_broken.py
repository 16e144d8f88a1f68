"""Parts of another package that break their contract: each fails one test, with a message that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.benchmarks import Run

REVIEWER = """
from pathlib import Path
from pytest_crbench import Review, ReviewComment

class Part:
    name = "part"
    shareable = False
    needs_repository = False
    fingerprint = {"kind": "part"}

    def review(self, task):
        if task.repository:
            task.checkout(task.directory / "copy")
        return Review((ReviewComment("c", "wrong"),), self.name)

PART = Part()
"""
AGENT = """
from pytest_crbench import AgentKind, Revision

class Part(AgentKind):
    name = "part"
    runs_on_clean_review = False

    def make(self, argument, settings, run):
        self.fingerprint = {"name": "part"}
        return self

    def revise(self, task):
        copy = task.directory / "copy"
        task.checkout(copy)
        (copy / "shop" / "__init__.py").write_text("x = 1\\n")
        return Revision(task.capture(copy), self.name, "finished")

PART = Part()
"""
DATASET = """
from pytest_crbench import *

class Part(DatasetKind):
    def load(self, path):
        try:
            lines = (path / "lines").read_text().splitlines()
        except OSError as error:
            raise UsageError(f"no dataset {path}: {error.strerror}")
        found = []
        for line in sorted(set(lines)):
            comment = ReviewComment("c", line, level="general")
            checks = (Check("c", comment, None, "Other", "", "d"),)
            source = Source("tree", path)
            found.append(Instance("lines", line, "C", "release", source, line, "", Environment(), checks, "d"))
        return Dataset("lines", "", "", tuple(found), "d", path, "matching")

PART = Part()
"""
REPORT = """
from pytest_crbench import Report

class Part(Report):
    file = "page.txt"

    def content(self, results, decision, run):
        return f"{results.reviewer} {len(results.verdicts)} {decision.verdict}"

PART = Part()
"""
SCORING = """
from dataclasses import replace
from pytest_crbench import Scoring, Status

class Part(Scoring):
    name = "short"

    def decider(self, settings, run):
        return self

    def verdict(self, evaluation, check):
        done = bool(evaluation.review.comments)
        status = Status.PASSED if done else Status.MISSED
        return replace(evaluation.blank(check, self.name), status=status, reason="" if done else "nothing said")

PART = Part()
"""
RUNNER = """
from pytest_crbench.scoring.tests.pytest_runner import PytestRunner

class Part(PytestRunner):
    name = "part"

PART = Part()
"""
SANDBOX = """
from pytest_crbench import SandboxKind
from pytest_crbench.sandbox.local import LocalBackend

class Backend(LocalBackend):
    pass

class Part(SandboxKind):
    def make(self, settings):
        return Backend(settings, "")

PART = Part()
"""
WHOLE = {
    "reviewer": REVIEWER,
    "agent": AGENT,
    "dataset": DATASET,
    "report": REPORT,
    "scoring": SCORING,
    "runner": RUNNER,
    "sandbox": SANDBOX,
}
NETWORK = ("runner", "sandbox")


@pytest.fixture
def look(contract: Callable[..., Run], folder: Path, cache: Path) -> Callable[..., Run]:
    """Runs the suite of a part whose source is given."""

    def look(kind: str, source: str, *options: str) -> Run:
        (folder / "vendor.py").write_text(source)
        (folder / "set").mkdir()
        (folder / "set" / "lines").write_text("one\ntwo\n")
        spec = f"{kind}:vendor:PART" + (":set" if kind == "dataset" else "")
        return contract(spec, "--crbench-sandbox=local", f"--crbench-cache={cache}", *options)

    return look


@pytest.mark.network
@pytest.mark.parametrize("kind", list(WHOLE))
def test_a_part_that_keeps_its_contract_passes(look: Callable[..., Run], kind: str) -> None:
    done = look(kind, WHOLE[kind])
    assert done.status == 0, done.output


@pytest.mark.parametrize(
    ("kind", "old", "new", "test", "said"),
    [
        ("reviewer", 'name = "part"', 'name = "a\\x1b[31m"', "test_names_itself", "name must be a line of printable text"),
        ("reviewer", '{"kind": "part"}', '{"kind": {1, 2}}', "test_the_fingerprint", "is no plain JSON"),
        ("reviewer", '{"kind": "part"}', '{"kind": (1, 2)}', "test_the_fingerprint", "names are text, sequences lists"),
        ("reviewer", 'return Review((ReviewComment("c", "wrong"),), self.name)', "return []", "test_returns_a_review", "review() must return a Review, found list"),
        ("reviewer", 'ReviewComment("c", "wrong")', 'ReviewComment("c", "wrong", side="top")', "test_returns_a_review", "found 'top'"),
        ("reviewer", 'self.name)', '"other")', "test_returns_a_review", "reviewer must be the reviewer's name"),
        ("reviewer", 'self.name)', 'self.name, usage={"tokens": -1})', "test_returns_a_review", "'tokens' must be a number of 0 or more, found -1"),
        ("reviewer", 'task.checkout(task.directory / "copy")', '(task.head.path / "x").write_text("")', "test_returns_a_review", "the part has written to what is not its own"),
        ("reviewer", 'task.checkout(task.directory / "copy")', 'Path("x").write_text("")', "test_returns_a_review", "must not write to the current folder: ['x']"),
        ("reviewer", 'task.checkout(task.directory / "copy")', 'try: task.checkout(task.directory / "copy")\n            except Exception: pass', "test_a_failure_of_the_machine", "must go through, not become a review"),
        ("reviewer", "if task.repository:", "if True:", "test_what_needs_no_repository", "failed on a small pull request: InfraError"),
        ("agent", '{"name": "part"}', '{"id": id(self), "made": __import__("time").time()}', "test_the_fingerprint", "two of the same options must have one fingerprint"),
        ("agent", '"finished"', '"tired"', "test_returns_a_revision", "unknown stop_reason 'tired'"),
        ("agent", "task.capture(copy)", "task.capture(copy).decode()", "test_returns_a_revision", "patch must be bytes"),
        ("agent", "task.capture(copy)", "b'diff --git a/no b/no\\n--- a/no\\n+++ b/no\\n@@ -1 +1 @@\\n-x\\n+y\\n'", "test_returns_a_revision", "the patch does not apply to head"),
        ("agent", "task.checkout(copy)", "copy = task.head.path", "test_returns_a_revision", "the part has written to what is not its own"),
        ("agent", "task.checkout(copy)", "copy = task.fixed().path", "test_returns_a_revision", "only the reference agent may ask for the fixed tree"),
        ("agent", "return Revision(task.capture(copy)", "try: patch = task.capture(copy)\n        except Exception: patch = b''\n        return Revision(patch", "test_what_fails_around_it", "an error of capture must go through, not become a revision"),
        ("dataset", "sorted(set(lines))", "__import__('random').sample(lines * 50, 20)", "test_", "the order must be stable"),
        ("dataset", "sorted(set(lines))", "lines + lines", "test_names_and_digests", "ids of instances must differ"),
        ("dataset", '"matching")', '"mood")', "test_names_and_digests", "there is no scoring 'mood'"),
        ("dataset", "except OSError as error", "except KeyError as error", "test_what_is_not_there", "FileNotFoundError"),
        ("dataset", "        found = []\n", "        __import__('socket').create_connection(('localhost', 9))\n        found = []\n", "test_the_same_every_time", "a dataset must be loaded offline"),
        ("dataset", "        found = []\n", "        (path / 'seen').write_text(str(__import__('time').time()))\n        found = []\n", "test_the_same_every_time", "must not change its files"),
        ("report", '"page.txt"', '"../page.txt"', "test_has_a_file", "must be the name of a file in the run's folder, found '../page.txt'"),
        ("report", "{len(results.verdicts)}", "{''.join(v.reason for v in results.verdicts)}", "test_is_text", "must not reach the report"),
        ("report", "return f", "return {1: results}\n        return f", "test_is_text", "is no plain JSON"),
        ("report", "return f", "(run / 'x').write_text('')\n        return f", "test_is_text", "writes nothing"),
        ("report", "{decision.verdict}", "{__import__('time').time()}", "test_is_the_same_every_time", "assert"),
        ("scoring", '"" if done else "nothing said"', '""', "test_every_check_gets_a_verdict", "a miss must have a reason"),
        ("scoring", 'name = "short"', 'name = "short"\n    metrics = {"macro": "mine"}', "test_describes_itself", "every scoring has these metrics: ['macro']"),
        ("scoring", 'name = "short"', 'name = "short"\n    headline = ("mood",)', "test_describes_itself", "mood is in headline or tells, and not in metrics"),
        ("scoring", "done = bool", "raise KeyError('x')\n        done = bool", "test_every_check_gets_a_verdict", "KeyError: 'x'"),
        ("scoring", "class Part(Scoring):", "class Part:", "test_", "is no instance of a subclass of Scoring"),
    ],
)  # fmt: skip
def test_a_part_that_breaks_it_fails_and_says_why(
    look: Callable[..., Run], kind: str, old: str, new: str, test: str, said: str
) -> None:
    assert WHOLE[kind].count(old) == 1
    done = look(kind, WHOLE[kind].replace(old, new))
    assert done.status == 1, done.output
    assert test in done.output
    assert said in " ".join(done.output.split()), done.output


@pytest.mark.network
@pytest.mark.parametrize(
    ("kind", "extra", "test", "said"),
    [
        (
            "runner",
            "    def run(self, *given, **named):\n"
            "        from dataclasses import replace\n"
            "        return replace(super().run(*given, **named), outcome='passed')\n",
            "test_a_hidden_test_fails_at_head",
            "at head: passed",
        ),
        (
            "runner",
            "    version = property(lambda self: str(__import__('time').time_ns()))\n",
            "test_names_itself",
            "version must be the same every time",
        ),
        (
            "runner",
            "    def steers(self, *given):\n        return None\n",
            "test_says_of_every_path",
            "steers() must return a bool",
        ),
    ],
)
def test_a_runner_that_breaks_it_fails(
    look: Callable[..., Run], kind: str, extra: str, test: str, said: str
) -> None:
    done = look(kind, WHOLE[kind].replace("\nPART", extra + "\nPART"))
    assert done.status == 1, done.output
    assert test in done.output
    assert said in " ".join(done.output.split()), done.output


@pytest.mark.network
def test_a_sandbox_that_breaks_it_fails(look: Callable[..., Run]) -> None:
    broken = SANDBOX.replace(
        "    pass\n",
        "    def describe(self):\n"
        "        return {**super().describe(), 'not_isolated': []}\n\n"
        "    def open(self, *given, **named):\n"
        "        named['limits'] = type(named['limits'])(lifetime=3600)\n"
        "        return super().open(*given, **named)\n",
    )
    done = look("sandbox", broken, "-k", "lifetime or flood or description")
    assert done.outcomes()["failed"] == 3, done.output
    assert "test_ends_itself_when_its_lifetime_is_over" in done.output
    assert "not_isolated must say what the sandbox does not separate from the host" in done.output


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("reviewer:nothing", "no reviewer is registered as 'nothing'; known: human, none, cmd, file, llm"),
        ("lamp:x", "kinds are agent, dataset, report, reviewer, runner, sandbox, scoring"),
        ("report:absent:PART", "cannot load absent:PART: ModuleNotFoundError: No module named 'absent'"),
    ],
)
def test_what_names_no_part_is_a_usage_error(contract: Callable[..., Run], part: str, said: str) -> None:
    done = contract(part)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert said in " ".join(done.output.split())


def test_without_the_suites_the_option_is_refused(contract: Callable[..., Run], folder: Path) -> None:
    done = contract("report:json", "--deselect=x")
    assert done.status == 0
    import subprocess
    import sys

    alone = [sys.executable, "-m", "pytest", "--crbench-contract=report:json"]
    said = subprocess.run(alone, cwd=folder, capture_output=True, text=True, check=False)
    assert said.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--crbench-contract goes with --pyargs pytest_crbench.contracts" in said.stderr
