"""The table of docs/gating.md: no invocation skips the gate silently, under any pytest, serial or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.benchmarks import Pull, environment, write_dataset

ROOT = Path(__file__).parents[2]
#: How a reviewer that finds nothing is scored in moments; with a gate that it fails.
SCORED = {
    "crbench_dataset": "reviews",
    "crbench_scoring": "matching",
    "crbench_meaning": "exact",
    "crbench_offline": "true",
}
REVIEWER = {**SCORED, "crbench_reviewer": "none"}
GATED = {**REVIEWER, "crbench_fail_under": "0.3"}
TYPED = "--crbench-reviewer=none"
FAILED = "crbench: FAILED, overall"


@dataclass(frozen=True)
class Row:
    """One invocation: status 4 is a usage error, 1 a gate that is on, as nothing else fails here."""

    name: str
    args: tuple[str, ...] = ()
    ini: dict[str, str] = field(default_factory=dict)
    status: int = 4
    said: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


OFF = ("no benchmark would run",)
#: All that a run needs, one argument a line.
ALL = "".join(
    f"--{key.replace('_', '-')}{'' if value == 'true' else '=' + value}\n" for key, value in GATED.items()
)
ROWS = [
    # An option on the command line or in a file, and no benchmark would run.
    Row("gate typed", ("--crbench-fail-under=0.9",), SCORED, said=("--crbench-fail-under", *OFF)),
    Row("flag typed", ("--crbench-fail-on-miss",), SCORED, said=("--crbench-fail-on-miss", *OFF)),
    Row("gate typed, own path", ("--crbench-fail-under=0.9", "tests"), SCORED, said=OFF),
    Row("gate in a file", ("@args.txt",), SCORED, said=OFF, files={"args.txt": "--crbench-fail-under=0.9\n"}),
    Row("gate in the environment", (), SCORED, said=OFF, env={"PYTEST_ADDOPTS": "--crbench-fail-under=0.9"}),
    Row("reviewer typed, own path", (TYPED, "tests"), GATED, said=("--crbench-reviewer", *OFF)),
    Row("gate typed over the ini, own path", ("--crbench-fail-under=0.9", "tests"), GATED, said=OFF),
    Row("unknown option", ("--crbench-fail-undr=0.9",), GATED, said=("--crbench-fail-undr",)),
    Row("unknown option in a file", ("@a",), said=("--crbench-x",), files={"a": "--crbench-x=1\n"}),
    # What runs, and is gated.
    Row("reviewer in the ini", (), GATED, 1, (FAILED,)),
    Row("a node id", ("small::first",), GATED, 1, (FAILED,)),
    Row("the folder of an instance", ("reviews/first",), GATED, 1, (FAILED,)),
    Row("all in a file", ("@args.txt",), {}, 1, (FAILED,), {"args.txt": ALL}),
    Row("a file in a file", ("@args.txt",), SCORED, 1, (FAILED,),
        {"args.txt": "@more.txt\n", "more.txt": f"{TYPED}\n--crbench-fail-under=0.3\n"}),
    Row("a file in addopts", (), {"addopts": "@args.txt"}, 1, (FAILED,), {"args.txt": ALL}),
    Row("a path in addopts", (), {**GATED, "addopts": "tests"}, 1, (FAILED,)),
    Row("the root folder", (".",), GATED, 1, (FAILED, "1 passed")),
    Row("an empty gate", ("--crbench-fail-under=",), GATED, said=("--crbench-fail-under= is empty",)),
    Row("a reviewer overridden, own path", ("-o", "crbench_reviewer=none", "tests"), SCORED, said=OFF),
    Row("own path and dataset typed", ("--crbench-dataset=reviews", "tests"), GATED, 1, (FAILED, "1 passed")),
    # Tests of the vendor's own.
    Row("own path, a long keyword", ("-k", " or ".join(["test_own"] * 99), "tests"), GATED, 0, ("1 passed",)),
    Row("own path", ("tests",), GATED, 0, ("1 passed",)),
    Row("own node id", ("tests/test_own.py::test_own",), GATED, 0, ("1 passed",)),
    Row("own path, reviewer in addopts", ("tests",),
        {**SCORED, "addopts": f"{TYPED} --crbench-fail-under=0.3"}, 0, ("1 passed",)),
    # Gate keys without a reviewer.
    Row("gate key alone", (), {"crbench_fail_under": "0.3"}, said=("crbench_fail_under", "reviewer", *OFF)),
    Row("coverage key alone", (), {"crbench_min_coverage": "0.3"}, said=("crbench_min_coverage", *OFF)),
    Row("gate in addopts alone", (), {"addopts": "--crbench-fail-under=0.3"}, said=("crbench_fail_under",)),
    Row("gate key alone, own path", ("tests",), {"crbench_fail_under": "0.3"}, 0, ("1 passed",)),
    Row("gate key alone, an instance", ("reviews/first",), {"crbench_fail_under": "0.3"}, said=OFF),
    # The ini file is missed.
    Row("run folder apart", ("--crbench-run-dir", "{apart}"), GATED, said=("--crbench-run-dir={apart}",)),
    Row("cache apart", (TYPED, "--crbench-cache", "{apart}"), GATED, said=("--crbench-cache={apart}",)),
    Row("another plugin's folder apart", ("--rsyncdir", "{apart}"), GATED, said=("--rsyncdir={apart}",)),
    Row("another plugin's folder, none of ours", ("--rsyncdir", "{apart}", "tests"), {}, 0, ("1 passed",)),
    Row("another tool's key", ("tests",), {"crbenchmark_rounds": "3"}, 0, ("1 passed",)),
    Row("run folder joined", ("--crbench-run-dir={apart}",), GATED, 1, (FAILED,)),
    Row("run folder within", ("--crbench-run-dir", "runs"), GATED, 1, (FAILED,), {"runs/.keep": ""}),
    # Keys that nobody knows.
    Row("unknown key", (), {**REVIEWER, "crbench_fail_undr": "0.3"},
        said=("crbench_fail_undr", "Did you mean crbench_fail_under?", "pytest.ini")),
    Row("unknown key, own path", ("tests",), {"crbench_fail-under": "0.3"}, said=("crbench_fail_under?",)),
    Row("unknown key overridden", ("-o", "crbench_fail_undr=0.3"), REVIEWER, said=("crbench_fail_under?",)),
    # Selections, and a look at what there is.
    Row("a keyword", ("-k", "first"), GATED, 1, (FAILED, "2 of 3 checks selected")),
    Row("only collected", ("--collect-only", "-q"), GATED, 0, ("small::first::price", "nothing was gated")),
    Row("help", ("--help",), {"crbench_fail_under": "0.3"}, 0, ("--crbench-fail-under",)),
]  # fmt: skip
#: What a row is read as does not depend on workers: with them it is looked at where there is time.
WORKERS = [(), pytest.param(("-n", "2"), marks=pytest.mark.long)]
#: The rows that an older pytest could take another way: those that look into its configuration.
OLD = [
    row
    for row in ROWS
    if row.name
    in ("gate in a file", "a file in a file", "a file in addopts", "own path", "run folder apart",
        "run folder within", "unknown key", "unknown key overridden", "gate key alone", "only collected")
]  # fmt: skip


@pytest.fixture
def vendor(folder: Path) -> Path:
    """A repository with a test of its own, and a dataset of two pull requests and three checks."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test_own.py").write_text("def test_own():\n    pass\n")
    pulls = [Pull("first", hard=("price", "tax")), Pull("second", hard=("name",))]
    write_dataset(folder / "reviews", pulls)
    return folder


def check(row: Row, vendor: Path, apart: Path, python: str, *workers: str) -> None:
    """Start pytest as the row says, and look what it does."""
    lines = "".join(f"{key} = {value}\n" for key, value in row.ini.items())
    (vendor / "pytest.ini").write_text("[pytest]\n" + lines)
    for name, text in row.files.items():
        (vendor / name).parent.mkdir(exist_ok=True)
        (vendor / name).write_text(text)
    apart.mkdir()
    status, output = go(vendor, python, *(a.format(apart=apart) for a in row.args), *workers, env=row.env)
    assert status == row.status, output
    for words in row.said:
        assert words.format(apart=apart) in output
    gated = "crbench: FAILED" in output
    assert gated == (row.status == 1), output
    assert "INTERNALERROR" not in output
    if row.status == 0 and "own" in row.name:
        assert "crbench:" not in output
        assert not (vendor / ".crbench").exists()


def go(vendor: Path, python: str, *args: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", *args]
    done = subprocess.run(
        command,
        cwd=vendor,
        env={**environment(), "XDG_CACHE_HOME": str(vendor.parent / "cache"), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("workers", WORKERS, ids=["serial", "xdist"])
def test_row(row: Row, vendor: Path, tmp_path: Path, workers: tuple[str, ...]) -> None:
    check(row, vendor, tmp_path / "apart", sys.executable, *workers)


#: Every file that pytest reads, and the head of its section.
FORMATS = {
    "pytest.ini": "[pytest]\n",
    "tox.ini": "[pytest]\n",
    "setup.cfg": "[tool:pytest]\n",
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "pytest.toml": "[pytest]\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_an_unknown_key_is_refused_in_every_format(vendor: Path, name: str) -> None:
    (vendor / "pytest.ini").unlink()
    quote = '"' if name.endswith(".toml") else ""
    (vendor / name).write_text(
        f"{FORMATS[name]}crbench_reviewer = {quote}none{quote}\ncrbench_fail_undr = {quote}0.3{quote}\n"
    )
    status, output = go(vendor, sys.executable)
    assert status == 4, output
    assert f"{name}: unknown key crbench_fail_undr. Did you mean crbench_fail_under?" in output


@pytest.mark.parametrize(
    ("name", "section", "gate", "status", "said"),
    [
        ("pytest.ini", "[pytest]", "crbench_fail_under = 0.3", 1, "overall 0.000 < 0.3"),
        ("pytest.toml", "[pytest]", "crbench_fail_under = 0.3", 1, "overall 0.000 < 0.3"),
        ("pytest.toml", "[pytest]", 'crbench_fail_under = "0.3"', 1, "overall 0.000 < 0.3"),
        ("pytest.toml", "[pytest]", 'crbench_fail_under = [0.3, "macro:0.2"]', 1, "macro 0.000 < 0.2"),
        ("pyproject.toml", "[tool.pytest]", "crbench_min_coverage = 1", 0, "coverage 1.000 >= 1"),
        ("pytest.toml", "[pytest]", "crbench_repeats = 2\ncrbench_fail_under = 0", 0, "6 missed"),
        ("pytest.toml", "[pytest]", "crbench_fail_on_miss = true", 1, "3 failed"),
        ("pytest.toml", "[pytest]", "crbench_repeats = true", 4, "--crbench-repeats=True: expected a whole"),
        ("pytest.toml", "[pytest]", "crbench_reviewer_version = 1.10", 4, "write it in quotes"),
    ],
)
def test_a_gate_of_one_number_and_numbers_of_toml(
    vendor: Path, name: str, section: str, gate: str, status: int, said: str
) -> None:
    (vendor / "pytest.ini").unlink()
    plain = name.endswith(".ini")
    keys = "".join(f"{key} = {value if plain else json.dumps(value)}\n" for key, value in REVIEWER.items())
    (vendor / name).write_text(f"{section}\n{keys}{gate}\n")
    found, output = go(vendor, sys.executable)
    assert found == status, output
    assert said in output
    assert "Traceback" not in output


ASKS = """
def test_asks(crbench_evaluate):
    assert [v.status.value for v in crbench_evaluate("second")] == ["missed"]
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_a_test_of_the_vendors_own_that_asks_for_an_evaluation_is_a_benchmark(
    vendor: Path, workers: tuple[str, ...]
) -> None:
    (vendor / "tests" / "test_own.py").write_text(ASKS)
    keys = "".join(f"{key} = {value}\n" for key, value in SCORED.items())
    (vendor / "pytest.ini").write_text(f"[pytest]\n{keys}")
    status, output = go(vendor, sys.executable, TYPED, "tests", *workers)
    assert status == 0, output
    (vendor / "pytest.ini").write_text(f"[pytest]\n{keys}crbench_reviewer = none\n")
    status, output = go(vendor, sys.executable, "tests", *workers)
    assert status == 1, output
    assert "crbench is off because only paths of your own tests are given" in output


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with the oldest pytest that we support; the suite itself runs under the newest."""
    if kept := os.environ.get("CRBENCH_TEST_OLD_PYTHON"):
        return kept
    place = tmp_path_factory.mktemp("older") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    # uv reads no configuration of pip's.
    env = {**os.environ, "UV_DEFAULT_INDEX": os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")}
    wanted = ["-e", f"{ROOT}[matching]", "pytest==8.4.0"]
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(place / "bin" / "python")]
    subprocess.run([*install, *wanted], env=env, check=True, timeout=300)
    return str(place / "bin" / "python")


@pytest.mark.network
@pytest.mark.parametrize("row", OLD, ids=lambda row: row.name)
@pytest.mark.parametrize("workers", WORKERS, ids=["serial", "xdist"])
def test_row_under_the_oldest_pytest(
    row: Row, vendor: Path, tmp_path: Path, older: str, workers: tuple[str, ...]
) -> None:
    check(row, vendor, tmp_path / "apart", older, *workers)
