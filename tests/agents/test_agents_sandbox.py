"""The `llm` agent in the real sandboxes: what it does there is what the revision holds."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

import pytest
from support.agent_tasks import make_task
from support.openai_server import OpenAIServer, answer, run

from pytest_crbench.agents.llm import LlmAgent
from pytest_crbench.core.model import Environment, ReviewComment
from pytest_crbench.core.sandbox import Limits, SandboxSettings
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.models.client import Model
from pytest_crbench.models.conversation import Bounds
from pytest_crbench.sandbox.choose import choose
from pytest_crbench.workspace.repository import build
from pytest_crbench.workspace.revision import changes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_crbench.core.agent import AgentTask
    from pytest_crbench.core.model import Tree
    from pytest_crbench.core.sandbox import Backend, EnvironmentRef, Sandbox

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")
KEY = "sk-very-secret-0123456789"
HEAD: dict[str, bytes | str] = {
    "area.py": "def area(w, h):\r\n    return w + h\r\n",
    "data.bin": b"\0\1\2",
    ".gitignore": "*.log\n",
}
COMMENT = ReviewComment("c1", "An area is a product.", "area.py", (2, 2))
FIX = "sed -i 's/w + h/w * h/' area.py"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow]),
        pytest.param("local", marks=pytest.mark.slow),
    ],
)
def prepared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Backend, EnvironmentRef]]:
    session = secrets.token_hex(8)
    given = SandboxSettings(cache=tmp_path_factory.mktemp("cache"), session=session, base_image=BASE_IMAGE)
    backend = choose(request.param, settings_from_environment(given))
    yield backend, backend.environment(Environment())
    backend.reap(session)


def sandboxed(place: Path, prepared: tuple[Backend, EnvironmentRef], **changes: Any) -> AgentTask:
    backend, environment = prepared

    def opened(head: Tree) -> AbstractContextManager[Sandbox]:
        from pytest_crbench.core.model import Trees

        trees = Trees(head, head)
        git = build(trees, title="t", body="", cache=place / "cache").git_dir
        return backend.open(environment, head, limits=Limits(lifetime=300), git=git)

    return make_task(place, HEAD, [COMMENT], sandbox=opened, **changes)


def agent(server: OpenAIServer, **bounds: Any) -> LlmAgent:
    return LlmAgent(Model("scripted", server.base_url, KEY), Bounds(**{"timeout": 120.0, **bounds}))


def test_commands_of_the_model_make_the_revision(
    tmp_path: Path, prepared: tuple[Backend, EnvironmentRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    task = sandboxed(tmp_path, prepared)
    steps = [
        run("env; pwd; git log --oneline | wc -l; git status --short"),
        run(f"{FIX} && cat > notes.log <<'END'\nkept\nEND"),
        run("git add -A . && git -c user.name=n -c user.email=e commit -qm done"),
        run("cat > big.txt <<'END'\n" + "y" * 150_000 + "\nEND"),
        answer("Done."),
    ]
    with OpenAIServer(steps) as server:
        revision = agent(server).revise(task)
    first = server.requests[1]["messages"][-1]["content"]
    assert first.startswith("exit status 0\n")
    assert KEY not in first
    assert "OPENAI_API_KEY" not in first
    made = {f.path: f.content for f in changes(task.head, revision.patch).files}
    assert made["area.py"] == b"def area(w, h):\r\n    return w * h\r\n"
    assert made["notes.log"] == b"kept\n"
    assert len(made["big.txt"]) == 150_001
    assert set(made) == {"area.py", "notes.log", "big.txt"}
    assert revision.stop_reason == "finished"


def test_a_hanging_command_and_what_it_started_are_killed(
    tmp_path: Path, prepared: tuple[Backend, EnvironmentRef]
) -> None:
    task = sandboxed(tmp_path, prepared)
    steps = [
        run(f"{FIX}; setsid sleep 311 & sleep 312"),
        # The pattern does not match the command that looks for it.
        run("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done | grep '^sleep 31[12]'"),
        answer("Done."),
    ]
    with OpenAIServer(steps) as server:
        revision = agent(server, command_timeout=2.0).revise(task)
    killed, looked = (r["messages"][-1]["content"] for r in server.requests[1:])
    assert killed.startswith("killed: it did not end within 2 s")
    assert looked == "exit status 1\n(no output)"
    made = {f.path: f.content for f in changes(task.head, revision.patch).files}
    assert made == {"area.py": b"def area(w, h):\r\n    return w * h\r\n"}
