"""The line that a long run prints now and then."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import MODES, run

from pytest_crbench.core.model import Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.plugin.outcome import EVERY, Progress


def verdicts(*statuses: Status) -> list[Verdict]:
    return [
        Verdict("d", "i", str(n), status=status, reason="", facets={}, check_digest="x")
        for n, status in enumerate(statuses)
    ]


def test_a_line_is_due_after_a_while_and_says_what_is_known() -> None:
    progress = Progress()
    found = verdicts(Status.PASSED, Status.MISSED, Status.MISSED, Status.INFRA_ERROR)
    assert progress.line(found, 8) is None
    progress.began -= 4 * EVERY
    progress.said -= EVERY
    assert progress.line(found, 8) == "4 of 8 done, 33 % passed so far, about 2 min left"
    assert progress.line(found, 8) is None


def test_no_line_at_the_start_and_at_the_end() -> None:
    progress = Progress()
    progress.said -= EVERY
    assert progress.line([], 8) is None
    assert progress.line(verdicts(Status.PASSED), 1) is None


def test_nothing_measured_is_no_rate() -> None:
    progress = Progress()
    progress.said -= EVERY
    line = progress.line(verdicts(Status.INFRA_ERROR), 3)
    assert line is not None
    assert "none measured so far" in line


@pytest.mark.parametrize("mode", MODES)
def test_it_stands_on_a_line_of_its_own(folder: Path, mixed: Path, cache: Path, mode: str) -> None:
    (folder / "conftest.py").write_text(
        "import pytest_crbench.plugin.outcome\n\npytest_crbench.plugin.outcome.EVERY = 0\n"
    )
    asked = ("--crbench-reviewer=human", "--crbench-agent=suggestions", *MODES[mode])
    lines = [line for line in run(folder, mixed, cache, *asked).output.splitlines() if " of 3 done" in line]
    assert [line.partition(" done")[0] for line in lines] == ["crbench: 1 of 3", "crbench: 2 of 3"]
