"""Every report says both bounds, the coverage, and what was not measured and why."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support.benchmarks import Pull, run, write_dataset

from pytest_crbench.cli import main as crbench

pytestmark = [pytest.mark.network, pytest.mark.slow]

#: Says nothing of one pull request, and crashes on another.
REVIEWER = """
import os, sys
if os.path.exists("shop/crash_.py"):
    sys.exit("no idea")
print('{"comments": []}')
"""


def test_one_run_and_every_report_of_it(
    folder: Path, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pulls = [
        Pull("first", hard=("price",)),
        Pull("second", hard=("crash",)),
        Pull("third", hard=("tax",), python=">=3.99"),
        Pull("fourth", hard=("name",)),
    ]
    dataset = write_dataset(tmp_path / "four", pulls)
    (tmp_path / "reviewer.py").write_text(REVIEWER)
    done = run(
        folder,
        dataset,
        cache,
        f"--crbench-reviewer=cmd:python {tmp_path / 'reviewer.py'}",
        "--crbench-agent=none",
        "--crbench-min-coverage=0.9",
        "--crbench-fail-on-miss",
        "--junitxml=junit.xml",
        # The family in which a test case has properties.
        *("-o", "junit_family=xunit1"),
        # Deselected is not unmeasured: the fourth is in no number.
        *("-k", "not fourth"),
    )
    place = done.runs[-1].relative_to(folder)

    # The terminal. A miss is called what it is, and asking for coverage alone is a gate.
    assert done.status == 1, done.output
    assert done.verdict == (
        "crbench: UNDECIDED, coverage 0.333 < 0.9 (1 reviewer_error, 1 infra_error), measured 0.000 (1 of 1)"
        ", 3 of 4 checks selected; but 1 check missed (--crbench-fail-on-miss), exit status 1"
    ).replace("(1 of 1)", "(0 of 1)")
    assert re.search(r"^overall +0 +2 +0\.0 ", done.output, re.MULTILINE)
    assert re.search(r"^ +measured +0 +1 +0\.0 ", done.output, re.MULTILINE)
    assert "bounds    0.0 - 66.7, had what is not measured (2) been missed, or passed" in done.output
    # Every log that is named can be opened from where the run was started.
    logs = set(re.findall(rf"{place}/logs/small/\w+\.log", done.output))
    assert {Path(log).stem for log in logs} == {"second", "third"}
    assert all((folder / log).is_file() for log in logs)
    assert f"log: {place}/logs/small/third.log" in done.output

    # results.json and summary.md.
    results = done.results()
    overall = results["summary"]["overall"]
    assert (overall["strict"]["of"], overall["measured"]["of"], overall["selected"]) == (2, 1, 3)
    assert overall["bounds"] == {"lowest": 0.0, "highest": 0.666667}
    found = {one["instance"]: (one["status"], one["cause"]) for one in results["unmeasured"]}
    assert found == {"second": ("reviewer_error", "crashed"), "third": ("infra_error", "no-interpreter")}
    assert all(one["reason"] and (folder / place / one["log"]).is_file() for one in results["unmeasured"])
    summary = (folder / place / "summary.md").read_text("utf-8")
    assert "|  | *measured* | 0 | 1 | 0.0 |" in summary
    assert "`small::third::tax`: infra_error no-interpreter, `the local sandbox" in summary
    assert done.verdict.partition("; but")[0].partition("UNDECIDED")[2].split(",")[0] in summary

    # JUnit.
    tree = ElementTree.parse(folder / "junit.xml")
    suite = {p.get("name"): p.get("value") for p in tree.findall("./testsuite/properties/property")}
    assert (suite["crbench_strict"], suite["crbench_measured"]) == ("0/2", "0/1")
    assert (suite["crbench_coverage"], suite["crbench_unmeasured"]) == ("0.333333", "2")
    cases = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.findall("properties/property")}
        for case in tree.iter("testcase")
    }
    assert cases["tax"] == {"crbench_status": "infra_error", "crbench_cause": "no-interpreter"}
    assert cases["price"] == {"crbench_status": "missed"}

    # The commands.
    assert crbench(["gate", str(folder / place), "--min-coverage", "0.9"]) == 10
    said = capsys.readouterr().out
    assert "strict     0 of 2, 0.0" in said
    assert "measured   0 of 1, 0.0" in said
    assert f"log {folder / place}/logs/small/third.log" in said
    assert crbench(["gate", str(folder / place), "--min-coverage", "0.3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "met"
    assert len(told["unmeasured"]) == 2
    assert crbench(["compare", str(folder / place), str(folder / place)]) == 0
    said = capsys.readouterr().out
    assert said.count("coverage   1 of 3 measured (1 reviewer_error, 1 infra_error)") == 2
    assert "small::third::tax: A infra_error, B infra_error (the local sandbox found no Python" in said


def test_a_gate_over_nothing_is_not_met(folder: Path, tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "one", [Pull("first", hard=("price",))])
    asked = ("--crbench-reviewer=none", "--crbench-agent=none", "--crbench-fail-under=0")
    done = run(folder, dataset, cache, *asked, "-k", "nosuchcheck")
    assert done.status == 5, done.output
    assert done.verdict == "crbench: UNDECIDED, no check was selected; the exit status is pytest's"
