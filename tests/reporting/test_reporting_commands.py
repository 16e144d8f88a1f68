"""``crbench compare`` and ``crbench gate`` over real files: output and exit statuses."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import pytest
from report_runs import broken, run_of, verdicts

from pytest_crbench.commands import compare, gate, tables
from pytest_crbench.core.status import Status
from pytest_crbench.host.files import write_json
from pytest_crbench.reports.markdown import markdown
from pytest_crbench.reports.results import document, load_results
from pytest_crbench.reports.table import table
from pytest_crbench.statistics.gate import decide, make_gate

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crbench.statistics.results import Results


def crbench(*argv: object) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers(required=True)
    for command in (compare, gate, tables):
        command.add_parser(subparsers)
    args = parser.parse_args([str(one) for one in argv])
    status: int = args.run(args)
    return status


def saved(folder: Path, name: str, results: Results) -> Path:
    write_json(folder / name / "results.json", document(results, None))
    return folder / name


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    """12 of 40 passed; one more; a broken engine; another agent."""
    better = verdicts()
    better[1] = broken(better[1], Status.PASSED, "")
    half = [broken(v, Status.INFRA_ERROR, "engine lost") if n % 2 else v for n, v in enumerate(verdicts())]
    return {
        "plain": saved(tmp_path, "plain", run_of(verdicts())),
        "better": saved(tmp_path, "better", run_of(better, reviewer={"name": "other"})),
        "half": saved(tmp_path, "half", run_of(half)),
        "agent": saved(tmp_path, "agent", run_of(verdicts(), agent={"name": "suggestions"})),
    }


@pytest.mark.parametrize(
    ("name", "options", "status", "last"),
    [
        ("plain", ["--fail-under=0.3"], 0, "crbench: PASSED, overall 0.300 >= 0.3, coverage 1.000 >= 0.95"),
        ("plain", ["--fail-under=0.31"], 1, "crbench: FAILED, overall 0.300 < 0.31, coverage 1.000 >= 0.95"),
        ("half", ["--fail-under=0.3"], 10, "crbench: UNDECIDED, coverage 0.500 < 0.95 (20 infra_error)"),
        ("half", ["--fail-under=0.1", "--min-coverage=50%"], 0, "crbench: PASSED"),
        ("plain", ["--fail-over=comments_per_pr:7"], 1, "crbench: FAILED, comments_per_pr 7.500 > 7"),
        (
            "plain",
            ["--baseline={better}", "--fail-if-regressed=0"],
            1,
            "crbench: FAILED, regressed: 0.300 against",
        ),
        ("plain", ["--baseline={better}", "--fail-if-regressed"], 0, "crbench: PASSED, not regressed"),
        ("plain", ["--baseline={better}", "--fail-if-regressed=0.1"], 0, "crbench: PASSED, not regressed"),
        ("plain", ["--baseline={agent}", "--fail-if-regressed"], 10, "crbench: UNDECIDED, baseline not comp"),
        ("plain", [], 2, ""),
        ("plain", ["--fail-under=nan"], 2, ""),
        ("plain", ["--fail-under=f1:0.1"], 2, ""),
        ("plain", ["--fail-if-regressed"], 2, ""),
        ("absent", ["--fail-under=0.3"], 2, ""),
    ],
)
def test_gate(
    runs: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    name: str,
    options: list[str],
    status: int,
    last: str,
) -> None:
    path = runs.get(name, runs["plain"].parent / name)
    assert crbench("gate", path, *(option.format(**runs) for option in options)) == status
    out, err = capsys.readouterr()
    if status == 2:
        assert out == ""
        assert err.startswith("crbench gate: ")
    else:
        assert out.splitlines()[-1].startswith(last)
        assert err == ""


def test_gate_names_its_own_options(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("gate", runs["plain"], "--fail-under=30") == 2
    assert "--fail-under=30: 30 is more than 1" in capsys.readouterr().err


def test_gate_as_json(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("gate", runs["plain"], "--fail-under=0.9", "--json") == 1
    assert json.loads(capsys.readouterr().out)["outcome"] == "not-met"


def test_compare(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("compare", runs["plain"], runs["better"]) == 0
    out = capsys.readouterr().out
    assert "A  cmd:mytool" in out
    assert "B  other" in out
    assert "Passed only by B (1)\n  releases::package-01::check-0\n" in out
    overall = next(line for line in out.splitlines() if line.startswith("overall"))
    assert overall.split()[:9] == ["overall", "40", "12", "0", "1", "27", "30.0", "32.5", "+2.5"]


def test_compare_as_json(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("compare", runs["plain"] / "results.json", runs["better"], "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [key["instance"] for key in found["only_second"]] == ["package-01"]
    assert found["overall"]["pairs"] == 40
    assert found["overall"]["change"] == 0.025
    assert found["overall"]["interval"][0] < 0.025 < found["overall"]["interval"][1]


def test_compare_as_markdown(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("compare", runs["plain"], runs["half"], "--markdown") == 0
    out = capsys.readouterr().out
    assert "Not measured in both (20)" in out


def test_compare_refuses(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("compare", runs["plain"], runs["agent"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "the coding agents differ (llm and suggestions)" in err


def test_compare_is_aligned_and_short(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench("compare", runs["plain"], runs["better"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Each run by itself: both bounds and the coverage, also of what the two have not in common.
    assert [line.split()[0] for line in lines[:6]] == ["A", "strict", "coverage", "B", "strict", "coverage"]
    head, *rows = lines[7:14]
    rows = [row for row in rows if row.strip()]
    assert len(rows) == 6
    for row in rows:
        assert len(row) <= 100
        # Each number ends where the name of its column does.
        for name in ("checks", "both", "only A", "only B", "neither", "B - A"):
            assert row[head.index(name) + len(name) - 1].isdigit(), (name, row)


def test_a_comparison_says_what_the_data_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    datasets = [{"name": "releases", "notice": "Not made by reviewers."}]
    run = run_of(verdicts(), datasets=datasets, agent={"name": "reference"})
    first, second = saved(tmp_path, "a", run), saved(tmp_path, "b", run)
    for form in ([], ["--markdown"], ["--json"]):
        assert crbench("compare", first, second, *form) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert said.count("Not made by reviewers") == 1
        assert "for checking the harness only" in said


@pytest.mark.parametrize(
    "arguments",
    [["gate", "{file}", "--fail-under=0.3"], ["compare", "{file}", "{plain}"], ["tables", "{file}"]],
)
def test_a_check_that_stands_twice_in_a_file_is_refused(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    file = runs["plain"] / "doubled.json"
    content = json.loads((runs["plain"] / "results.json").read_text("utf-8"))
    content["verdicts"] += [row for row in content["verdicts"] if row["status"] == "passed"]
    file.write_text(json.dumps(content), encoding="utf-8")
    assert crbench(*(one.format(file=file, **runs) for one in arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{file}, verdicts[40]: a second row for releases::package-00::check-0" in err


def test_the_lost_checks_of_a_regression_are_named(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert crbench("gate", runs["plain"], "--baseline", runs["better"], "--fail-if-regressed=0") == 1
    assert "\nlost       releases::package-01::check-0\n" in capsys.readouterr().out
    first, second = (load_results(runs[name]) for name in ("better", "plain"))
    decision = decide(make_gate(baseline=first, fail_if_regressed="0"), second.summary(), second)
    assert decision.lost == (("releases", "package-01", "check-0"),)
    assert "lost      releases::package-01::check-0" in table(second, second.summaries, decision=decision)
    page = markdown(second, second.summaries, decision)
    assert "<summary>Lost against the baseline (1)</summary>\n\n- `releases::package-01::check-0`\n" in page
    (condition, _) = document(second, decision)["gate"]["conditions"]
    assert [(key["instance"], key["check"]) for key in condition["lost"]] == [("package-01", "check-0")]


def test_a_long_list_of_lost_checks_is_cut(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    passed = [broken(one, Status.PASSED, "") for one in verdicts()]
    best = saved(runs["plain"].parent, "best", run_of(passed))
    assert crbench("gate", runs["plain"], "--baseline", best, "--fail-if-regressed=0") == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("lost ")]
    assert len(lines) == 21
    assert lines[-1] == "lost       ... and 8 more, see results.json"
