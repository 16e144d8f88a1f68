"""A run of a part of its dataset says so in every report, and hands it on to runs that go on with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.benchmarks import Pull, Run, run, write_dataset

from pytest_crbench.cli import main as crbench

#: Scored in moments: no sandbox, no model.
PLAIN = ("--crbench-scoring=matching", "--crbench-matcher=exact", "--crbench-offline")
NONE = ("--crbench-reviewer=none", *PLAIN)
PART = "2 of 3 checks selected"


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return write_dataset(
        tmp_path / "three", [Pull("first", hard=("price", "tax")), Pull("second", hard=("name",))]
    )


def chosen(done: Run) -> set[str]:
    return {f"{row['instance']}::{row['check']}" for row in done.rows()}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "xdist"])
@pytest.mark.parametrize("how", ["keyword", "node id", "hook"])
def test_a_selection_stands_in_every_report(
    folder: Path, three: Path, cache: Path, how: str, workers: tuple[str, ...]
) -> None:
    arguments = {"keyword": ["-k", "first"], "node id": ["small::first"], "hook": []}[how]
    if how == "hook":
        (folder / "conftest.py").write_text("def pytest_crbench_select(instances):\n    del instances[1:]\n")
    done = run(folder, three, cache, *NONE, "--crbench-fail-under=0.1", *workers, *arguments)
    assert done.status == 1, done.output
    assert done.verdict.endswith(PART)
    assert f"datasets: {PART}; rates and gate" in done.output
    assert done.results()["run"]["selection"] == {"selected": 2, "of": 3}
    assert PART in done.results()["gate"]["verdict"]
    assert (done.runs[-1] / "summary.md").read_text("utf-8").count(PART) == 2
    record = json.loads((done.runs[-1] / "run.json").read_text("utf-8"))
    assert record["selected_nodes"] == [f"small::first::{name}[matching]" for name in ("price", "tax")]


def test_the_whole_dataset_has_no_mark(folder: Path, three: Path, cache: Path) -> None:
    done = run(folder, three, cache, *NONE)
    assert "selected" not in done.verdict
    assert done.results()["run"]["selection"] == {"selected": 3, "of": 3}


def test_what_goes_on_with_a_part_is_that_part(
    folder: Path, three: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(folder, three, cache, *NONE, "-k", "first")
    name = first.runs[-1].name

    resumed = run(folder, three, cache, "--crbench-resume", "--crbench-fail-under=0.1")
    assert chosen(resumed) == {"first::price", "first::tax"}
    assert resumed.verdict.endswith(f"resumed, {PART}")
    for workers in ((), ("-n", "2")):
        replayed = run(folder, three, cache, f"--crbench-replay={name}", *PLAIN, *workers)
        assert chosen(replayed) == {"first::price", "first::tax"}, replayed.output
        assert f"replay of {name}, {PART} (no gate asked for)" in replayed.verdict

    narrower = run(folder, three, cache, f"--crbench-replay={name}", *PLAIN, "-k", "tax")
    assert chosen(narrower) == {"first::tax"}
    assert "1 of 3 checks selected" in narrower.verdict
    apart = run(folder, three, cache, f"--crbench-replay={name}", *PLAIN, "small::second")
    assert apart.status == pytest.ExitCode.USAGE_ERROR
    assert f"small::second: not among the checks that {name} had selected" in apart.output

    assert crbench(["gate", str(first.runs[0]), "--fail-under", "0.1"]) == 1
    assert PART in capsys.readouterr().out.splitlines()[-1]


def test_a_baseline_says_how_many_of_its_checks_were_compared(folder: Path, three: Path, cache: Path) -> None:
    whole = run(folder, three, cache, *NONE)
    gate = (f"--crbench-baseline={whole.runs[-1]}", "--crbench-fail-if-regressed")
    assert "on 3 common checks, " in run(folder, three, cache, *NONE, *gate).verdict
    part = run(folder, three, cache, *NONE, *gate, "-k", "first")
    assert "on 2 common checks of its 3, " in part.verdict, part.output


def test_repeats_are_counted_as_measurements(folder: Path, three: Path, cache: Path) -> None:
    done = run(folder, three, cache, *NONE, "--crbench-repeats=2", "-k", "first")
    assert "4 of 6 measurements selected" in done.verdict
