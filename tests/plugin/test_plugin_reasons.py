"""Why a check was missed, or not measured, can be read where the run is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import MODES, Pull, run, write_dataset

ASKED = ("--crbench-reviewer=human", "--crbench-agent=suggestions")
_WHY = "small::first::tax: failed: AssertionError: assert 'wrong' == 'tax'"


@pytest.mark.parametrize("mode", ["serial", "xdist"])
@pytest.mark.parametrize(("asked", "told"), [("-rA", True), ("-v", True), ("-q", False)])
def test_a_miss_says_why(folder: Path, mixed: Path, cache: Path, mode: str, asked: str, told: bool) -> None:
    done = run(folder, mixed, cache, *ASKED, "-k", "first", asked, *MODES[mode])
    assert (_WHY in done.output) is told, done.output
    assert "`AssertionError: assert" in (done.runs[-1] / "summary.md").read_text().replace("`failed: ", "`")


def test_the_log_of_a_hidden_test_ends_with_its_own_result(folder: Path, mixed: Path, cache: Path) -> None:
    done = run(folder, mixed, cache, *ASKED, "-k", "first")
    place = done.runs[-1] / "evaluations" / "small" / "first" / "review-1" / "checks"
    for name, result in (("price", "passed"), ("tax", "failed")):
        said, last = (place / f"{name}.log").read_text().splitlines()[-2:]
        assert last.startswith("crbench: hidden test test_")
        assert last.endswith(f".py: {result}")
        assert "must fail" in said


def test_one_cause_is_told_once(folder: Path, tmp_path: Path, cache: Path) -> None:
    pulls = [Pull(f"p{n}", hard=("price", "tax")) for n in range(3)]
    data = write_dataset(tmp_path / "data", pulls)
    (folder / "crash.py").write_text("raise SystemExit('no licence left')\n")
    done = run(folder, data, cache, "--crbench-reviewer=cmd:{python} {cwd}/crash.py", ASKED[1])
    assert done.outcomes() == {"errors": 6}, done.output
    # In pytest's list of errors whole; in our table with the number of checks that it cost.
    assert done.output.count("said: ") - done.output.partition("short test summary")[2].count("said: ") == 1
    assert done.output.count("reviewer_error crashed: the reviewer") == 1
    assert "and 5 more: reviewer_error" in done.output
    assert done.output.count("\nreviewer_error: the same as small::p0::price") == 5
    assert (done.runs[-1] / "summary.md").read_text().count("no licence left") == 1
    # Files for programs keep all of it.
    assert ["no licence left" in row["reason"] for row in done.results()["unmeasured"]] == [True] * 6
