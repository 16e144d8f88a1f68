"""Surroundings that a run is not used to: little of what a process has, and a clock that jumps."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import Pull, Run, command, environment, run, write_dataset
from support.clock import settable_clock
from support.programs import write_programs
from support.stories import RESUME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from support.faults import Told

pytestmark = [pytest.mark.network, pytest.mark.slow]
HUMAN = ("--crbench-reviewer=human", "--crbench-agent=suggestions", "-p", "no:xdist")
DAY = 86400
#: What no ASCII can tell, in the dataset and so in its results.
TITLE = "Prüfung – 試験"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """One pull request with two checks."""
    made = write_dataset(tmp_path / "small", [Pull("a", fixable=("a1",), hard=("a2",))])
    about = made / "dataset.toml"
    about.write_text(about.read_text("utf-8").replace('"Small"', f'"{TITLE}"'), "utf-8")
    return made


def _shell(folder: Path, script: str, whole: list[str], env: Mapping[str, str] | None = None) -> Run:
    """Run ``script``, in which "$@" is the run."""
    done = subprocess.run(
        ["sh", "-c", script, "sh", *whole],
        cwd=folder,
        env={**environment(), **(env or {})} if env is None or "PATH" not in env else dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )
    return Run(done.returncode, done.stdout, folder)


def test_few_descriptors(folder: Path, dataset: Path, cache: Path, fault: Told) -> None:
    """The run may open no more than sixteen files.

    Status: none
    Message: Too many open files. Use fewer workers, or raise the limits (`ulimit -n`
    """
    done = _shell(folder, 'ulimit -n 16; "$@"', command(dataset, cache, *HUMAN))
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert "Traceback" not in done.output
    fault.assert_told(done.output)
    # 64 are plenty.
    done = _shell(folder, 'ulimit -n 64; "$@"', command(dataset, cache, *HUMAN))
    assert done.statuses() == {"a::a1": "passed", "a::a2": "missed"}, done.output


def test_no_home_no_locale_no_temporary_folder(folder: Path, dataset: Path, cache: Path, fault: Told) -> None:
    """There is no HOME, the locale is ASCII, and TMPDIR names a folder that nobody can write to.

    Status: passed
    Message: overall 0.500, coverage 1.000
    """
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # Where packages come from is no luxury here.
    kept = {k: v for k, v in environment().items() if k.startswith(("PIP_", "UV_", "SSL_"))}
    whole = command(dataset, cache, *HUMAN)
    done = _shell(folder, '"$@"', whole, {**kept, **bare, "TMPDIR": "/proc"})
    assert done.statuses() == {"a::a1": fault.status, "a::a2": "missed"}, done.output
    fault.assert_told(done.output)
    assert done.results()["run"]["datasets"][0]["title"] == TITLE


def test_a_broken_pipe(folder: Path, dataset: Path, cache: Path, fault: Told) -> None:
    """Nobody reads on what the run prints (a pipe into `head -1`): it ends at the next line.

    There is nobody to tell: the status is pytest's for that. The message is that of the resumed run.

    Status: passed
    Message: overall 0.500, coverage 1.000
    """
    # Held up until the reader is gone: a pipe takes more than a run prints.
    (folder / "conftest.py").write_text("import time\n\ndef pytest_runtest_setup():\n    time.sleep(0.5)\n")
    script = 'mkfifo fifo; head -1 <fifo & "$@" >fifo'
    done = _shell(folder, script, command(dataset, cache, *HUMAN))
    assert done.status not in (0, pytest.ExitCode.INTERNAL_ERROR), done.output
    assert len(done.output.splitlines()) == 1, done.output
    (folder / "conftest.py").unlink()
    again = run(folder, dataset, cache, *RESUME, "-p", "no:xdist")
    assert again.statuses() == {"a::a1": fault.status, "a::a2": "missed"}, again.output
    fault.assert_told(again.output)


def test_a_clock_that_jumps(tmp_path: Path, folder: Path, cache: Path, fault: Told) -> None:
    """The clock jumps three days forward in one review, and five back in the next.

    Status: passed
    Message: overall 1.000, coverage 1.000
    """
    env, jump = settable_clock(tmp_path)
    dataset = write_dataset(tmp_path / "pulls", [Pull(letter, fixable=(f"{letter}1",)) for letter in "abc"])
    programs = write_programs(tmp_path / "programs")
    reviewer = tmp_path / "programs" / "reviewer.sh"
    days = f"case $instance in b) echo {3 * DAY};; c) echo {-2 * DAY};; esac > {shlex.quote(str(jump))}"
    first, rest = reviewer.read_text().split("\n", 1)
    reviewer.write_text(f"{first}\n{days}\n{rest}")
    done = run(folder, dataset, cache, *programs.options, "-p", "no:xdist", env=env)
    assert done.statuses() == {f"{letter}::{letter}1": fault.status for letter in "abc"}, done.output
    fault.assert_told(done.output)
    about = done.results()["run"]
    assert about["started"][:10] > about["finished"][:10], "the clock did not jump: nothing is shown"
    for row in done.rows():
        assert all(0 <= seconds < 200 for seconds in row["durations"].values()), row
    again = run(folder, dataset, cache, *RESUME, "-p", "no:xdist")
    assert again.statuses() == done.statuses()
    assert programs.reviews() == ["a", "b", "c"]
