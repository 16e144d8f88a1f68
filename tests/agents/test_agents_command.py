"""`cmd:` agents: real programs in a real checkout."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.agent_tasks import make_task
from support.loaded_agents import load

from pytest_crbench.agents.command import CommandAgent, native
from pytest_crbench.core.errors import AgentError, InfraError, UsageError
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.models.usage import Ledger
from pytest_crbench.workspace.revision import changes

if TYPE_CHECKING:
    from pytest_crbench.core.agent import AgentTask
    from pytest_crbench.core.model import Revision

HEAD = {"a.txt": "one\ntwo\n"}
COMMENT = ReviewComment("c1", "Say two differently.", "a.txt", (2, 2), suggestion="zwei")
SECRET = "tok-0123456789abcdef"


def script(place: Path, body: str) -> Path:
    """Write a Python program; returns its path."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / "agent.py"
    path.write_text(f"import json, os, pathlib, subprocess, sys, time\n{body}\n")
    return path


def revise(place: Path, body: str, arguments: str = "", **options: Any) -> tuple[AgentTask, Revision]:
    task = make_task(place, HEAD, [COMMENT])
    agent = load(f"cmd:{sys.executable} {script(place, body)} {arguments}", **options)
    return task, agent.revise(task)


def left(task: AgentTask, revision: Revision) -> dict[str, bytes]:
    return {f.path: f.content for f in changes(task.head, revision.patch).files}


def test_what_the_program_leaves_in_its_checkout_is_the_revision(tmp_path: Path) -> None:
    body = "pathlib.Path('a.txt').write_text('one\\nzwei\\n'); pathlib.Path('new').write_text('n')"
    task, revision = revise(tmp_path, body)
    assert left(task, revision) == {"a.txt": b"one\nzwei\n", "new": b"n"}
    assert revision.stop_reason == "finished"
    assert (task.head.path / "a.txt").read_text() == "one\ntwo\n"


def test_commits_and_staged_changes_are_part_of_the_revision(tmp_path: Path) -> None:
    body = """
pathlib.Path('a.txt').write_text('one\\nzwei\\n')
git = ['git', '-c', 'user.name=n', '-c', 'user.email=e']
subprocess.run([*git, 'commit', '-qam', 'done'], check=True)
pathlib.Path('staged').write_text('s')
subprocess.run([*git, 'add', 'staged'], check=True)
"""
    assert set(left(*revise(tmp_path, body))) == {"a.txt", "staged"}


def test_every_placeholder_names_what_it_says(tmp_path: Path) -> None:
    body = """
workspace, review, markdown, diff, prompt = sys.argv[1:6]
told = {
    "cwd": os.getcwd() == os.path.realpath(workspace),
    "review": json.load(open(review)),
    "markdown": open(markdown).read(),
    "diff": open(diff).read(),
    "prompt": open(prompt).read(),
    "inputs": sorted(os.listdir(os.path.dirname(review))),
    "branches": subprocess.run(
        ["git", "branch", "--format=%(refname:short)"], capture_output=True, text=True
    ).stdout.split(),
    "paths": sys.argv[1:],
}
pathlib.Path("told.json").write_text(json.dumps(told))
"""
    task, revision = revise(tmp_path, body, "{workspace} {review} {review_md} {diff} {prompt}")
    told = json.loads(left(task, revision)["told.json"])
    assert told["cwd"]
    assert told["review"] == {
        "comments": [
            {
                "id": "c1",
                "level": "inline",
                "path": "a.txt",
                "lines": [2, 2],
                "side": "right",
                "body": "Say two differently.",
                "suggestion": "zwei",
            }
        ]
    }
    assert "Say two differently." in told["markdown"]
    assert told["diff"] == task.pull_request.diff != ""
    assert "Say two differently." in told["prompt"]
    assert "Change things" in told["prompt"]
    assert told["branches"] == ["base", "head"]
    assert str(tmp_path) not in json.dumps(told["paths"])


def test_a_placeholder_within_a_word_and_odd_arguments(tmp_path: Path) -> None:
    body = "pathlib.Path('args').write_text(json.dumps(sys.argv[1:]))"
    task, revision = revise(tmp_path, body, "'--diff={diff}' '$HOME; {{\"k\": [1]}}' 'a  b'")
    first, second, third = json.loads(left(task, revision)["args"])
    assert first.startswith("--diff=/")
    assert (second, third) == ('$HOME; {"k": [1]}', "a  b")


def test_a_program_that_fails_is_an_agent_error(tmp_path: Path) -> None:
    task = make_task(tmp_path, HEAD, [COMMENT])
    program = script(tmp_path, "print('out'); sys.exit('could not log in')")
    agent = load(f"cmd:{sys.executable} {program}")
    with pytest.raises(AgentError, match=r"exit status 1.*could not log in") as caught:
        agent.revise(task)
    assert caught.value.reason == "crashed"
    assert (task.directory / "agent.stdout.txt").read_text() == "out\n"
    assert "could not log in" in (task.directory / "agent.stderr.txt").read_text()


def test_an_outside_failure_of_the_agent(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="reports an outside failure: 429 from the endpoint") as caught:
        revise(tmp_path, "print('429 from the endpoint', file=sys.stderr); sys.exit(75)")
    assert caught.value.reason == "agent-outside"


#: The end of what aider 0.86.2 prints at a 401, with exit status 0 and its histories in the tree.
AIDER = """
print('Model: openai/stub-model with diff edit format')
print('litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect \\nAPI key provided: x')
pathlib.Path('.aider.chat.history.md').write_text('# aider chat')
pathlib.Path('.aider.tags.cache.v4').mkdir()
pathlib.Path('.aider.tags.cache.v4/cache.db').write_text('x')
"""


@pytest.mark.parametrize("more", ["", "pathlib.Path('.gitignore').write_text('.aider*\\n')"])
def test_an_agent_that_fails_with_exit_status_0(tmp_path: Path, more: str) -> None:
    with pytest.raises(AgentError, match=r"endpoint failed: .*litellm.AuthenticationError") as caught:
        revise(tmp_path, AIDER + more)
    assert caught.value.reason == "agent-endpoint"


@pytest.mark.parametrize(
    "said",
    [
        "API Error: 401 {'type': 'error'}",
        "unexpected status 401 Unauthorized: no",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "openai.RateLimitError: Error code: 429",
        "HTTP 503 Service Unavailable",
        "402 Payment Required",
        "Your credit balance is too low to access the API",
        "TypeError: fetch failed (ECONNREFUSED)",
        "{'type': 'overloaded_error'}",
        "\x1b[31m500\x1b[0m Internal Server\n  Error",
    ],
)
def test_what_agents_print_when_their_endpoint_fails(tmp_path: Path, said: str) -> None:
    with pytest.raises(AgentError) as caught:
        revise(tmp_path, f"print({said!r}, file=sys.stderr)")
    assert caught.value.reason == "agent-endpoint"


@pytest.mark.parametrize(
    "shown",
    [
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "class ConnectionError:  # A Connection error occurred." + "\n# code" * 500,
    ],
)
def test_what_an_agent_shows_is_no_failure_of_its_endpoint(tmp_path: Path, shown: str) -> None:
    _, revision = revise(tmp_path, f"print({shown!r})")
    assert revision.stop_reason == "unchanged"


def test_an_agent_that_changes_nothing_is_told(tmp_path: Path) -> None:
    _, revision = revise(tmp_path, "print('I see 500 lines and 401 words; nothing to do.')")
    assert (revision.patch, revision.stop_reason) == (b"", "unchanged")
    assert revision.warnings == ("the agent ended with exit status 0 and changed no file",)


def test_an_agent_that_recovers_has_finished(tmp_path: Path) -> None:
    body = "print('429 Too Many Requests, trying again'); pathlib.Path('a.txt').write_text('zwei')"
    _, revision = revise(tmp_path, body)
    assert (revision.stop_reason, revision.warnings) == ("finished", ())


def test_what_agents_leave_behind_is_no_part_of_a_revision(tmp_path: Path) -> None:
    body = """
for name in ('.aider.conf.yml', '.claude/settings.json', '.codex/log/x', 'src/.claude/kept', 'b.txt'):
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text('new')
"""
    head = {**HEAD, ".claude/agents/a.md": "theirs"}
    task = make_task(tmp_path, head, [COMMENT])
    agent = load(f"cmd:{sys.executable} {script(tmp_path, body)}")
    assert set(left(task, agent.revise(task))) == {"b.txt", "src/.claude/kept", ".claude/settings.json"}


def test_a_prompt_that_is_no_argument(tmp_path: Path) -> None:
    """One argument holds 128 KiB; the prompt is a file, which has no such limit."""
    task = make_task(tmp_path, HEAD, [replace(COMMENT, body=f"{n} " + "x" * 7000) for n in range(40)])
    with pytest.raises(AgentError, match=r"exit status 126.*Argument list too long.*`tool < {prompt}`"):
        load("""cmd:sh -c 'exec /bin/echo "$(cat {prompt})"'""").revise(task)
    revision = load("cmd:sh -c 'wc -c < {prompt} > size'").revise(task)
    assert int(left(task, revision)["size"]) > 128 * 1024


def used(text: str) -> str:
    return f"pathlib.Path(sys.argv[1]).write_text({text!r}); pathlib.Path('a.txt').write_text('zwei')"


@pytest.mark.parametrize("names", [("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")])
def test_what_a_program_used_is_in_its_revision_and_in_the_budget(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    told = json.dumps({names[0]: 900, names[1]: 100, "cost": 0.5})
    ledger = tmp_path / "ledger.json"
    options = {"run": tmp_path, "max_total_tokens": 1500, "agent_name": "fixer", "agent_version": "2.1"}
    for place in ("one", "two"):
        task, revision = revise(tmp_path / place, used(told), "{usage}", **options)
        assert revision.usage == {"prompt_tokens": 900, "completion_tokens": 100, "cost": 0.5}
        assert revision.agent == "fixer"
        assert set(left(task, revision)) == {"a.txt"}
    assert Ledger(ledger).spent().tokens == 2000
    with pytest.raises(InfraError, match=r"2000 tokens.*--crbench-llm max-total-tokens=1500") as caught:
        revise(tmp_path / "three", used(told), "{usage}", **options)
    assert caught.value.reason == "budget"


def test_a_budget_of_cost_holds_for_a_program_that_tells_its_own(tmp_path: Path) -> None:
    options = {"run": tmp_path, "max_total_cost": 1.0}
    told = used('{"total_cost_usd": 0.6}')
    for place in ("one", "two"):
        revise(tmp_path / place, told, "{usage}", **options)
    with pytest.raises(InfraError, match=r"1\.2000 of cost"):
        revise(tmp_path / "three", told, "{usage}", **options)
    priced = {"run": tmp_path / "other", "max_total_cost": 1.0, "price": "1000:1000"}
    revise(tmp_path / "four", used('{"prompt_tokens": 1000, "cost": 0.01}'), "{usage}", **priced)
    with pytest.raises(InfraError, match=r"1\.0000 of cost"):
        revise(tmp_path / "five", told, "{usage}", **priced)


@pytest.mark.parametrize("text", ["", "no", "[1]", '{"prompt_tokens": "9"}', '{"cost": -1}', '{"cost": NaN}'])
def test_what_is_not_told_is_estimated(tmp_path: Path, text: str) -> None:
    ledger = tmp_path / "ledger.json"
    _, revision = revise(tmp_path / "one", used(text), "{usage}", run=tmp_path, max_total_tokens=10_000)
    assert revision.usage == {}
    assert [("estimate" in warning) for warning in revision.warnings] == ([True] if text else [])
    assert Ledger(ledger).spent().estimated_calls == 1
    assert Ledger(ledger).spent().tokens > 50


def test_what_a_program_used_before_it_failed_was_spent(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    body = used('{"prompt_tokens": 7}') + "; sys.exit(3)"
    with pytest.raises(AgentError, match="exit status 3") as caught:
        revise(tmp_path / "one", body, "{usage}", run=tmp_path)
    assert caught.value.usage == {"prompt_tokens": 7.0}
    assert Ledger(ledger).spent().tokens == 7


def test_name_version_and_budget_of_a_program() -> None:
    plain, made = (
        load("cmd:sh -c true", agent_name=n, agent_version=v) for n, v in ((None, None), ("x", "2"))
    )
    assert (plain.name, made.name) == ("cmd:sh", "x")
    assert plain.fingerprint != made.fingerprint
    assert made.fingerprint == load("cmd:sh -c true", agent_name="y", agent_version="2").fingerprint
    for limit in ("max_total_tokens", "max_total_cost"):
        with pytest.raises(UsageError, match=r"the file \{usage\}"):
            load("cmd:sh -c true", **{limit: 5})
    with pytest.raises(UsageError, match="--crbench-agent-name"):
        load("suggestions", agent_name="x")


def test_a_program_that_is_killed_is_an_agent_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="signal 9"):
        revise(tmp_path, "os.kill(os.getpid(), 9)")


def test_a_program_that_cannot_be_started_is_an_agent_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    agent = load(f"cmd:{broken}")
    with pytest.raises(AgentError, match="cannot start"):
        agent.revise(make_task(tmp_path, HEAD, [COMMENT]))


def test_at_the_time_limit_the_work_so_far_is_the_revision(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"""
pathlib.Path('a.txt').write_text('half\\n')
child = subprocess.Popen(['setsid', 'sleep', '60'])
pathlib.Path({str(pid)!r}).write_text(str(child.pid))
time.sleep(60)
"""
    began = time.monotonic()
    task, revision = revise(tmp_path, body, agent_timeout=2.0)
    assert time.monotonic() - began < 15
    assert revision.stop_reason == "time-limit"
    assert left(task, revision) == {"a.txt": b"half\n"}
    stat = Path(f"/proc/{pid.read_text()}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_environment_is_small_and_credentials_are_scrubbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-program")
    monkeypatch.setenv("MY_TOKEN", SECRET)
    monkeypatch.setenv("MY_MODE", "careful-and-long")
    body = """
json.dump(dict(os.environ), open('env.json', 'w'))
print(os.environ['MY_TOKEN'])
print(os.environ['MY_MODE'])
"""
    task, revision = revise(tmp_path, body, agent_env=("MY_TOKEN", "MY_MODE", "NOT_SET"))
    seen = json.loads(left(task, revision)["env.json"])
    assert "OPENAI_API_KEY" not in seen
    assert seen["MY_TOKEN"] == SECRET
    assert seen["PATH"].startswith(os.environ["PATH"])
    assert (task.directory / "agent.stdout.txt").read_text() == "[redacted]\n[redacted]\n"


def test_a_credential_is_not_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with pytest.raises(AgentError) as caught:
        revise(tmp_path, "sys.exit('bad ' + os.environ['MY_TOKEN'])", agent_env=("MY_TOKEN",))
    assert SECRET not in str(caught.value)
    assert "bad [redacted]" in str(caught.value)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "no program"),
        ("no-such-program-here {review}", "no program 'no-such-program-here'"),
        ("sh -c 'x", "quot"),
        ("sh {instance}", "no placeholder {instance}"),
        ("sh {worspace}", "{workspace}"),
        ("sh {workspace!r}", "no placeholder"),
        ("sh {", "braces"),
        ("{workspace}/run.sh", "no placeholder {workspace}"),
        ("./not-here", "looked at /"),
    ],
)
def test_a_template_that_cannot_work_is_told_at_once(template: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(f"cmd:{template}")
    assert why in str(caught.value)


def test_a_relative_program_is_relative_to_the_invocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    program = tmp_path / "tools" / "{fix}.sh"
    program.write_text("#!/bin/sh\necho zwei > a.txt\necho $1 > told\n")
    program.chmod(0o755)
    agent = load("cmd:./tools/{{fix}}.sh {cwd}")
    task = make_task(tmp_path, HEAD, [COMMENT])
    assert left(task, agent.revise(task)) == {"a.txt": b"zwei\n", "told": f"{tmp_path}\n".encode()}


def test_the_interpreter_has_a_placeholder(tmp_path: Path) -> None:
    program = script(tmp_path, "pathlib.Path('seen').write_text(sys.executable)")
    agent = load(f"cmd:{{python}} {program}")
    task = make_task(tmp_path, HEAD, [COMMENT])
    assert left(task, agent.revise(task))["seen"].decode() == sys.executable


def test_a_read_only_leftover_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    revise(tmp_path, "os.mkdir('d'); open('d/f', 'w').close(); os.chmod('d', 0o500)")
    assert list((tmp_path / "temp").iterdir()) == []


def test_a_credential_in_the_command_line_is_not_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    agent = load(f"cmd:sh --token={SECRET}", agent_env=("MY_TOKEN",))
    assert agent.fingerprint["template"] == "sh --token=[redacted]"


def test_a_command_is_named_after_its_program() -> None:
    agent = load("cmd:sh -c true", agent_timeout=5.0)
    assert isinstance(agent, CommandAgent)
    assert agent.name == "cmd:sh"
    assert agent.fingerprint["template"] == "sh -c true"
    json.dumps(dict(agent.fingerprint))


def test_the_native_form_can_be_read_back() -> None:
    from pytest_crbench.reviewers.formats import native as formats

    value = native([COMMENT, ReviewComment("c2", "All of it.", level="general", severity="high", rule="R1")])
    assert formats.is_review(value)
    assert value["comments"][1] == {
        "id": "c2",
        "level": "general",
        "side": "right",
        "body": "All of it.",
        "severity": "high",
        "rule": "R1",
    }
