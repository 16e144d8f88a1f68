"""The exit statuses: every situation, serial, under xdist and with xdist switched off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.benchmarks import MODES, Pull, Run, run, run_and_signal, whole, write_dataset

HUMAN = ("--crbench-reviewer=human", "--crbench-agent=suggestions")
#: Without xdist a run is serial, too; that it is the same then is looked at before a release.
modes = pytest.mark.parametrize("mode", [m for m in MODES if whole() or m != "no-xdist"])
#: The controller decides: from one worker it hears as from two, which share a run in some of the tests.
ALONE = {**MODES, "xdist": ["-n", "1"]}


def go(folder: Path, dataset: Path, cache: Path, mode: str, *arguments: str, shared: bool = False) -> Run:
    how = MODES if shared or whole() else ALONE
    return run(folder, dataset, cache, *HUMAN, *how[mode], *arguments)


@modes
def test_gate_met(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    done = go(folder, mixed, cache, mode, "--crbench-fail-under=0.66", shared=True)
    assert done.status == 0, done.output
    assert done.verdict.startswith("crbench: PASSED, overall 0.667 >= 0.66")
    assert done.outcomes() == {"passed": 2, "missed": 1}


def test_gate_without_xdist(folder: Path, mixed: Path, cache: Path) -> None:
    done = go(folder, mixed, cache, "no-xdist", "--crbench-fail-under=0.67")
    assert done.status == 1, done.output
    assert done.verdict.startswith("crbench: FAILED, overall 0.667 < 0.67")


@modes
def test_gate_not_met(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    done = go(folder, mixed, cache, mode, "--crbench-fail-under=0.67")
    assert done.status == 1, done.output
    assert done.verdict.startswith("crbench: FAILED, overall 0.667 < 0.67")


@modes
def test_no_gate_misses_alone_are_success(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    done = go(folder, mixed, cache, mode)
    assert done.status == 0, done.output
    assert "no gate asked for" in done.verdict


@modes
def test_coverage_too_low(folder: Path, broken: Path, cache: Path, mode: str) -> None:
    done = go(folder, broken, cache, mode, "--crbench-fail-under=0.1", shared=True)
    assert done.status == 10, done.output
    assert done.verdict.startswith("crbench: UNDECIDED, coverage 0.800 < 0.95")


@modes
def test_infra_error_with_the_gate_met(folder: Path, broken: Path, cache: Path, mode: str) -> None:
    done = go(folder, broken, cache, mode, "--crbench-fail-under=0.9", "--crbench-min-coverage=80%")
    assert done.status == 0, done.output
    assert done.outcomes() == {"passed": 4, "error": 1}
    assert done.verdict.startswith("crbench: PASSED, overall 1.000 >= 0.9, coverage 0.800 >= 0.8")
    lost = [r for r in done.rows() if r["status"] == "infra_error"]
    assert [r["instance"] for r in lost] == ["lost"]
    assert "<3.0" in lost[0]["reason"]


@modes
def test_infra_error_without_a_gate(folder: Path, broken: Path, cache: Path, mode: str) -> None:
    assert go(folder, broken, cache, mode, "-k", "lost or c1").status == 1


@modes
def test_vendors_own_failure_with_the_gate_met(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    (folder / "test_own.py").write_text("def test_own():\n    assert 1 == 2\n")
    done = go(folder, mixed, cache, mode, "--crbench-fail-under=0.1", "test_own.py")
    assert done.status == 1, done.output
    assert done.outcomes() == {"passed": 2, "missed": 1, "failed": 1}
    assert done.verdict.startswith("crbench: PASSED")
    assert "but 1 other test failed, exit status 1" in done.verdict


@modes
def test_fail_on_miss_makes_a_miss_a_failure(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    done = go(folder, mixed, cache, mode, "--crbench-fail-on-miss", "--crbench-fail-under=0.1")
    assert done.status == 1, done.output
    assert done.outcomes() == {"passed": 2, "failed": 1}


@modes
def test_x_stops_at_the_first_error_and_not_at_a_miss(
    folder: Path, broken: Path, mixed: Path, cache: Path, mode: str
) -> None:
    stopped = go(folder, broken, cache, mode, "-x", "--crbench-fail-under=0.1")
    # pytest itself says 1 here, and 2 with workers; what is left unmeasured makes the gate undecided.
    assert stopped.status == (2 if mode == "xdist" else 10), stopped.output
    assert len(stopped.results()["not_run"]) > 0
    whole = go(folder, mixed, cache, mode, "-x")
    assert whole.status == 0
    assert whole.outcomes() == {"passed": 2, "missed": 1}


@modes
def test_nothing_selected(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    done = go(folder, mixed, cache, mode, "-k", "nosuch", "--crbench-fail-under=0.1")
    assert done.status == pytest.ExitCode.NO_TESTS_COLLECTED, done.output
    assert "PASSED" not in done.verdict


@modes
def test_collect_only_has_no_gate(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    done = go(folder, mixed, cache, mode, "--collect-only", "--crbench-fail-under=1.0")
    assert done.status == 0, done.output
    assert not done.runs


@modes
def test_interrupted(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    started = folder / "started"
    reviewer = f"--crbench-reviewer=cmd:sh -c 'touch {started}; sleep 600'"
    done = run_and_signal(
        folder,
        mixed,
        cache,
        reviewer,
        "--crbench-agent=suggestions",
        "--crbench-fail-under=0.1",
        *MODES[mode],
        when=started,
    )
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    assert done.results()["run"]["interrupted"] is True
    assert len(done.results()["not_run"]) == 3


_COVERAGE_TOO_LOW = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    result = yield
    if not hasattr(session.config, "workerinput"):
        session.testsfailed += 1  # as pytest-cov does
    return result
"""
_TEAR_DOWN = """
import pytest

@pytest.fixture(autouse=True)
def broken():
    yield
    raise RuntimeError("not put away")
"""
_INTERRUPT = """
import pytest

def pytest_crbench_verdict(config, row):
    if row["check"] == "name":
        raise KeyboardInterrupt
"""


@pytest.mark.parametrize("mode", ["serial", "xdist"])
@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (_COVERAGE_TOO_LOW, "something else failed, exit status 1"),
        (_TEAR_DOWN, "3 other tests failed, exit status 1"),
    ],
)
def test_a_failure_that_is_no_check_stands(
    folder: Path, mixed: Path, cache: Path, mode: str, plugin: str, said: str
) -> None:
    (folder / "conftest.py").write_text(plugin)
    done = go(folder, mixed, cache, mode, "--crbench-fail-under=0.1")
    assert done.status == 1, done.output
    assert done.verdict.startswith("crbench: PASSED, overall 0.667 >= 0.1")
    assert done.verdict.endswith(f"; but {said}")
    assert f"crbench: {done.results()['gate']['verdict']}" == done.verdict


def test_a_file_that_cannot_be_collected_stands(folder: Path, mixed: Path, cache: Path) -> None:
    (folder / "test_own.py").write_text("import nothing_of_that_name\n")
    arguments = ("--continue-on-collection-errors", "--crbench-fail-under=0.1", "test_own.py")
    done = go(folder, mixed, cache, "serial", *arguments)
    assert done.status == 1, done.output
    assert done.verdict.endswith("; but something else failed, exit status 1")


def test_an_interrupted_run_says_so_whatever_the_gate_says(folder: Path, mixed: Path, cache: Path) -> None:
    (folder / "interrupts.py").write_text(_INTERRUPT)
    arguments = ("-p", "interrupts", "--crbench-fail-under=0.1", "--crbench-min-coverage=0")
    done = go(folder, mixed, cache, "serial", *arguments)
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    assert done.verdict.startswith("crbench: PASSED")
    assert done.verdict.endswith("; but the run was interrupted, exit status 2")


def test_a_reviewer_cannot_gain_by_what_it_says_of_itself(folder: Path, mixed: Path, cache: Path) -> None:
    """It passes one check of ``first``, and says of ``second`` that its endpoint did not answer."""
    review = {"path": "shop/price_.py", "lines": [2, 2], "body": "x", "suggestion": '    return "price"'}
    tool = folder / "tool.sh"
    tool.write_text(
        'if grep -q name_ "$1"; then echo "429 from the endpoint" >&2; exit 75; fi\n'
        f"cat <<'END'\n{json.dumps([review])}\nEND\n"
    )
    asked = (f"--crbench-reviewer=cmd:sh {tool} {{diff}}", "--crbench-agent=suggestions")
    gate = ("--crbench-fail-under=0.4", "--crbench-min-coverage=0.6")
    done = run(folder, mixed, cache, *asked, *gate)
    assert done.status == 1, done.output
    assert done.verdict.startswith("crbench: FAILED, overall 0.333 < 0.4")
    assert done.verdict.endswith("0.500 without 1 self-reported")
    assert done.statuses()["second::name"] == "infra_error"
    assert "missed, as the gate does: 1 of 3, 33.3" in " ".join(done.output.split())
    told = done.results()["summary"]["self_reported"]
    assert (told["checks"], told["strict"]["passed"], told["strict"]["of"]) == (1, 1, 3)
    undecided = run(folder, mixed, cache, *asked, "--crbench-fail-under=0.2")
    assert undecided.status == 10, undecided.output

    tool.write_text("echo '[]'\n")
    healed = run(folder, mixed, cache, *asked, *gate, "--crbench-resume", "--crbench-rerun-errors")
    assert healed.statuses()["second::name"] == "missed", healed.output


def test_errors_of_the_reviewer_are_repeated_when_asked(folder: Path, mixed: Path, cache: Path) -> None:
    tool = folder / "tool.sh"
    tool.write_text("exit 3\n")
    asked = (f"--crbench-reviewer=cmd:sh {tool} {{diff}}", "--crbench-agent=suggestions")
    assert set(run(folder, mixed, cache, *asked).statuses().values()) == {"reviewer_error"}
    tool.write_text("echo '[]'\n")
    kept = run(folder, mixed, cache, *asked, "--crbench-resume", "--crbench-rerun-errors")
    assert set(kept.statuses().values()) == {"reviewer_error"}
    repeated = run(folder, mixed, cache, *asked, "--crbench-resume", "--crbench-rerun-errors=all")
    assert set(repeated.statuses().values()) == {"missed"}
    assert "errors of the reviewer were repeated" in repeated.output
    odd = run(folder, mixed, cache, *asked, "--crbench-resume", "--crbench-rerun-errors=some")
    assert odd.status == 4
    assert "expected one of outside, all" in odd.output


def test_comments_outside_the_diff_are_left_out_when_asked(folder: Path, mixed: Path, cache: Path) -> None:
    said = [
        {"path": "shop/__init__.py", "lines": [1, 1], "body": "Not of this change."},
        {"path": "shop/name_.py", "lines": [2, 2], "body": "x", "suggestion": '    return "name"'},
    ]
    (folder / "tool.sh").write_text(f"cat <<'END'\n{json.dumps(said)}\nEND\n")
    asked = ("--crbench-reviewer=cmd:sh {cwd}/tool.sh", *HUMAN[1:])
    every = run(folder, mixed, cache, *asked, "-k", "second")
    assert "2 on 1 pull request (2.0 each), 1 outside the diff" in every.output
    diff = run(folder, mixed, cache, *asked, "-k", "second", "--crbench-comments=diff")
    assert diff.statuses() == {"second::name": "passed"}
    (row,) = diff.rows()
    assert (row["review"]["comments"], row["review"]["noted"]) == (1, {"outside-diff left out": 1})
    assert "1 outside-diff left out" in diff.output
    mixed_up = run(folder, mixed, cache, *asked, "-k", "second", "--crbench-resume", "--crbench-comments=all")
    assert mixed_up.status == 4
    assert "comments" in mixed_up.output


@pytest.mark.parametrize(("status", "wanted"), [(3, "reviewer_error"), (75, "infra_error")])
def test_a_reviewer_that_fails_every_time_is_not_asked_for_ever(
    folder: Path, tmp_path: Path, cache: Path, status: int, wanted: str
) -> None:
    pulls = [Pull(f"p{n}", hard=(f"c{n}",)) for n in range(7)]
    dataset, tool, calls = write_dataset(tmp_path / "seven", pulls), folder / "tool.sh", folder / "calls"
    # The words differ by numbers and paths alone.
    tool.write_text(f'echo x >> {calls}\necho "no key in $PWD for $$" >&2\nexit {status}\n')
    asked = (f"--crbench-reviewer=cmd:sh {tool}", "--crbench-agent=suggestions")
    done = run(folder, dataset, cache, *asked, "--crbench-max-errors=3")
    assert len(calls.read_text().split()) == 3, done.output
    assert set(done.statuses().values()) == {wanted}
    assert done.results()["summary"]["self_reported"]["strict"]["of"] == 7, "none leaves the rate of the gate"
    reasons = [row["reason"] for row in done.rows()]
    assert sum("not asked: the reviewer failed 3 times in a row" in reason for reason in reasons) == 4

    tool.write_text("echo '[]'\n")
    again = run(folder, dataset, cache, *asked, "--crbench-resume", "--crbench-rerun-errors=all")
    assert set(again.statuses().values()) == {"missed"}, again.output
