"""A scoring of another package, end to end: it touches no file of ours."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import MODES, Pull, Run, run, write_dataset
from support.foreign import install

from pytest_crbench import load_results
from pytest_crbench.cli import main as crbench

if TYPE_CHECKING:
    from pathlib import Path

SCORING = '''
from dataclasses import dataclass, replace
from fractions import Fraction

from pytest_crbench import Scoring, Status


@dataclass
class Words:
    """How many words the comments of some reviews have."""

    words: int
    comments: int
    reviews: int
    remarks = ()

    def value(self, metric):
        return Fraction(self.comments, self.words) if self.words else None

    def lines(self):
        yield "words", f"{self.words} in {self.comments} comments"

    def to_json(self):
        return {"words": self.words, "comments": self.comments}


class Short(Scoring):
    """A check passes if some comment of the review has at most three words."""

    name = "short"
    passed = "short"
    rate = "brief"
    decided = "decided by the length of comments"
    metrics = {"brevity": "comments per word"}
    headline = ("brevity",)

    def decider(self, settings, run):
        return self

    def verdict(self, evaluation, check):
        counts = [len(comment.body.split()) for comment in evaluation.review.comments]
        evaluation.counts[self.name] = {"words": sum(counts)}
        short = any(count <= 3 for count in counts)
        return replace(
            evaluation.blank(check, self.name),
            status=Status.PASSED if short else Status.MISSED,
            reason="" if short else f"the shortest comment has {min(counts, default=0)} words",
        )

    def measure(self, verdicts):
        reviews = {(v.key.dataset, v.key.instance, v.key.repeat): v for v in verdicts if v.review}
        words = sum(v.counts.get("words", 0) for v in reviews.values())
        comments = sum(v.review.comments for v in reviews.values())
        return Words(words, comments, len(reviews)) if reviews else None


SHORT = Short()
'''
#: Says three words of the first pull request, and more of the second.
REVIEWER = """
import sys
said = "wrong price here" if "price" in open(sys.argv[1]).read() else "this is wrong as far as I can see"
print('{"comments": [{"path": "shop/x.py", "line": 1, "body": "%s"}]}' % said)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scoring's module, installed."""
    entry = ("scorings", "short = short_scoring:SHORT")
    return install(tmp_path / "site", monkeypatch, "short_scoring", SCORING, entry)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_dataset(
        tmp_path / "data", [Pull("first", hard=("price", "tax")), Pull("second", hard=("name",))]
    )


def go(folder: Path, data: Path, cache: Path, *arguments: str) -> Run:
    (folder / "reviewer.py").write_text(REVIEWER)
    reviewer = "--crbench-reviewer=cmd:{python} {cwd}/reviewer.py {diff}"
    return run(folder, data, cache, reviewer, "--crbench-scoring=short", *arguments)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("mode", ["serial", "xdist"])
def test_collection_gate_table_and_files(folder: Path, data: Path, cache: Path, mode: str) -> None:
    done = go(
        folder,
        data,
        cache,
        "--crbench-fail-under=0.6",
        "--crbench-fail-under=brevity:0.2",
        "--junitxml=junit.xml",
        "-v",
        *MODES[mode],
    )
    assert done.status == 1, done.output
    assert done.outcomes() == {"passed": 2, "missed": 1}
    assert "small::first::price[short]" in done.output
    assert done.verdict.startswith(
        "crbench: FAILED, brevity 0.167 < 0.2, overall 0.667 >= 0.6, coverage 1.000"
    )
    assert re.search(r"^ +short +of +rate", done.output, re.M)
    assert re.search(r"^words +12 in 2 comments", done.output, re.M)
    assert "sandbox none" in done.output, "nothing is executed"
    found = done.results()
    assert {f"{row['check']}: {row['status']}" for row in found["verdicts"]} == {
        "price: passed",
        "tax: passed",
        "name: missed",
    }
    assert found["summary"]["scoring"] == "short"
    assert found["summary"]["metrics"][0] == {"facet": "", "value": "", "words": 12, "comments": 2}
    properties = {p.get("name"): p.get("value") for p in ET.parse(folder / "junit.xml").iter("property")}
    assert properties["crbench_brevity"] == "0.166667"
    assert "| short | of |" in (done.runs[-1] / "summary.md").read_text()
    assert load_results(done.runs[-1]).scorings == ("short",)


@pytest.mark.usefixtures("installed")
def test_a_run_is_resumed(folder: Path, data: Path, cache: Path) -> None:
    first = go(folder, data, cache, "-k", "first")
    assert first.outcomes() == {"passed": 2, "deselected": 1}, first.output
    (folder / "reviewer.py").write_text("raise SystemExit('asked again')\n")
    again = run(folder, data, cache, "--crbench-resume", "--crbench-fail-under=0.6")
    assert again.status == 0, again.output
    assert again.outcomes()["passed"] == 2
    assert again.verdict.startswith("crbench: PASSED, overall 1.000 >= 0.6")


@pytest.mark.usefixtures("installed")
def test_beside_another_scoring(folder: Path, data: Path, cache: Path) -> None:
    done = go(folder, data, cache, "--crbench-scoring=matching,short", "--crbench-matcher=exact")
    assert [summary["scoring"] for summary in done.results()["summaries"]] == ["matching", "short"], (
        done.output
    )
    assert "; brief 0.667, brevity 0.167" in done.verdict


def test_results_are_read_where_it_is_not_installed(
    folder: Path,
    data: Path,
    cache: Path,
    installed: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = go(folder, data, cache)
    monkeypatch.delenv("PYTHONPATH")
    assert crbench(["gate", str(done.runs[-1]), "--fail-under", "0.6"]) == 0
    assert "overall 0.667 >= 0.6" in capsys.readouterr().out
    assert crbench(["show", str(done.runs[-1])]) == 0
    assert "price (short)" in capsys.readouterr().out
    assert crbench(["compare", str(done.runs[-1]), str(done.runs[-1])]) == 0
    assert "overall" in capsys.readouterr().out
    assert crbench(["tables", str(done.runs[-1])]) == 2
    assert "no paper has a table of the scoring short" in capsys.readouterr().err
    refused = run(folder, data, cache, "--crbench-reviewer=none", "--crbench-scoring=short")
    assert refused.status == pytest.ExitCode.USAGE_ERROR
    assert "unknown scoring; known: tests, matching" in refused.output


def test_a_scoring_that_cannot_be_imported_is_named(
    folder: Path, data: Path, cache: Path, installed: Path, tmp_path: Path
) -> None:
    installed.write_text("import nothing_of_that_name\n")
    done = go(folder, data, cache)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "scoring 'short' cannot be loaded from short_scoring:SHORT: ModuleNotFoundError" in done.output


def test_json_has_no_metrics_of_ours(folder: Path, data: Path, cache: Path) -> None:
    done = run(
        folder,
        data,
        cache,
        "--crbench-reviewer=none",
        "--crbench-scoring=matching",
        "--crbench-matcher=exact",
        "--crbench-offline",
    )
    summary = json.loads((done.runs[-1] / "results.json").read_text())["summary"]
    assert summary["metrics"] == []
    assert summary["agreement"][0]["recall"]["value"] == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "SHORT = Short()",
            "SHORT = Short",
            "is no instance of a subclass of pytest_crbench.Scoring, but type",
        ),
        (
            "        return self\n",
            "        raise KeyError('no lamp')\n",
            "scoring 'short' failed: KeyError: 'no lamp'",
        ),
    ],
    ids=["a class", "a decider that raises"],
)
def test_a_scoring_that_is_none_is_refused(
    folder: Path, data: Path, cache: Path, installed: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert SCORING.count(old) == 1
    installed.write_text(SCORING.replace(old, new))
    done = go(folder, data, cache)
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_an_exception_in_a_verdict_is_no_score(
    folder: Path, data: Path, cache: Path, installed: Path
) -> None:
    broken = SCORING.replace("        short = any(", "        short = 1 / 0 or any(")
    installed.write_text(broken)
    done = go(folder, data, cache, "--crbench-fail-under=0.1")
    assert done.status == 10, done.output
    assert {row["status"] for row in done.rows()} == {"infra_error"}
    assert "ZeroDivisionError" in done.output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("words = sum(v.counts.get", "words = 1 / 0 + sum(v.counts.get"),
        ("Fraction(self.comments, self.words) if", "1 / 0 if"),
        ('        yield "words"', '        yield 1 / 0, "words"'),
        ('return {"words": self.words', 'return {"words": 1 / 0'),
    ],
    ids=["measure", "value", "lines", "to_json"],
)
def test_numbers_that_cannot_be_made_end_no_report(
    folder: Path, data: Path, cache: Path, installed: Path, old: str, new: str
) -> None:
    assert SCORING.count(old) == 1
    installed.write_text(SCORING.replace(old, new))
    done = go(folder, data, cache, "--crbench-fail-under=brevity:0.1")
    assert done.status == 10, done.output
    assert done.outcomes() == {"passed": 2, "missed": 1}
    said = "the scoring short failed to make its numbers: ZeroDivisionError"
    assert said in done.output
    assert "INTERNALERROR" not in done.output
    assert said in str(done.results()["summary"])


def test_a_stage_of_its_own_is_made_once_and_keeps_what_it_likes(
    folder: Path, data: Path, cache: Path, installed: Path
) -> None:
    begins = "        counts = [len("
    assert SCORING.count(begins) == 1
    stage = """        def make():
            evaluation.log("counting")
            return {"n": 1}

        evaluation.kept[self.name] = evaluation.stage(self.name, "key", make)
"""
    installed.write_text(SCORING.replace(begins, stage + begins))
    done = go(folder, data, cache)
    assert done.outcomes() == {"passed": 2, "missed": 1}, done.output
    assert {review["keys"]["short"] for review in done.results()["reviews"]} == {"key"}
    log = (done.runs[-1] / "logs" / "small" / "first.log").read_text()
    assert log.count("counting") == 1, "two checks of one pull request"


def test_what_others_bring_takes_no_gate_from_a_run_of_ours(
    folder: Path, data: Path, cache: Path, installed: Path, tmp_path: Path
) -> None:
    taking = SCORING.replace(
        'metrics = {"brevity"', 'metrics = {"macro": "mine", "precision": "mine", "brevity"'
    )
    ours = ("--crbench-reviewer=none", "--crbench-scoring=matching", "--crbench-matcher=exact")
    for text in (taking, "raise ImportError('not today')\n"):
        installed.write_text(text)
        gate = ("--crbench-fail-under=macro:0.1", "--crbench-fail-under=precision:0.1")
        done = run(folder, data, cache, *ours, "--crbench-offline", *gate)
        assert done.status in (1, 10), done.output
        assert "macro 0.000 < 0.1" in done.verdict


@pytest.mark.network
def test_it_can_have_the_agent_revise_the_code(
    folder: Path, data: Path, cache: Path, installed: Path
) -> None:
    asks = SCORING.replace('    name = "short"\n', '    name = "short"\n    needs_agent = True\n').replace(
        "evaluation.review.comments]\n",
        "evaluation.review.comments]\n        counts += [99] if evaluation.revision.patch else []\n",
    )
    installed.write_text(asks)
    done = go(folder, data, cache, "--crbench-agent=cmd:sh -c 'echo new > made.py'")
    assert done.outcomes() == {"passed": 2, "missed": 1}, done.output
    assert "agent sh" in done.output.replace("agent cmd:sh", "agent sh")
    assert {row["counts"]["short"]["words"] for row in done.results()["reviews"]} == {3 + 99, 9 + 99}
    refused = go(folder, data, cache, "--crbench-offline")
    assert refused.status == pytest.ExitCode.USAGE_ERROR
