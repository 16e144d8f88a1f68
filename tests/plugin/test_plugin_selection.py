"""Selecting checks behaves as a pytest user expects."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.benchmarks import Pull, Run, environment, run, write_dataset

HUMAN = ("--crbench-reviewer=human", "--crbench-agent=suggestions")


@pytest.fixture
def varied(tmp_path: Path) -> Path:
    return write_dataset(
        tmp_path / "varied",
        [
            Pull("alpha", fixable=("price",), hard=("tax",)),
            Pull("beta", fixable=("name",), category="Efficiency"),
        ],
        name="varied",
    )


def collected(done: Run) -> list[str]:
    return [line for line in done.output.splitlines() if line.startswith(("varied::", "test_"))]


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ([], ["alpha::price", "alpha::tax", "beta::name"]),
        (["-k", "beta"], ["beta::name"]),
        (["-k", "tax or name"], ["alpha::tax", "beta::name"]),
        (["-m", 'crbench(category="Efficiency")'], ["beta::name"]),
        (["-m", 'not crbench(category="Efficiency")'], ["alpha::price", "alpha::tax"]),
        (
            ["-m", 'crbench(kind="behavioral", language="Python")'],
            ["alpha::price", "alpha::tax", "beta::name"],
        ),
        (["varied::beta"], ["beta::name"]),
        (["varied::alpha::tax", "varied::beta"], ["alpha::tax", "beta::name"]),
        (["varied"], ["alpha::price", "alpha::tax", "beta::name"]),
        (["--deselect", "varied::alpha::tax"], ["alpha::price", "beta::name"]),
        (
            ["--crbench-repeats=2", "varied::alpha"],
            ["alpha::price[r1]", "alpha::price[r2]", "alpha::tax[r1]", "alpha::tax[r2]"],
        ),
        (["--crbench-repeats=2", "varied::alpha::tax"], ["alpha::tax[r1]", "alpha::tax[r2]"]),
    ],
)
def test_what_is_collected(
    folder: Path, varied: Path, cache: Path, arguments: list[str], ids: list[str]
) -> None:
    done = run(folder, varied, cache, *HUMAN, "--collect-only", "-q", *arguments)
    assert collected(done) == [f"varied::{name}" for name in ids], done.output
    assert not (folder / ".crbench").exists()


def test_the_tree_of_nodes(folder: Path, varied: Path, cache: Path) -> None:
    done = run(folder, varied, cache, *HUMAN, "--collect-only")
    assert re.search(r"<Suite varied>\n\s+<InstanceNode alpha>\n\s+<CheckItem price>", done.output), (
        done.output
    )


def test_without_a_path_only_the_benchmark_runs(folder: Path, varied: Path, cache: Path) -> None:
    (folder / "test_own.py").write_text("def test_own():\n    pass\n")
    assert "test_own" not in run(folder, varied, cache, *HUMAN, "--collect-only", "-q").output


def test_with_a_path_the_named_dataset_comes_too(folder: Path, varied: Path, cache: Path) -> None:
    (folder / "test_own.py").write_text("def test_own():\n    pass\n")
    both = run(folder, varied, cache, *HUMAN, "--collect-only", "-q", "test_own.py")
    assert len(collected(both)) == 4
    own = run(folder, None, cache, *HUMAN, "--collect-only", "-q", "test_own.py")
    assert collected(own) == ["test_own.py::test_own"]


def test_the_bundled_dataset_is_the_default(folder: Path, cache: Path) -> None:
    done = run(folder, None, cache, *HUMAN, "--collect-only", "-q")
    assert sum(line.startswith("releases::") for line in done.output.splitlines()) == 44
    two = run(folder, None, cache, *HUMAN, "--collect-only", "-q", "releases::pyjwt-2.10.0")
    assert sum(line.startswith("releases::") for line in two.output.splitlines()) == 1


def test_two_datasets_of_one_name_are_refused(
    folder: Path, varied: Path, tmp_path: Path, cache: Path
) -> None:
    other = write_dataset(tmp_path / "other", [Pull("gamma", hard=("x",))], name="varied")
    done = run(folder, varied, cache, *HUMAN, "--collect-only", f"--crbench-dataset={other}")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "two datasets are named 'varied'" in done.output


def test_the_plugin_is_inert_in_a_run_that_does_not_ask_for_it(folder: Path) -> None:
    (folder / "test_own.py").write_text(
        "def test_own(pytestconfig):\n"
        "    manager = pytestconfig.pluginmanager\n"
        "    names = [n for n, _ in manager.list_name_plugin() if n.startswith('crbench')]\n"
        "    assert sorted(names) == ['crbench', 'crbench-switched']\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\ncrbench_sandbox = local\n")
    plain = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(plain, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout
    assert "crbench:" not in done.stdout


def test_lf_selects_errors_and_not_misses(folder: Path, tmp_path: Path, cache: Path) -> None:
    data = write_dataset(
        tmp_path / "data",
        [
            Pull("lost", fixable=("price",), python="<3.0"),
            Pull("whole", fixable=("name",), hard=("tax",)),
        ],
        name="varied",
    )
    first = run(folder, data, cache, *HUMAN, cacheprovider=True)
    assert first.outcomes() == {"passed": 1, "missed": 1, "error": 1}, first.output
    again = run(folder, data, cache, *HUMAN, "--lf", "--collect-only", "-q", cacheprovider=True)
    assert collected(again) == ["varied::lost::price"]


def test_junit_durations_and_verbose(folder: Path, varied: Path, cache: Path) -> None:
    done = run(folder, varied, cache, *HUMAN, "--junitxml=out.xml", "--durations=3", "-v")
    assert "varied::alpha::price PASSED" in done.output
    assert "varied::alpha::tax MISSED" in done.output
    assert re.search(r"[\d.]+s setup +varied::", done.output)
    (suite,) = ET.parse(folder / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "3", "0", "0", "1",
    )  # fmt: skip
    names = {(case.get("classname"), case.get("name")) for case in suite}
    assert ("varied.alpha", "tax") in names


def test_the_folder_of_a_dataset_or_an_instance_means_its_checks(
    folder: Path, varied: Path, cache: Path
) -> None:
    """Its hidden tests are no tests of pytest's: they would fail to import."""
    whole = run(folder, varied, cache, *HUMAN, "--collect-only", "-q", str(varied))
    assert collected(whole) == ["varied::alpha::price", "varied::alpha::tax", "varied::beta::name"]
    one = run(folder, varied, cache, *HUMAN, "--collect-only", "-q", f"{varied / 'beta'}")
    assert collected(one) == ["varied::beta::name"], one.output
