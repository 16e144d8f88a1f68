"""Wrong options are told at once, by name, before anything is built; ini twins mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import Pull, run, write_dataset

NONE = ("--crbench-reviewer=human", "--crbench-agent=none")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--crbench-reviewer=human"], ["llm", "--crbench-model", "OPENAI_API_KEY", "agent=suggestions"]),
        (["--crbench-reviewer=humann", "--crbench-agent=none"], ["humann", "Did you mean 'human'"]),
        (["--crbench-reviewer=cmd:nosuchprogram", "--crbench-agent=none"], ["nosuchprogram"]),
        (["--crbench-reviewer=cmd:true {nosuch}", "--crbench-agent=none"], ["nosuch"]),
        (["--crbench-reviewer=human", "--crbench-agent=gpt"], ["--crbench-agent=gpt", "suggestions"]),
        ([*NONE, "--crbench-sandbox=vm"], ["auto, docker, local"]),
        ([*NONE, "--crbench-repeats=0"], ["--crbench-repeats=0"]),
        ([*NONE, "--crbench-scoring=magic"], ["magic", "tests"]),
        ([*NONE, "--crbench-fail-under=2"], ["fail-under", "2"]),
        ([*NONE, "--crbench-fail-under=f9:0.1"], ["f9", "pass_rate"]),
        ([*NONE, "--crbench-baseline=no.json"], ["no.json"]),
        ([*NONE, "--crbench-fail-if-regressed"], ["crbench-baseline"]),
        ([*NONE, "--crbench-llm=max-cost=1"], ["--crbench-llm price"]),
        ([*NONE, "--crbench-rerun-errors"], ["--crbench-resume"]),
        (["--crbench-resume"], ["no run to resume"]),
        (["--crbench-replay=nosuch"], ["nosuch"]),
        ([*NONE, "small::first::nosuch"], ["no such check"]),
        ([*NONE, "--crbench-limit=memory=big"], ["512m or 2g"]),
        ([*NONE, "--crbench-ca-bundle=no.pem"], ["no.pem"]),
        ([*NONE, "--crbench-index-url=example.org"], ["--crbench-index-url", "https://"]),
        (["--crbench-reviewer=", "--crbench-agent=none", "--crbench-fail-under=0.5"], ["is empty"]),
        (["--crbench-replay="], ["--crbench-replay= is empty"]),
    ],
)  # fmt: skip
def test_usage_errors(folder: Path, mixed: Path, cache: Path, arguments: list[str], said: list[str]) -> None:
    done = run(folder, mixed, cache, *arguments)
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    errors = [line for line in done.output.splitlines() if "crbench:" in line]
    assert len(errors) == 1, done.output
    for word in said:
        assert word in done.output
    assert "Traceback" not in done.output
    assert "INTERNALERROR" not in done.output
    assert not (folder / ".crbench").exists()


def test_a_bad_instance_file_names_file_and_key(folder: Path, mixed: Path, cache: Path) -> None:
    file = mixed / "first" / "instance.toml"
    file.write_text(file.read_text().replace('kind = "behavioral"', 'kind = "behavioural"', 1))
    done = run(folder, mixed, cache, "--crbench-reviewer=human", "--crbench-agent=none")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert str(file) in done.output
    assert "comment[0].kind" in done.output
    assert "behavioural" in done.output


def test_every_option_has_an_ini_twin(folder: Path, mixed: Path, cache: Path) -> None:
    from pytest_crbench.plugin.options import ini_name, options

    listed = run(folder, None, cache, "--help").output
    for name, *_ in options():
        assert f"--crbench-{name}" in listed
        assert f"{ini_name(name)} (" in listed


def test_ini_twins_mean_the_same(folder: Path, mixed: Path, cache: Path) -> None:
    (folder / "pytest.ini").write_text(
        "[pytest]\n"
        "crbench_reviewer = human\n"
        "crbench_agent = suggestions\n"
        f"crbench_dataset = {mixed}\n"
        "crbench_fail_under =\n    0.5\n    @category=Security:0.6\n"
        "crbench_sandbox = local\n"
        f"crbench_cache = {cache}\n"
    )
    done = run(folder, None, cache)
    assert done.status == 0, done.output
    assert done.verdict.startswith("crbench: PASSED, overall 0.667 >= 0.5, category=Security 0.667 >= 0.6")
    stricter = run(folder, None, cache, "--crbench-fail-under=0.9", "--crbench-resume")
    assert stricter.status == 1, stricter.output


def test_a_vendors_fixtures_take_the_place_of_ours(folder: Path, mixed: Path, cache: Path) -> None:
    (folder / "conftest.py").write_text(
        "import pytest\n"
        "from pytest_crbench.core.model import ReviewComment\n\n\n"
        "def mine(pull_request, workspace):\n"
        "    assert (workspace / 'shop').is_dir() and pull_request.title == 'Add prices'\n"
        "    text = (workspace / 'shop' / 'tax_.py')\n"
        "    if text.exists():\n"
        "        yield ReviewComment(id='', body='wrong', path='shop/tax_.py', lines=(2, 2),\n"
        "                            suggestion='    return \"tax\"')\n\n\n"
        "@pytest.fixture(scope='session')\n"
        "def crbench_reviewer():\n    return mine\n\n\n"
        "def pytest_crbench_verdict(row):\n"
        "    with open('seen', 'a') as stream:\n"
        "        stream.write(row['check'] + ' ' + row['status'] + '\\n')\n\n\n"
        "def pytest_crbench_select(instances):\n"
        "    instances[:] = [i for i in instances if i.id == 'first']\n\n\n"
        "def pytest_crbench_summary(results):\n    return ['a line of mine']\n"
    )
    done = run(folder, mixed, cache, "--crbench-reviewer=human", "--crbench-agent=suggestions")
    assert done.status == 0, done.output
    assert done.statuses() == {"first::price": "missed", "first::tax": "passed"}
    assert (folder / "seen").read_text().splitlines() == ["price missed", "tax passed"]
    assert "a line of mine" in done.output


def test_a_vendors_own_test_asks_for_an_evaluation(folder: Path, tmp_path: Path, cache: Path) -> None:
    data = write_dataset(tmp_path / "data", [Pull("first", fixable=("price",), hard=("tax",))])
    (folder / "test_own.py").write_text(
        "def test_own(crbench_evaluate):\n"
        "    verdicts = crbench_evaluate('first')\n"
        "    found = [(v.key.check, v.status.value) for v in verdicts]\n"
        "    assert found == [('price', 'passed'), ('tax', 'missed')]\n"
    )
    (folder / "pytest.ini").write_text(f"[pytest]\ncrbench_dataset = {data}\n")
    arguments = ("--crbench-reviewer=human", "--crbench-agent=suggestions", "test_own.py")
    done = run(folder, None, cache, *arguments)
    assert done.status == 0, done.output
    assert done.outcomes() == {"passed": 1}


def test_a_cache_that_cannot_be_used_is_told_before_the_run(folder: Path, mixed: Path) -> None:
    cache = folder / "cache"
    cache.write_text("not a folder")
    done = run(folder, mixed, cache, *NONE)
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert f"cannot use the cache folder {cache}" in done.output
    assert "--crbench-cache" in done.output
    assert "Traceback" not in done.output
    assert not (folder / ".crbench").exists()


def test_a_vendors_agent_is_not_recorded_as_ours(folder: Path, mixed: Path, cache: Path) -> None:
    first = run(folder, mixed, cache, *NONE, "-k", "second")
    assert first.results()["run"]["agent"]["name"] == "none"
    (folder / "conftest.py").write_text(
        "import pytest\n\n\n"
        "@pytest.fixture(scope='session')\ndef crbench_agent():\n    return 'suggestions'\n"
    )
    for distribution in ([], ["-n", "1"]):
        done = run(folder, mixed, cache, *NONE, "-k", "second", *distribution)
        assert done.statuses() == {"second::name": "passed"}
        assert done.results()["run"]["agent"]["name"] == "suggestions"


def test_a_resumed_run_records_the_options_it_was_resumed_with(
    folder: Path, mixed: Path, cache: Path
) -> None:
    run(folder, mixed, cache, *NONE, "-k", "second")
    done = run(folder, None, cache, "--crbench-resume", "--crbench-min-coverage=0.5", "-k", "second")
    assert done.results()["run"]["options"]["min_coverage"] == "0.5"
    assert done.results()["run"]["options"]["agent"] == "none"
