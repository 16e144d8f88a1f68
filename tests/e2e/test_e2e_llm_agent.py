"""The `llm` agent from end to end: real HTTP, real containers, real hidden tests.

The model is a script; everything else is what a vendor's run consists of.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.endpoint import KEY, files_with, observations, row, run_llm, told
from support.openai_server import OpenAIServer, Step, answer, call, calls, run, status

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

LOOK = run("cat shop/price_.py")
FIX = run("sed -i 's/wrong/price/' shop/price_.py")
FIX_TAX = run("sed -i 's/wrong/tax/' shop/tax_.py")
HARMLESS = run("echo '# looked at' >> shop/price_.py")
DONE = answer("Done.")
PRICE = ("-k", "price")


def test_an_instance_is_fixed_by_commands_in_a_container(folder: Path, dataset: Path, cache: Path) -> None:
    with OpenAIServer([LOOK, run("hostname; cat /proc/1/cgroup; id -u; ls /"), FIX, DONE]) as server:
        done = run_llm(folder, dataset, cache, server)
    assert done.status == 0, done.output
    assert done.statuses() == {"quagga-4711::price": "passed", "quagga-4711::tax": "missed"}
    found = row(done, "price")
    assert (found["sandbox"], found["stop_reason"]) == ("docker", "finished")
    assert found["usage"]["revision"]["calls"] == 4
    assert found["usage"]["revision"]["commands"] == 3
    assert found["usage"]["revision"]["prompt_tokens"] == 400
    assert found["usage"]["revision"]["completion_tokens"] == 40
    looked, where = observations(server)[:2]
    assert looked == 'exit status 0\ndef price():\n    return "wrong"'
    assert "/docker/" in where or "0::/" in where
    assert "\n0\n" not in where, "commands ran as root"
    # One review and one revision for the two checks: the script was played once.
    assert len(server.requests) == 4


def test_the_same_revision_without_the_decisive_edit_is_missed(
    folder: Path, dataset: Path, cache: Path
) -> None:
    with OpenAIServer([LOOK, HARMLESS, DONE]) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE)
    assert done.status == 0, done.output
    found = row(done, "price")
    assert found["status"] == "missed"
    assert "AssertionError" in found["reason"] or "wrong" in found["reason"]
    patch = next((done.runs[-1] / "evaluations").rglob("revision.patch")).read_text()
    assert "+# looked at" in patch


def test_a_bundled_pull_request_is_fixed(folder: Path, cache: Path) -> None:
    """The shape of the whole benchmark: an archive of the index, a released package, our hidden test."""
    edit = """python3 - <<'END'
path = "tomlkit/items.py"
text = open(path, newline="").read()
for name in ("__truediv__", "__rtruediv__"):
    old = f"    {name} = wrap_method(int.{name})\\n"
    assert text.count(old) == 1
    new = f"    def {name}(self, other):\\n        return item(int.{name}(self, other))\\n"
    text = text.replace(old, new)
open(path, "w", newline="").write(text)
END"""
    with OpenAIServer([run("git diff --stat base head"), run(edit), DONE]) as server:
        done = run_llm(folder, None, cache, server, "releases::tomlkit-0.12.0")
    assert done.status == 0, done.output
    assert done.statuses() == {
        "tomlkit-0.12.0::true-division-truncated": "passed",
        "tomlkit-0.12.0::numbers-unhashable": "missed",
    }
    hidden = (Path(__file__).parents[2] / "instances/releases/tomlkit-0.12.0").glob("test_*.py")
    for test in hidden:
        for line in test.read_text().splitlines():
            assert len(line) < 20 or line.strip() not in told(server)
    assert "tomlkit-0.12.0" not in told(server)


def test_the_model_sees_the_review_at_hand_and_nothing_hidden(
    folder: Path, dataset: Path, cache: Path
) -> None:
    (folder / "ownreview.py").write_text(
        "def review(pull_request, workspace):\n"
        "    return [{'path': 'shop/price_.py', 'lines': [2, 2], 'body': 'Remark of ours.'}]\n"
    )
    looking = run(
        "env; ls -laR . | head -200; git log --all --format=%B; cat /proc/1/environ | tr '\\0' '\\n'"
    )
    with OpenAIServer([looking, run("find / -name 'test_price*' -not -path '/proc/*'"), FIX, DONE]) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE, reviewer="ownreview:review")
    assert row(done, "price")["status"] == "passed", done.output
    text = told(server)
    assert "Remark of ours." in text
    assert 'return \\"wrong\\"' in text or "wrong" in text
    for secret in ("hidden_sentinel", "test_price", "quagga", "savanna", "The price is wrong", KEY):
        # What the model itself wrote comes back to it with every request.
        own = sum(
            secret in str(m) for r in server.requests for m in r["messages"] if m["role"] == "assistant"
        )
        seen = sum(
            secret in str(m) for r in server.requests for m in r["messages"] if m["role"] != "assistant"
        )
        assert seen == 0, f"{secret!r} was told to the model ({own} times by itself)"
    assert {h["authorization"] for h in server.headers} == {f"Bearer {KEY}"}


def test_the_key_is_in_no_file(folder: Path, dataset: Path, cache: Path) -> None:
    """Not even where model and endpoint say it themselves."""
    script = [
        status(500, message=f"no luck for {KEY}"),
        run(f"echo {KEY}; false"),
        FIX,
        answer(f"Done with {KEY}."),
    ]
    with OpenAIServer(script) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE)
    assert row(done, "price")["status"] == "passed", done.output
    assert KEY not in done.output
    assert files_with(folder / ".crbench", KEY) == []
    assert files_with(folder / ".crbench", "false"), "the trajectory is not there"
    assert files_with(cache / "llm", KEY) == []


def test_the_key_is_in_no_reason(folder: Path, dataset: Path, cache: Path) -> None:
    with OpenAIServer([status(401, message=f"Incorrect API key provided: {KEY}")], forever=True) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE)
    found = row(done, "price")
    assert found["status"] == "infra_error"
    assert "Incorrect API key provided" in found["reason"]
    assert KEY not in done.output
    assert files_with(folder / ".crbench", KEY) == []


def test_failures_of_the_endpoint_that_pass_are_retried(folder: Path, dataset: Path, cache: Path) -> None:
    script = [
        status(429, {"retry-after": "0"}),
        LOOK,
        status(500),
        status(503, {"retry-after": "0.2"}),
        FIX,
        status(429, {"retry-after-ms": "50"}),
        DONE,
    ]
    with OpenAIServer(script) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE)
    assert done.status == 0, done.output
    found = row(done, "price")
    assert (found["status"], found["stop_reason"]) == ("passed", "finished")
    assert found["usage"]["revision"]["calls"] == 3, "failed attempts are no calls of the agent"
    assert found["usage"]["revision"]["seconds_lost"] > 0.2
    assert len(server.requests) == 7
    # A retried question is the same question.
    assert server.requests[0] == server.requests[1]
    assert server.requests[2] == server.requests[3] == server.requests[4]


@pytest.mark.parametrize(
    ("script", "options", "said"),
    [
        pytest.param([status(500)], ("--crbench-agent-timeout=6",), "500", id="500"),
        pytest.param([status(429, {"retry-after": "1"})], ("--crbench-agent-timeout=6",), "429", id="429"),
        pytest.param([FIX, status(429, {"retry-after": "4000"})], (), "429", id="429-in-the-middle"),
    ],
)
def test_failures_that_do_not_pass_are_no_measurement(
    folder: Path, dataset: Path, cache: Path, script: list[Step], options: tuple[str, ...], said: str
) -> None:
    with OpenAIServer(script, forever=True) as server:
        done = run_llm(folder, dataset, cache, server, *options)
    assert done.status == 1, done.output
    assert set(done.statuses().values()) == {"infra_error"}
    assert done.outcomes() == {"errors": 2}
    first, second = done.rows()
    assert f"answered {said}" in first["reason"]
    assert second["reason"] == first["reason"]
    assert first["stop_reason"] is None
    assert len(server.requests) >= 2, "it was not tried again, or no step came before"


def test_an_endpoint_that_is_down_leaves_the_gate_undecided(folder: Path, dataset: Path, cache: Path) -> None:
    down = status(429, {"retry-after": "4000"})
    with OpenAIServer([down], forever=True) as server:
        done = run_llm(folder, dataset, cache, server, "--crbench-fail-under=0.1")
    assert done.status == 10, done.output
    assert done.verdict.startswith("crbench: UNDECIDED, coverage 0.000 < 0.95")
    assert len(server.requests) == 1, "a failure is recorded once, for all checks of the pull request"


def test_a_malformed_tool_call_is_told_to_the_model(folder: Path, dataset: Path, cache: Path) -> None:
    script = [
        call("bash", '{"command": "sed'),
        call("editor", "{}"),
        FIX,
        call("bash", '{"cmd": "ls"}'),
        calls([("bash", "[]"), ("bash", '{"command": "cat shop/price_.py"}')]),
        DONE,
    ]
    with OpenAIServer(script) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE)
    found = row(done, "price")
    assert (found["status"], found["stop_reason"]) == ("passed", "finished"), done.output
    told_ = observations(server)
    assert told_[0].startswith("error: the arguments are not JSON")
    assert told_[1].startswith("error: there is no tool 'editor'")
    assert told_[3].startswith("error: the arguments must be a JSON object")
    assert told_[4].startswith("error: the arguments must be a JSON object")
    assert told_[5].endswith('return "price"')


def test_too_many_malformed_calls_end_the_agent_and_its_work_is_tested(
    folder: Path, dataset: Path, cache: Path
) -> None:
    """One decisive edit came before the malformed calls; the other would have come after them."""
    script = [FIX, call("bash", "no JSON"), call("bash", "{}"), call("bash", '"x"'), FIX_TAX, DONE]
    with OpenAIServer(script) as server:
        done = run_llm(folder, dataset, cache, server)
    assert done.status == 0, done.output
    assert done.statuses() == {"quagga-4711::price": "passed", "quagga-4711::tax": "missed"}
    assert {r["stop_reason"] for r in done.rows()} == {"format-errors"}
    assert len(server.requests) == 4, "it was asked again after its third malformed answer"


def test_an_endless_loop_ends_at_the_step_limit_and_its_work_is_tested(
    folder: Path, dataset: Path, cache: Path
) -> None:
    with OpenAIServer([LOOK, FIX, LOOK], forever=True) as server:
        done = run_llm(folder, dataset, cache, server, "--crbench-llm=max-steps=5")
    assert done.status == 0, done.output
    assert done.statuses() == {"quagga-4711::price": "passed", "quagga-4711::tax": "missed"}
    found = row(done, "price")
    assert found["stop_reason"] == row(done, "tax")["stop_reason"] == "step-limit"
    assert found["usage"]["revision"]["calls"] == len(server.requests) == 5


def test_hanging_commands_are_killed_and_told_until_the_time_is_up(
    folder: Path, dataset: Path, cache: Path
) -> None:
    limits = ("--crbench-llm=agent-command-timeout=2", "--crbench-agent-timeout=15")
    with OpenAIServer([FIX, run("sleep 4711")], forever=True) as server:
        done = run_llm(folder, dataset, cache, server, *limits)
    assert done.status == 0, done.output
    assert done.statuses() == {"quagga-4711::price": "passed", "quagga-4711::tax": "missed"}
    found = row(done, "price")
    assert found["stop_reason"] == row(done, "tax")["stop_reason"] == "time-limit"
    assert 15 <= found["durations"]["revision"] < 120
    _, *killed = observations(server)
    assert killed, "the model was not told"
    assert all(text.startswith("killed: it did not end within 2 s") for text in killed)


def test_a_killed_command_is_not_the_end(folder: Path, dataset: Path, cache: Path) -> None:
    look = run("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done | grep '^sleep 471[12]'")
    script = [run("setsid sleep 4711 & sleep 4712"), look, FIX, DONE]
    with OpenAIServer(script) as server:
        done = run_llm(folder, dataset, cache, server, *PRICE, "--crbench-llm=agent-command-timeout=2")
    found = row(done, "price")
    assert (found["status"], found["stop_reason"]) == ("passed", "finished"), done.output
    killed, left, _ = observations(server)
    assert killed.startswith("killed: it did not end within 2 s")
    assert left == "exit status 1\n(no output)"
