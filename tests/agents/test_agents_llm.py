"""The `llm` agent: a scripted model over real HTTP, commands that really run."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.agent_tasks import CopySandbox, make_task
from support.loaded_agents import load
from support.openai_server import (
    OpenAIServer,
    Step,
    answer,
    call,
    calls,
    hang,
    raw,
    run,
    status,
)

from pytest_crbench.agents.llm import LlmAgent
from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.models.client import Model
from pytest_crbench.models.completion import CompletionCache
from pytest_crbench.models.conversation import Bounds
from pytest_crbench.models.retry import Patience
from pytest_crbench.models.usage import Ledger, Price
from pytest_crbench.workspace.revision import changes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_crbench.core.agent import AgentTask
    from pytest_crbench.core.model import Revision, Tree
    from pytest_crbench.core.sandbox import Sandbox

KEY = "sk-very-secret-0123456789"
HEAD = {"pkg/area.py": "def area(w, h):\n    return w + h\n", "README": "areas\n"}
COMMENT = ReviewComment("c1", "An area is a product.", "pkg/area.py", (2, 2))
FIX = "sed -i 's/w + h/w * h/' pkg/area.py"
QUICK = Patience(total=2.0, first=0.01, longest=0.02, request=5.0)


def agent(server: OpenAIServer, bounds: Bounds | None = None, **settings: Any) -> LlmAgent:
    model = replace(Model("scripted", server.base_url, KEY, patience=QUICK), **settings)
    return LlmAgent(model, bounds or Bounds(timeout=30.0, command_timeout=5.0))


def task(place: Path, **changes: Any) -> AgentTask:
    return make_task(place, HEAD, [COMMENT], **changes)


def trajectory(task: AgentTask) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((task.directory / "trajectory.json").read_text())
    return value


def fixed(task: AgentTask, revision: Revision) -> bool:
    files = {f.path: f.content for f in changes(task.head, revision.patch).files}
    return files == {"pkg/area.py": b"def area(w, h):\n    return w * h\n"}


def revise(place: Path, steps: list[Step], bounds: Bounds | None = None, **settings: Any) -> Any:
    """Run one revision; returns (task, revision, server)."""
    wanted = task(place)
    with OpenAIServer(steps, forever=settings.pop("forever", False)) as server:
        return wanted, agent(server, bounds, **settings).revise(wanted), server


def told(server: OpenAIServer, request: int) -> str:
    """The last message of a request."""
    return str(server.requests[request]["messages"][-1]["content"])


def test_fixes_a_file_by_tool_calls(tmp_path: Path) -> None:
    wanted, revision, server = revise(tmp_path, [run("cat pkg/area.py"), run(FIX), answer("Product.")])
    assert fixed(wanted, revision)
    assert revision.stop_reason == "finished"
    assert told(server, 1) == "exit status 0\ndef area(w, h):\n    return w + h"
    assert told(server, 2) == "exit status 0\n(no output)"
    assert revision.usage["calls"] == 3
    assert revision.usage["prompt_tokens"] == 300
    assert revision.duration > 0
    record = trajectory(wanted)
    assert record["stop_reason"] == "finished"
    assert [m["role"] for m in record["messages"]] == [
        *("system", "user"),
        *("assistant", "tool", "assistant", "tool", "assistant"),
    ]
    assert len(record["steps"]) == 3
    assert "commands" in record["steps"][0]["seconds"]


def test_the_history_goes_back_in_the_form_of_the_protocol(tmp_path: Path) -> None:
    _, _, server = revise(tmp_path, [run("ls"), answer()])
    system, user, assistant, tool = server.requests[1]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert tool["tool_call_id"] == assistant["tool_calls"][0]["id"]
    assert [t["function"]["name"] for t in server.requests[0]["tools"]] == ["bash"]


def test_new_deleted_and_ignored_files_are_part_of_the_revision(tmp_path: Path) -> None:
    command = "rm README; echo '*' > .gitignore; printf 'a\\0b' > data.bin"
    wanted, revision, _ = revise(tmp_path, [run(command), answer()])
    made = changes(wanted.head, revision.patch)
    assert made.deleted == ("README",)
    assert {f.path: f.content for f in made.files} == {".gitignore": b"*\n", "data.bin": b"a\0b"}


def test_failures_that_pass_are_not_seen_in_the_revision(tmp_path: Path) -> None:
    steps = [status(429, {"Retry-After": "0.05"}), run(FIX), status(500), status(503), answer()]
    wanted, revision, _ = revise(tmp_path, steps)
    assert fixed(wanted, revision)
    assert revision.stop_reason == "finished"
    assert revision.usage["calls"] == 2
    assert revision.usage["seconds_lost"] > 0.05


@pytest.mark.parametrize(("code", "reason"), [(429, "rate-limit"), (500, "endpoint"), (401, "unauthorized")])
def test_failures_that_do_not_pass_are_infrastructure(tmp_path: Path, code: int, reason: str) -> None:
    wanted = task(tmp_path)
    with (
        OpenAIServer([run(FIX), status(code, message=f"no {KEY}")], forever=True) as server,
        pytest.raises(InfraError) as caught,
    ):
        agent(server, patience=replace(QUICK, total=0.3)).revise(wanted)
    assert caught.value.reason == reason
    record = trajectory(wanted)
    assert record["stop_reason"] is None
    assert str(code) in record["error"]
    assert not (tmp_path / "sandbox").exists()


def test_an_endpoint_that_eats_the_whole_time_is_infrastructure(tmp_path: Path) -> None:
    wanted = task(tmp_path)
    began = time.monotonic()
    with OpenAIServer([status(503)], forever=True) as server, pytest.raises(InfraError) as caught:
        agent(server, Bounds(timeout=0.5), patience=replace(QUICK, total=300)).revise(wanted)
    assert caught.value.reason == "endpoint"
    assert time.monotonic() - began < 5


def test_an_endpoint_that_never_answers_is_infrastructure(tmp_path: Path) -> None:
    wanted = task(tmp_path)
    with OpenAIServer([hang()]) as server, pytest.raises(InfraError) as caught:
        agent(server, Bounds(timeout=0.5)).revise(wanted)
    assert caught.value.reason == "timeout"


def test_a_model_that_is_still_writing_at_the_time_limit_has_made_a_revision(tmp_path: Path) -> None:
    wanted, revision, _ = revise(tmp_path, [run(FIX), hang()], Bounds(timeout=3.0))
    assert revision.stop_reason == "time-limit"
    assert fixed(wanted, revision)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (call("bash", "{half"), "not JSON"),
        (call("python", '{"code": "1"}'), "no tool 'python'"),
        (call("bash", "{}"), '"command"'),
        (call("bash", '{"command": 5}'), '"command"'),
        (call("bash", '{"command": "  "}'), '"command"'),
        (call("bash", '["ls"]'), '"command"'),
        (call("bash", json.dumps({"command": "a\0b"})), "NUL"),
        (raw('{"choices": []}'), "did not arrive"),
        (answer("cut", finish="length"), "cut off"),
        (answer(None, finish="content_filter"), "filter"),
        (answer(""), "empty"),
    ],
)
def test_a_malformed_answer_is_told_to_the_model(tmp_path: Path, step: Step, says: str) -> None:
    wanted, revision, server = revise(tmp_path, [step, run(FIX), answer()])
    assert says in told(server, 1)
    assert fixed(wanted, revision)
    assert revision.stop_reason == "finished"


def test_too_many_malformed_answers_in_a_row_end_the_agent(tmp_path: Path) -> None:
    bad = call("bash", "{half")
    steps = [bad, bad, run(FIX), bad, bad, call("nothing", "{}")]
    wanted, revision, server = revise(tmp_path, steps, Bounds(format_error_limit=3))
    assert revision.stop_reason == "format-errors"
    assert len(server.requests) == 6
    assert fixed(wanted, revision)


def test_several_calls_in_one_answer(tmp_path: Path) -> None:
    several = calls(
        [("bash", json.dumps({"command": FIX})), ("no", "{}"), ("bash", '{"command": "echo hi"}')]
    )
    wanted, revision, server = revise(tmp_path, [several, answer()], Bounds(format_error_limit=1))
    assert fixed(wanted, revision)
    results = server.requests[1]["messages"][-3:]
    assert [r["tool_call_id"] for r in results] == ["call_0", "call_1", "call_2"]
    assert results[2]["content"] == "exit status 0\nhi"


def test_an_endless_loop_ends_at_the_step_limit(tmp_path: Path) -> None:
    wanted, revision, server = revise(tmp_path, [run(FIX), run("ls")], Bounds(max_steps=4), forever=True)
    assert revision.stop_reason == "step-limit"
    assert len(server.requests) == 4
    assert fixed(wanted, revision)


def test_a_hanging_command_is_killed_and_told(tmp_path: Path) -> None:
    bounds = Bounds(timeout=30.0, command_timeout=0.5)
    wanted, revision, server = revise(tmp_path, [run(f"{FIX}; echo begun; sleep 60"), answer()], bounds)
    assert told(server, 1).startswith("killed: it did not end within 0.5 s")
    assert "begun" in told(server, 1)
    assert revision.duration < 15
    assert fixed(wanted, revision)


def test_a_command_that_hangs_beyond_the_revision_ends_it(tmp_path: Path) -> None:
    bounds = Bounds(timeout=3.0, command_timeout=60.0)
    wanted, revision, _ = revise(tmp_path, [run(f"{FIX}; sleep 60"), answer()], bounds)
    assert revision.stop_reason == "time-limit"
    assert revision.duration < 15
    assert fixed(wanted, revision)


def test_the_token_limit(tmp_path: Path) -> None:
    steps = [run(FIX, tokens=(600, 100)), run("ls", tokens=(300, 10)), answer()]
    wanted, revision, server = revise(tmp_path, steps, Bounds(max_tokens=1000))
    assert revision.stop_reason == "token-limit"
    assert len(server.requests) == 2
    assert fixed(wanted, revision)


def test_the_token_limit_holds_where_the_endpoint_does_not_count(tmp_path: Path) -> None:
    _, revision, _ = revise(tmp_path, [run("ls", tokens=None)], Bounds(max_tokens=3000), forever=True)
    assert revision.stop_reason == "token-limit"
    assert revision.usage["estimated_calls"] == revision.usage["calls"] > 1


def test_the_cost_limit(tmp_path: Path) -> None:
    bounds = Bounds(max_cost=1.0, price=Price(1.0, 10.0))
    wanted, revision, server = revise(tmp_path, [run(FIX, tokens=(500_000, 50_000)), answer()], bounds)
    assert revision.stop_reason == "cost-limit"
    assert len(server.requests) == 1
    assert revision.usage["cost"] == pytest.approx(1.0)
    assert fixed(wanted, revision)


def test_a_conversation_that_outgrows_the_model_is_a_limit(tmp_path: Path) -> None:
    said = "maximum context length is 4096 tokens"
    wanted, revision, _ = revise(tmp_path, [run(FIX), status(400, message=said)])
    assert revision.stop_reason == "token-limit"
    assert fixed(wanted, revision)


def test_an_answer_before_any_command_is_questioned_once(tmp_path: Path) -> None:
    _, revision, server = revise(tmp_path, [answer("I will fix it."), answer("Nothing to do.")])
    assert "not run any command" in told(server, 1)
    assert (revision.patch, revision.stop_reason) == (b"", "finished")


def test_a_clean_review_does_not_call_the_model(tmp_path: Path) -> None:
    wanted = make_task(tmp_path, HEAD, [])
    with OpenAIServer([]) as server:
        made = agent(server)
        revision = made.revise(wanted)
    assert not made.runs_on_clean_review
    assert (revision.patch, revision.stop_reason) == (b"", "clean-review")
    assert server.requests == []


def test_the_key_is_in_no_file_and_no_log(tmp_path: Path) -> None:
    lines: list[str] = []
    wanted = task(tmp_path, log=lines.append)
    steps = [run(f"echo {KEY} | tee note.txt; {FIX}"), answer(f"The key is {KEY}.")]
    with OpenAIServer(steps) as server:
        made = agent(server)
        made.revise(wanted)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    written = [f for f in wanted.directory.rglob("*") if f.is_file()]
    assert written
    assert all(KEY.encode() not in f.read_bytes() for f in written)
    assert KEY not in "".join(lines)
    assert KEY not in json.dumps(dict(made.fingerprint))


def test_the_environment_of_a_command_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, _, server = revise(tmp_path, [run("env"), answer()])
    assert KEY not in json.dumps(server.requests)
    assert "OPENAI_API_KEY" not in told(server, 1)


def test_the_same_conversation_needs_no_second_request(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path / "llm")
    ledger = Ledger(tmp_path / "usage.json")
    steps = [run("cat pkg/area.py"), run(FIX), answer()]
    with OpenAIServer(steps) as server:
        made = agent(server, cache=cache, ledger=ledger)
        first = made.revise(task(tmp_path / "one"))
        wanted = task(tmp_path / "two")
        again = made.revise(wanted)
        assert len(server.requests) == 3
        with pytest.raises(InfraError):  # another repeat is another question, and the script is used up
            made.revise(task(tmp_path / "three", repeat=2))
    assert again.patch == first.patch
    assert fixed(wanted, again)
    assert again.usage["calls_from_cache"] == 3
    assert ledger.spent().calls == 3


def test_the_budget_of_the_run_ends_the_next_call(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.json", total_tokens=150)
    with OpenAIServer([run("ls"), run("ls"), answer()]) as server:
        with pytest.raises(InfraError, match="--crbench-llm max-total-tokens") as caught:
            agent(server, ledger=ledger).revise(task(tmp_path))
        assert len(server.requests) == 2
        with pytest.raises(InfraError):
            agent(server, ledger=ledger).revise(task(tmp_path / "other"))
        assert len(server.requests) == 2
    assert caught.value.reason == "budget"


def test_long_output_keeps_its_ends(tmp_path: Path) -> None:
    bounds = Bounds(output_limit=1000)
    _, _, server = revise(tmp_path, [run("seq 100000; echo the end"), answer()], bounds)
    said = told(server, 1)
    assert len(said) < 1200
    assert said.startswith("exit status 0\n1\n2\n")
    assert said.endswith("the end")
    assert "left out" in said


def test_output_is_safe_to_read_and_to_send(tmp_path: Path) -> None:
    command = "printf '\\033[31mred\\033[0m \\377 \\000 \\r\\n'; echo oops >&2; exit 3"
    _, _, server = revise(tmp_path, [run(command), answer()])
    said = told(server, 1)
    assert said.startswith("exit status 3\nred \ufffd \ufffd")
    assert said.endswith("[standard error]\noops")


def test_a_command_longer_than_an_argument_can_be(tmp_path: Path) -> None:
    text = "x" * 200_000
    wanted, revision, _ = revise(tmp_path, [run(f"cat > long.txt <<'END'\n{text}\nEND"), answer()])
    made = changes(wanted.head, revision.patch)
    assert [(f.path, len(f.content)) for f in made.files] == [("long.txt", 200_001)]


def test_a_sandbox_without_bash(tmp_path: Path) -> None:
    opened: list[CopySandbox] = []

    class NoBash(CopySandbox):
        def exec(self, argv: Any, *, env: Any = None, **keywords: Any) -> Any:
            tools = tmp_path / "bin"
            return super().exec(argv, env={"PATH": str(tools)}, **keywords)

    @contextmanager
    def sandbox(head: Tree) -> Iterator[Sandbox]:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "sed").symlink_to("/bin/sed")
        opened.append(NoBash(head.path, tmp_path / "sandbox"))
        yield opened[0]

    wanted = task(tmp_path, sandbox=sandbox)
    with OpenAIServer([run(FIX), answer()]) as server:
        assert fixed(wanted, agent(server).revise(wanted))
    assert opened[0].commands[-1][0] == "/bin/sh"


def test_load_gives_an_agent_that_works(tmp_path: Path) -> None:
    wanted = task(tmp_path)
    with OpenAIServer([run(FIX), answer()]) as server:
        made = load(
            "llm",
            {"OPENAI_API_KEY": KEY},
            run=tmp_path,
            model="scripted",
            base_url=server.base_url,
            price="1:2",
            cache=tmp_path / "cache",
            max_total_cost=1.0,
        )
        revision = made.revise(wanted)
    assert fixed(wanted, revision)
    assert revision.usage["cost"] == pytest.approx(0.00024)
    assert (tmp_path / "cache" / "llm").is_dir()
