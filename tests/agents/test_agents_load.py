"""From options to an agent, and the small agents."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.agent_tasks import make_task
from support.loaded_agents import load

from pytest_crbench.agents.llm import LlmAgent
from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.workspace.revision import changes

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-very-secret-0123456789"


def test_an_unknown_agent_names_those_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        load("gpt", {})
    for name in ("llm", "suggestions", "reference", "none", "cmd:TEMPLATE"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("options", "environ", "needs"),
    [
        ({}, {}, "a model and a key"),
        ({"model": "m"}, {}, "a key"),
        ({"model": "m"}, {"OPENAI_API_KEY": "  "}, "a key"),
        ({}, {"OPENAI_API_KEY": KEY}, "a model"),
        ({"base_url": "http://localhost:1/v1"}, {}, "a model"),
    ],
)
def test_a_missing_model_or_key_names_the_ways_out(
    options: dict[str, Any], environ: dict[str, str], needs: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load("llm", environ, **options)
    said = str(caught.value)
    assert f"needs {needs}." in said
    for way in (
        "--crbench-model",
        "--crbench-base-url",
        "--crbench-agent=suggestions",
        "--crbench-agent='cmd:",
    ):
        assert way in said
    assert "CRBENCH_API_KEY or OPENAI_API_KEY" in said
    assert KEY not in said


@pytest.mark.parametrize(
    ("options", "environ", "key", "url"),
    [
        ({}, {"OPENAI_API_KEY": KEY}, KEY, "https://api.openai.com/v1"),
        ({}, {"OPENAI_API_KEY": "other-key", "CRBENCH_API_KEY": KEY}, KEY, "https://api.openai.com/v1"),
        ({}, {"CRBENCH_API_KEY": f"{KEY}\n", "OPENAI_API_KEY": "x"}, KEY, "https://api.openai.com/v1"),
        ({"base_url": "http://localhost:1/v1"}, {}, "", "http://localhost:1/v1"),
        ({}, {"OPENAI_BASE_URL": "http://localhost:2/v1"}, "", "http://localhost:2/v1"),
    ],
)
def test_where_key_and_endpoint_come_from(
    options: dict[str, Any], environ: dict[str, str], key: str, url: str
) -> None:
    agent = load("llm", environ, model="m", **options)
    assert isinstance(agent, LlmAgent)
    assert (agent.model.key, agent.model.base_url) == (key, url)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_cost": 1.0}, "--crbench-llm price"),
        ({"max_total_cost": 1.0}, "--crbench-llm price"),
        ({"price": "cheap"}, "IN:OUT"),
        ({"base_url": "localhost:8000"}, "--crbench-base-url"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load("llm", {"OPENAI_API_KEY": KEY}, model="m", **options)


def fingerprint(**options: Any) -> dict[str, Any]:
    made = load("llm", {"OPENAI_API_KEY": KEY}, **{"model": "m", **options})
    value: dict[str, Any] = json.loads(json.dumps(dict(made.fingerprint)))
    return value


@pytest.mark.parametrize(
    "options",
    [
        {"model": "n"},
        {"base_url": "http://localhost:1/v1"},
        {"temperature": 0.0},
        {"agent_timeout": 5.0},
        {"max_steps": 5},
        {"max_tokens": 5},
        {"max_cost": 5.0, "price": "1:1"},
        {"agent_command_timeout": 5.0},
    ],
)
def test_all_that_decides_a_revision_is_in_the_fingerprint(options: dict[str, Any]) -> None:
    assert fingerprint(**options) != fingerprint()


@pytest.mark.parametrize(
    "options",
    [{"price": "1:1"}, {"base_url": "https://me:pass-word-1@api.openai.com/v1/"}],
)
def test_what_decides_nothing_is_not_in_the_fingerprint(options: dict[str, Any]) -> None:
    assert fingerprint(**options) == fingerprint()
    assert KEY not in json.dumps(fingerprint(**options))


@pytest.mark.parametrize(
    ("spec", "on_clean"),
    [
        ("llm", False),
        ("suggestions", False),
        ("reference", True),
        ("none", False),
        ("cmd:sh -c true", False),
    ],
)
def test_what_the_harness_may_do_with_an_agent(spec: str, on_clean: bool) -> None:
    agent = load(spec, {"OPENAI_API_KEY": KEY}, model="m")
    assert agent.runs_on_clean_review == on_clean
    assert agent.fingerprint["name"] == agent.name


def test_the_reference_agent_puts_the_fixed_tree_in(tmp_path: Path) -> None:
    task = make_task(tmp_path, {"a": "1\n", "b": "2\n"}, [], fixed={"a": "one\n", "c": "3\n"})
    revision = load("reference").revise(task)
    made = changes(task.head, revision.patch)
    assert {f.path: f.content for f in made.files} == {"a": b"one\n", "c": b"3\n"}
    assert made.deleted == ("b",)
    assert revision.warnings == ("reference agent: checks the harness only",)


def test_the_none_agent_changes_nothing(tmp_path: Path) -> None:
    task = make_task(tmp_path, {"a": "1\n"}, [ReviewComment("c", "x", "a", (1, 1), suggestion="2")])
    assert load("none").revise(task).patch == b""


def test_loading_an_agent_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "import os\n"
        "from pytest_crbench import Settings\n"
        "from pytest_crbench.agents.load import load\n"
        "os.environ['OPENAI_API_KEY'] = 'k'\n"
        "load('llm', Settings(model='m'), None)\n"
        "print([m for m in ('openai', 'httpx', 'httpx2', 'docker', 'git', 'pytest') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
