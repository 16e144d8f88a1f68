"""Variables of the reviewer and of a program as agent: settings are recorded, secrets are not, both count."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from support.benchmarks import Run, run

KEY = "tok-0123456789abcdef"


def go(folder: Path, mixed: Path, cache: Path, *arguments: str, **environment: str) -> Run:
    """A reviewer and an agent that say which model they have; reviews are taken over by version."""
    tool, agent = folder / "tool.sh", folder / "agent.sh"
    tool.write_text(
        f"echo x >> {shlex.quote(str(folder / 'calls'))}\n"
        'echo "[{\\"body\\": \\"by $MODEL with $STYLE and $MY_TOKEN\\"}]"\n'
    )
    agent.write_text('echo "$MODEL" > by.txt\n')
    options = (
        *(f"--crbench-reviewer=cmd:sh {tool}", f"--crbench-agent=cmd:sh {agent}"),
        *("--crbench-reviewer-version=1", "--crbench-reviewer-env=MODEL", "--crbench-reviewer-env=MY_TOKEN"),
        *("--crbench-agent-env=MODEL", "-k", "second"),
    )
    done = run(folder, mixed, cache, *options, *arguments, env=environment)
    assert done.status == 0, done.output
    return done


def test_another_model_takes_over_no_review(folder: Path, mixed: Path, cache: Path) -> None:
    calls = folder / "calls"
    first = go(folder, mixed, cache, MODEL="first", MY_TOKEN=KEY).results()["run"]["agent"]
    go(folder, mixed, cache, MODEL="first", MY_TOKEN=KEY + "rotated")
    assert len(calls.read_text().split()) == 1, "the same tool, whatever its key is"
    second = go(folder, mixed, cache, MODEL="second", MY_TOKEN=KEY).results()["run"]["agent"]
    assert len(calls.read_text().split()) == 2
    go(folder, mixed, cache, "--crbench-reviewer-env=STYLE=harsh", MODEL="second", MY_TOKEN=KEY)
    assert len(calls.read_text().split()) == 3
    assert first["fingerprint"] != second["fingerprint"]


def test_settings_are_recorded_and_secrets_are_not(folder: Path, mixed: Path, cache: Path) -> None:
    style = ("--crbench-reviewer-env=STYLE=a harsh, long-winded-style=2", "--crbench-agent-env=LEVEL=high")
    done = go(folder, mixed, cache, *style, MODEL="my-own-model-4", MY_TOKEN=KEY)
    made = done.results()["run"]
    assert made["reviewer"]["fingerprint"]["settings"] == {"STYLE": "a harsh, long-winded-style=2"}
    assert made["agent"]["fingerprint"]["settings"] == {"LEVEL": "high"}
    assert made["reviewer"]["fingerprint"]["environment"]["MY_TOKEN"] == "credential"
    (said,) = done.runs[-1].rglob("review.stdout")
    assert json.loads(said.read_text()) == [
        {"body": "by [redacted] with a harsh, long-winded-style=2 and [redacted]"}
    ]
    for path in done.runs[-1].rglob("*"):
        if path.is_file() and path.suffix != ".patch":
            assert "my-own-model-4" not in path.read_text(errors="replace"), path
            assert KEY not in path.read_text(errors="replace"), path
