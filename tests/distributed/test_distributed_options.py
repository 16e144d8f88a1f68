"""Options are registered where they may be used, however a run names them; the switches in every run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import environment

from pytest_crbench.plugin import SWITCHES
from pytest_crbench.plugin.options import options

if TYPE_CHECKING:
    from pathlib import Path


def go(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**environment(), **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


MAIN = "import pytest, sys; sys.exit(pytest.main(['-q', '--collect-only', {}]))"


@pytest.mark.parametrize(
    "how", ["ini", "ini addopts", "environment", "pytest.main", "separate value", "override"]
)
def test_every_way_to_name_the_options(folder: Path, mixed: Path, how: str) -> None:
    plain = ["-m", "pytest", "-q", "--collect-only"]
    options = ["--crbench-reviewer=human", f"--crbench-dataset={mixed}"]
    if how == "ini":
        (folder / "pytest.ini").write_text(f"[pytest]\ncrbench_reviewer = human\ncrbench_dataset = {mixed}\n")
        done = go(folder, *plain, "-W", "error", "--strict-config")
    elif how == "ini addopts":
        (folder / "pytest.ini").write_text(f"[pytest]\naddopts = {' '.join(options)}\n")
        done = go(folder, *plain)
    elif how == "environment":
        done = go(folder, *plain, env={"PYTEST_ADDOPTS": " ".join(options)})
    elif how == "pytest.main":
        done = go(folder, "-c", MAIN.format(", ".join(map(repr, options))))
    elif how == "override":
        done = go(folder, *plain, "-o", "crbench_reviewer=human", "-o", f"crbench_dataset={mixed}")
    else:
        shutil.copytree(mixed, folder / "mixed")
        done = go(folder, *plain, "--crbench-reviewer", "human", "--crbench-dataset", "mixed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 tests collected" in done.stdout


def test_help_tells_every_option(folder: Path) -> None:
    told = go(folder, "-m", "pytest", "--help").stdout
    assert [name for name, *_ in options() if f"--crbench-{name}" not in told] == []


def test_a_conftest_may_implement_the_hooks_and_ask_for_the_switches_in_any_run(folder: Path) -> None:
    (folder / "conftest.py").write_text(
        "def pytest_crbench_verdict(config, row):\n    pass\n\n\n"
        "def pytest_configure(config):\n    assert not config.getoption('--crbench-reviewer')\n"
    )
    (folder / "test_own.py").write_text("def test_own():\n    pass\n")
    done = go(folder, "-m", "pytest", "-q")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    (folder / "conftest.py").write_text("def pytest_crbench_verdikt(config, row):\n    pass\n")
    assert "unknown hook 'pytest_crbench_verdikt'" in go(folder, "-m", "pytest", "-q").stdout


def test_the_switches_are_options_of_the_table() -> None:
    assert set(SWITCHES) <= {name for name, *_ in options()}
