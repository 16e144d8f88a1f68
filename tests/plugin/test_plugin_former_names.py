"""Options under the names that they had before, on the command line and in the ini file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.benchmarks import run

from pytest_crbench.plugin.configuration import configured
from pytest_crbench.run.options import FOLDED_IN, RENAMED

#: What each could be given as, and what its setting is then: (former name, value, setting, what it is).
FORMER = [
    ("reviewer-snippets", "7", "reviewer_snippets", 7),
    ("reviewer-temperature", "0", "reviewer_temperature", 0.0),
    ("reviewer-top-p", "0.5", "reviewer_top_p", 0.5),
    ("reviewer-top-k", "0", "reviewer_top_k", 0),
    ("agent-command-timeout", "5", "agent_command_timeout", 5.0),
    ("temperature", "0.2", "temperature", 0.2),
    ("max-steps", "9", "max_steps", 9),
    ("max-tokens", "1000", "max_tokens", 1000),
    ("max-cost", "1.5", "max_cost", 1.5),
    ("max-total-tokens", "2000", "max_total_tokens", 2000),
    ("max-total-cost", "2.5", "max_total_cost", 2.5),
    ("price", "0.25:2", "price", "0.25:2"),
    ("memory", "1g", "memory", 1024**3),
    ("cpus", "1.5", "cpus", 1.5),
    ("pids", "99", "pids", 99),
    ("test-timeout", "33", "test_timeout", 33.0),
    ("min-free", "1k", "min_free", 1024),
    ("disk-budget", "2k", "disk_budget", 2048),
    ("line-tolerance", "4", "line_tolerance", 4),
    ("file-level", "file", "file_level", "file"),
    ("aacr-legacy", True, "aacr_legacy", True),
    ("classify", True, "classify", True),
    ("embedding-base-url", "http://localhost:1/v1", "embedding_base_url", "http://localhost:1/v1"),
    ("meaning", "exact", "matcher", "exact"),
    ("meaning", "judge", "matcher", "model"),
    ("judge-model", "some", "matcher_model", "some"),
    ("judge-votes", "3", "matcher_votes", 3),
]
EVERY = pytest.mark.parametrize(
    ("name", "value", "field", "means"), FORMER, ids=[f"{r[0]}={r[1]}" for r in FORMER]
)


def setting(*arguments: str, field: str) -> object:
    found = configured(["--crbench-reviewer=none", *arguments])
    assert found.settings is not None, found.refusal
    return getattr(found.settings, field)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_list_holds_every_former_name() -> None:
    assert {name for name, *_ in FORMER} == {*FOLDED_IN, *RENAMED}


@EVERY
def test_on_the_command_line(name: str, value: object, field: str, means: object) -> None:
    given = f"--crbench-{name}" if value is True else f"--crbench-{name}={value}"
    assert setting(given, field=field) == means


@EVERY
def test_in_the_ini_file(name: str, value: object, field: str, means: object, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ncrbench_{name.replace('-', '_')} = {value}\n")
    assert setting("--strict-config", field=field) == means


@EVERY
def test_as_it_is_called_now(name: str, value: object, field: str, means: object, tmp_path: Path) -> None:
    option, key = FOLDED_IN.get(name), field.replace("_", "-")
    text = key if value is True else f"{key}={value}"
    given = f"--crbench-{option}={text}" if option else f"--crbench-{RENAMED[name]}={value}"
    assert setting(given, field=field) == means
    ini = f"crbench_{option} =\n    {text}\n" if option else f"crbench_{field} = {value}\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}")
    assert setting(field=field) == means


def test_a_value_may_stand_behind_a_space_and_in_a_file_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "args.txt").write_text("--crbench-memory\n1g\n--crbench-classify\n")
    assert setting("--crbench-pids", "77", field="pids") == 77
    assert setting("@args.txt", field="memory") == 1024**3
    assert setting("@args.txt", field="classify") is True
    assert setting("-o", "crbench_memory=3g", field="memory") == 3 * 1024**3


def test_the_command_line_wins_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ncrbench_limit =\n    memory=1g cpus=1\n    pids=99\n")
    assert setting("--crbench-limit=memory=2g", field="memory") == 2 * 1024**3
    assert setting("--crbench-limit", "memory=2g cpus=3", field="cpus") == 3.0
    assert setting("--crbench-memory=2g", field="memory") == 2 * 1024**3
    assert setting("--crbench-limit=memory=2g", field="pids") == 99


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("--crbench-limit=memry=2g", r"--crbench-limit memry=2g: unknown key; known: memory, cpus, "),
        ("--crbench-limit=memory", r"--crbench-limit memory: expected memory=VALUE"),
        ("--crbench-limit=memory=much", r"--crbench-limit memory=much: expected a size such as"),
        ("--crbench-llm=price", r"--crbench-llm price: expected price=VALUE"),
        (
            "--crbench-matching=classify=perhaps",
            r"--crbench-matching classify=perhaps: expected true or false",
        ),
    ],
)
def test_a_wrong_key_or_value_is_named(folder: Path, mixed: Path, cache: Path, given: str, says: str) -> None:
    done = run(folder, mixed, cache, "--crbench-reviewer=human", given)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert re.search(says, done.output), done.output


def test_a_run_says_what_an_option_is_called_now(folder: Path, mixed: Path, cache: Path) -> None:
    done = run(
        folder, mixed, cache, "--crbench-reviewer=human", "--crbench-agent=none", "--crbench-memory=1g", "-v"
    )
    assert "crbench: --crbench-memory is now --crbench-limit memory" in done.output


def test_a_run_recorded_under_former_names_is_resumed(folder: Path, mixed: Path, cache: Path) -> None:
    options = ("--crbench-scoring=matching", "--crbench-matcher=exact", "--crbench-agent=none")
    first = run(folder, mixed, cache, "--crbench-reviewer=human", *options)
    record = first.runs[-1] / "run.json"
    text = record.read_text("utf-8")
    assert '"matcher": "exact"' in text
    record.write_text(text.replace('"matcher": "exact"', '"meaning": "exact"'), "utf-8")
    again = run(folder, None, cache, "--crbench-resume")
    assert again.status == first.status, again.output
    assert "matching by exact" in again.output
