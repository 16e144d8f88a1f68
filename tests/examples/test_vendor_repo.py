"""The example vendor's repository, used as its vendor would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/vendor-repo"


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(
            EXAMPLE, tmp_path / "vendor repo", ignore=shutil.ignore_patterns("__pycache__", ".crbench")
        )
    )


def run(vendor: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "CRBENCH"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=vendor,
        env=env,
        capture_output=True,
        text=True,
        timeout=540,
    )


def test_its_own_unit_tests_run_without_the_benchmark(vendor: Path) -> None:
    done = run(vendor, "tests", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 passed" in done.stdout


def test_its_settings_are_options_that_there_are(vendor: Path) -> None:
    from pytest_crbench.plugin.options import ini_name, options

    known = {ini_name(option[0]) for option in options()}
    settings = tomllib.loads((vendor / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert {name for name in settings if name.startswith("crbench")} <= known


@pytest.mark.slow
@pytest.mark.network
def test_the_benchmark_finds_what_tinyreview_can_find(vendor: Path) -> None:
    """PyJWT 2.10.0 compares an issuer with a string by ``in``; tinyreview's suggestion really fixes it."""
    done = run(
        vendor,
        "--crbench-sandbox=local",
        "--crbench-agent=suggestions",
        "-k",
        "pyjwt-2.10.0 or decorator-5.1.0 or xmltodict",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "crbench: PASSED" in done.stdout.strip().splitlines()[-1]
    (results,) = vendor.glob(".crbench/runs/*/results.jsonl")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    statuses = {row["key"]["check"] if "key" in row else row["check"]: row["status"] for row in rows}
    assert statuses.pop("issuer-substring-match") == "passed"
    assert set(statuses.values()) == {"missed"}
    assert len(statuses) >= 2


@pytest.mark.slow
@pytest.mark.network
def test_a_worse_reviewer_does_not_pass_the_gate(vendor: Path) -> None:
    code = (vendor / "tinyreview.py").read_text()
    worse = code.replace('ast.Name("isinstance")', 'ast.Name("nothing")')
    assert worse != code
    (vendor / "tinyreview.py").write_text(worse)
    done = run(vendor, "-k", "pyjwt-2.10.0 or decorator-5.1.0")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crbench: FAILED" in done.stdout.strip().splitlines()[-1]
