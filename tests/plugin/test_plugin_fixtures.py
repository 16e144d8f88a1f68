"""A vendor's fixtures: what they replace is in every report, and none of them makes a verdict."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from support.benchmarks import MODES, Run, run

from pytest_crbench.cli import main

ASKED = ("--crbench-reviewer=human", "--crbench-agent=suggestions")
_NAMESAKE = """
import pytest

class Human:
    name = "human"
    shareable = False
    fingerprint = {FINGERPRINT}

    def review(self, task):
        from pytest_crbench.core.model import Review
        return Review(comments=(), reviewer="human")

@pytest.fixture(scope="session", name="crbench_reviewer")
def anything():
    return Human()
"""
_SANDBOX = """
import pytest

@pytest.fixture(scope="session")
def crbench_sandbox(crbench_sandbox):
    return crbench_sandbox
"""
_GREEN = """
import pytest
from dataclasses import replace

@pytest.fixture
def crbench_verdict({arguments}):
    {body}
"""


def human_fingerprint(folder: Path, dataset: Path, cache: Path) -> dict[str, object]:
    done = run(folder, dataset, cache, *ASKED, "-k", "second")
    found: dict[str, object] = done.results()["run"]["reviewer"]["fingerprint"]
    return found


def go(folder: Path, dataset: Path, cache: Path, text: str, mode: str = "serial") -> Run:
    (folder / "conftest.py").write_text(text)
    return run(folder, dataset, cache, *ASKED, *MODES[mode])


@pytest.mark.parametrize("mode", ["serial", "xdist"])
def test_a_fixture_is_told_whatever_it_calls_itself(
    folder: Path, mixed: Path, cache: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fingerprint = human_fingerprint(folder, mixed, cache)
    done = go(folder, mixed, cache, _NAMESAKE.replace("{FINGERPRINT}", repr(fingerprint)), mode)
    said = "crbench_reviewer is that of conftest.py"
    assert done.results()["run"]["fixtures"] == {"crbench_reviewer": "conftest.py"}
    assert json.loads((done.runs[-1] / "run.json").read_text())["fixtures"]["crbench_reviewer"]
    assert said in " ".join(done.output.split())
    assert "reviewer of a fixture in conftest.py" in done.output
    assert said in unescape((done.runs[-1] / "summary.md").read_text())
    main(["gate", str(done.runs[-1]), "--fail-under=0"])
    main(["compare", str(done.runs[0]), str(done.runs[-1])])
    assert capsys.readouterr().out.count(said) == 2


def test_a_fixture_of_the_sandbox_is_told(folder: Path, mixed: Path, cache: Path) -> None:
    done = go(folder, mixed, cache, _SANDBOX)
    assert done.results()["run"]["fixtures"] == {"crbench_sandbox": "conftest.py"}
    assert "sandbox of a fixture in conftest.py" in done.output


def test_a_conftest_file_that_does_not_reach_the_checks_replaces_nothing(
    folder: Path, mixed: Path, cache: Path
) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "conftest.py").write_text(_SANDBOX)
    (folder / "own" / "test_own.py").write_text("def test_own(crbench_sandbox):\n    pass\n")
    done = run(folder, mixed, cache, *ASKED, "own")
    assert done.outcomes() == {"passed": 3, "missed": 1}, done.output
    assert done.results()["run"].get("fixtures", {}) == {}


@pytest.mark.parametrize("mode", ["serial", "xdist"])
@pytest.mark.parametrize(
    ("arguments", "body", "statuses", "outcomes"),
    [
        # Ours is asked and contradicted: what was recorded stands.
        (
            "crbench_verdict",
            "from pytest_crbench.core.status import Status; "
            "return replace(crbench_verdict, status=Status.PASSED)",
            {"first::price": "passed", "first::tax": "missed", "second::name": "passed"},
            {"passed": 2, "missed": 1},
        ),
        # Ours is not asked: there is no verdict.
        (
            "crbench_check",
            "return type('V', (), {'status': 'passed'})()",
            dict.fromkeys(("first::price", "first::tax", "second::name"), "infra_error"),
            {"errors": 3},
        ),
        (
            "crbench_instance, crbench_check, request",
            "from pytest_crbench.core.status import Status; "
            "from pytest_crbench.evaluation.plan import unmeasured; "
            "v = unmeasured(crbench_instance, crbench_check, request.node.key, Status.PASSED, ''); return v",
            dict.fromkeys(("first::price", "first::tax", "second::name"), "infra_error"),
            {"errors": 3},
        ),
    ],
    ids=["contradicted", "another-value", "a-verdict-of-its-own"],
)
def test_a_fixture_makes_no_check_green(
    folder: Path,
    mixed: Path,
    cache: Path,
    mode: str,
    arguments: str,
    body: str,
    statuses: dict[str, str],
    outcomes: dict[str, int],
) -> None:
    done = go(folder, mixed, cache, _GREEN.format(arguments=arguments, body=body), mode)
    assert done.statuses() == statuses, done.output
    assert done.outcomes() == outcomes
    assert done.results()["run"]["fixtures"] == {"crbench_verdict": "conftest.py"}


@pytest.mark.parametrize("how", ["return None", "pytest.skip('not today')"])
def test_a_fixture_hides_no_error(folder: Path, mixed: Path, cache: Path, how: str) -> None:
    (folder / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef crbench_verdict(request):\n"
        "    try:\n        request.getfixturevalue('crbench_verdict')\n"
        f"    except Exception:\n        {how}\n"
    )
    asked = ("--crbench-reviewer=cmd:false", "--crbench-agent=suggestions")
    done = run(folder, mixed, cache, *asked)
    assert set(done.statuses().values()) == {"reviewer_error"}, done.output
    assert done.outcomes() == {"errors": 3}


def test_a_hook_makes_no_check_green(folder: Path, mixed: Path, cache: Path) -> None:
    done = go(folder, mixed, cache, "def pytest_pyfunc_call(pyfuncitem):\n    return True\n")
    assert done.statuses()["first::tax"] == "missed"
    assert done.outcomes() == {"passed": 2, "missed": 1}


def test_another_checks_verdict_is_no_verdict(folder: Path, mixed: Path, cache: Path) -> None:
    text = (
        "import pytest\n\n\n@pytest.fixture\ndef crbench_check(crbench_instance):\n"
        "    return crbench_instance.checks[0]\n"
    )
    done = go(folder, mixed, cache, text)
    assert done.statuses() == {
        "first::price": "passed",
        "first::tax": "infra_error",
        "second::name": "passed",
    }


def test_a_skipped_check_is_not_run(folder: Path, mixed: Path, cache: Path) -> None:
    text = (
        "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n"
        "    items[0].add_marker(pytest.mark.skip('not today'))\n"
    )
    done = go(folder, mixed, cache, text)
    assert done.outcomes() == {"passed": 1, "missed": 1, "skipped": 1}, done.output
    assert [row["check"] for row in done.results()["not_run"]] == ["price"]
