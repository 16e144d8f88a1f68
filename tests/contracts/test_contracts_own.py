"""Every part of ours keeps the contract of its kind, looked at in the way that others look at theirs."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support import aacr
from support.openai_server import OpenAIServer, Step, answer
from support.openai_server import run as runs

from pytest_crbench.contracts import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.benchmarks import Run

    Contract = Callable[..., Run]

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")
#: At least so many tests of each suite must have run: a suite that skips itself holds nothing.
LEAST = {"agent": 7, "dataset": 13, "report": 7, "reviewer": 6, "runner": 12, "sandbox": 36, "scoring": 7}


def kept(done: Run, kind: str) -> None:
    assert done.status == 0, done.output
    assert done.outcomes()["passed"] >= LEAST[kind], done.output


def says(command: str | None) -> Any:
    """A model that runs a command, if there is one, and then says that it is done."""

    def step(request: dict[str, Any]) -> Step:
        ran = any(message["role"] == "tool" for message in request["messages"])
        return runs(command) if command and not ran else answer("<end/>")

    return step


def test_every_kind_has_a_suite(repo_root: Path) -> None:
    suites = (repo_root / "pytest_crbench" / "contracts").glob("test_*.py")
    assert {suite.stem.removeprefix("test_") for suite in suites} == set(KINDS) == set(LEAST)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("human", []),
        ("human:bare", []),
        ("none", []),
        ("file:reviews/{instance}.json", []),
        ("cmd:sh -c 'ruff check --isolated --output-format=sarif .'", ["--crbench-reviewer-exit-ok=0,1"]),
        ("vendor_review:review", []),
    ],
)
def test_reviewers(contract: Contract, folder: Path, spec: str, options: list[str]) -> None:
    (folder / "reviews").mkdir()
    for name in ("plain", "odd"):
        said = {"comments": [{"path": "shop/tax.py", "line": 2, "body": "wrong"}]}
        (folder / "reviews" / f"{name}.json").write_text(json.dumps(said))
    (folder / "vendor_review.py").write_text(
        "def review(pull_request, workspace):\n    yield {'body': pull_request.title}\n"
    )
    kept(contract(f"reviewer:{spec}", *options), "reviewer")


@pytest.mark.parametrize("mode", ["none", "bm25", "agent"])
@pytest.mark.network
def test_reviewers_of_a_model(contract: Contract, cache: Path, mode: str) -> None:
    with OpenAIServer(says("printf '<end/>' > ~/review.txt" if mode == "agent" else None)) as server:
        done = contract(
            f"reviewer:llm:{mode}",
            *("--crbench-model=scripted", f"--crbench-base-url={server.base_url}"),
            *("--crbench-sandbox=local", f"--crbench-cache={cache}"),
        )
    kept(done, "reviewer")


@pytest.mark.parametrize(
    "spec",
    ["suggestions", "reference", "none", "cmd:sh -c 'echo >> shop/__init__.py; cat {review_md} {diff}'"],
)
def test_agents(contract: Contract, spec: str) -> None:
    kept(contract(f"agent:{spec}"), "agent")


@pytest.mark.network
def test_the_agent_of_a_model(contract: Contract, cache: Path) -> None:
    with OpenAIServer(says("echo x >> shop/__init__.py")) as server:
        done = contract(
            "agent:llm",
            *("--crbench-model=scripted", f"--crbench-base-url={server.base_url}"),
            *("--crbench-sandbox=local", f"--crbench-cache={cache}"),
        )
    kept(done, "agent")


@pytest.mark.network
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        "local",
        "support.sandbox_kinds:PLAIN",
        "support.sandbox_kinds:BUBBLEWRAP",
    ],
)
def test_sandboxes(contract: Contract, spec: str) -> None:
    if spec.endswith("BUBBLEWRAP") and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    kept(contract(f"sandbox:{spec}", f"--crbench-base-image={BASE_IMAGE}"), "sandbox")


def test_datasets(contract: Contract, folder: Path, repo_root: Path) -> None:
    comments = (aacr.comment(), aacr.comment("Why?", from_line=9, to_line=9))
    aacr.write(folder / "aacr", [aacr.pull(1, *comments)])
    kept(contract(f"dataset:native:{repo_root}/instances/releases"), "dataset")
    kept(contract("dataset:aacr:aacr"), "dataset")


@pytest.mark.network
def test_the_runner(contract: Contract, cache: Path) -> None:
    kept(contract("runner:pytest", "--crbench-sandbox=local", f"--crbench-cache={cache}"), "runner")


@pytest.mark.network
@pytest.mark.parametrize("name", ["tests", "matching"])
def test_scorings(contract: Contract, cache: Path, name: str) -> None:
    options = ("--crbench-sandbox=local", f"--crbench-cache={cache}", "--crbench-matcher=exact")
    kept(contract(f"scoring:{name}", *options), "scoring")


@pytest.mark.parametrize("name", ["json", "markdown"])
def test_reports(contract: Contract, name: str) -> None:
    kept(contract(f"report:{name}"), "report")


def test_the_names_of_the_user_s_tests_play_no_part(contract: Contract, folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\npython_files = check_*.py\nfilterwarnings = error\n")
    kept(contract("report:json", "--strict-markers", "--strict-config"), "report")


def test_several_parts_in_one_session_and_in_workers(contract: Contract) -> None:
    more = ("--crbench-contract=report:json", "--crbench-contract=agent:none")
    assert contract("reviewer:none", *more, "-n", "2").outcomes()["passed"] == 7 + 7 + 7
    assert contract("reviewer:none", *more).outcomes()["passed"] == 7 + 7 + 7
