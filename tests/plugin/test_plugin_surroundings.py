"""What a run says of the machine it is on, and what it leaves there."""

from __future__ import annotations

import os
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from support.benchmarks import environment, run

from pytest_crbench.cli import main

ASKED = ("--crbench-reviewer=human", "--crbench-agent=suggestions", "-k", "second")
_UNISOLATED = "sandbox: local, WITHOUT ISOLATION"


@pytest.fixture
def without_bubblewrap(tmp_path: Path) -> dict[str, str]:
    """The variables of a machine whose kernel forbids user namespaces, and without an engine."""
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "DOCKER_HOST": f"unix://{tmp_path}/no.sock"}


@pytest.mark.parametrize(
    ("sandbox", "why"),
    [
        ("auto", "Docker was not taken: no Docker engine answers at"),
        ("local", "Docker was not taken: --crbench-sandbox=local"),
    ],
)
def test_a_run_without_isolation_says_so_everywhere(
    folder: Path,
    mixed: Path,
    cache: Path,
    without_bubblewrap: dict[str, str],
    sandbox: str,
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = run(folder, mixed, cache, *ASKED, f"--crbench-sandbox={sandbox}", env=without_bubblewrap)
    assert done.status == 0, done.output
    start, _, end = " ".join(done.output.split()).partition("collected ")
    main(["gate", str(done.runs[-1]), "--fail-under=0"])
    main(["compare", str(done.runs[-1]), str(done.runs[-1])])
    gate, _, compared = " ".join(capsys.readouterr().out.split()).partition("PASSED")
    summary = unescape((done.runs[-1] / "summary.md").read_text())
    for said in (start, end, gate, compared, summary):
        assert _UNISOLATED in said
        assert why in said
    again = run(folder, None, cache, "--crbench-resume", env=without_bubblewrap)
    assert why in " ".join(again.output.split())
    assert "no_docker" not in again.output


def test_a_run_with_isolation_says_why_it_is_not_docker(folder: Path, mixed: Path, cache: Path) -> None:
    nowhere = {"DOCKER_HOST": f"unix://{folder}/no.sock"}
    done = run(folder, mixed, cache, *ASKED, "--crbench-sandbox=auto", env=nowhere)
    assert _UNISOLATED not in done.output
    assert "Docker was not taken: no Docker engine answers at" in " ".join(done.output.split())
    assert "Docker" not in run(folder, mixed, cache, *ASKED).output


def test_git_does_not_see_what_a_run_writes(folder: Path, mixed: Path, cache: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    done = run(folder, mixed, cache, *ASKED)
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    seen = subprocess.run(status, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert seen.splitlines() == ["?? pytest.ini"], done.output
    (folder / ".crbench" / ".gitignore").write_text("mine\n")
    run(folder, mixed, cache, *ASKED)
    assert (folder / ".crbench" / ".gitignore").read_text() == "mine\n"


def test_a_folder_of_the_users_own_gets_no_gitignore(folder: Path, mixed: Path, cache: Path) -> None:
    run(folder, mixed, cache, *ASKED, "--crbench-run-dir=kept/runs")
    assert list((folder / "kept").iterdir()) == [folder / "kept" / "runs"]


@pytest.mark.parametrize(
    ("arguments", "colour"),
    [
        (["--crbench-fail-under=0.5"], "32"),
        (["--crbench-fail-under=1", "-k", "first"], "31"),
        (["--crbench-min-coverage=1", "lost"], "33"),
        ([], ""),
        (["--crbench-fail-under=0.5", "test_own.py"], "31"),
    ],
    ids=["met", "not-met", "undecided", "no-gate", "another-test-failed"],
)
def test_the_verdict_line_is_coloured(
    folder: Path, mixed: Path, broken: Path, cache: Path, arguments: list[str], colour: str
) -> None:
    (folder / "test_own.py").write_text("def test_second():\n    assert False\n")
    dataset = broken if "lost" in arguments else mixed
    given = [a for a in arguments if a != "lost"]
    coloured = run(folder, dataset, cache, *ASKED[:2], "--color=yes", *given)
    plain = run(folder, dataset, cache, *ASKED[:2], "--color=no", *given)
    assert plain.verdict.startswith("crbench: ")
    assert coloured.verdict == (f"\x1b[{colour}m\x1b[1m{plain.verdict}\x1b[0m" if colour else plain.verdict)


_WINDOWS = """
import sys

import pytest

#: Modules of the standard library that Windows does not have.
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None


@pytest.hookimpl(tryfirst=True)
def pytest_configure():
    sys.platform = "win32"
"""


def test_windows_is_refused_in_one_line(folder: Path, mixed: Path, cache: Path) -> None:
    (folder / "windows.py").write_text(_WINDOWS)
    done = run(folder, mixed, cache, *ASKED, "-p", "windows", "-p", "no:xdist", "--capture=no")
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert len(done.output.strip().splitlines()) == 1, done.output
    assert "Windows is not supported" in done.output
    assert "WSL 2" in done.output


def test_the_command_refuses_windows_too(folder: Path) -> None:
    code = (
        "import sys, windows\nwindows.pytest_configure()\n"
        "from pytest_crbench.cli import main\nsys.exit(main(['gate']))"
    )
    (folder / "windows.py").write_text(_WINDOWS)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("crbench: error: Windows is not supported")
    assert len(done.stderr.splitlines()) == 1
