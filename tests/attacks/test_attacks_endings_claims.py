"""Reviewers and reviews that claim a failure so as not to be counted.

Naive is a harness that believes what a program says of itself, or looks for errors in all that an agent
printed.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.agent_tasks import make_task
from support.loaded_agents import load

from pytest_crbench.core.errors import AgentError
from pytest_crbench.core.model import ReviewComment, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.statistics.gate import decide, make_gate
from pytest_crbench.statistics.score import summarise


def verdict(number: int, status: Status) -> Verdict:
    return Verdict("d", f"i{number}", "c", status=status, reason="", facets={}, check_digest="x")


def test_an_outside_failure_is_claimed_where_the_review_is_bad() -> None:
    """A reviewer exits with the status of an outside failure on each pull request that it has no good
    review of: what it would have missed is nobody's score, and its rate rises.

    Defence: the gate counts self-reported failures as missed (statistics/score.py, core/status.py)
    """
    honest = [verdict(n, Status.PASSED if n < 95 else Status.MISSED) for n in range(100)]
    claimed = [
        v if v.status is Status.PASSED else replace(v, status=Status.INFRA_ERROR, cause="reviewer-outside")
        for v in honest
    ]
    gate = make_gate(fail_under=["0.96"])
    assert summarise(claimed).overall.strict.value == 1, "believed"
    assert decide(gate, summarise(honest)).outcome == "not-met"
    assert decide(gate, summarise(claimed)).outcome == "not-met", "attack: the gate is met"


QUOTES = [
    "Do not swallow this: litellm.AuthenticationError: 401 Unauthorized",
    "An HTTP 503 Service Unavailable is not retried here. API Error: 401.",
    "`429 Too Many\n> Requests` is lost",
]


@pytest.mark.parametrize("body", QUOTES)
def test_a_comment_quotes_the_failure_of_an_endpoint(tmp_path: Path, body: str) -> None:
    """A comment quotes what agents print when their endpoint refuses them, and asks for nothing. The
    agent prints the comment that it works on (wrapped, and with signs of its own at the lines), changes
    nothing, and its silence counts as a failure of the endpoint: the miss becomes an agent_error.

    Defence: words that the agent was given say nothing (agents/usage.py, agents/command.py)
    """
    program = tmp_path / "agent.py"
    program.write_text(
        "import json, sys, textwrap\n"
        "for c in json.load(open(sys.argv[1]))['comments']:\n"
        "    print('\\n| '.join(textwrap.wrap('Working on: ' + c['body'], 30)))\n"
    )
    task = make_task(tmp_path, {"a.txt": "one\n"}, [ReviewComment("c1", body)])
    agent = load(f"cmd:{sys.executable} {program} {{review}}")
    try:
        stop_reason = agent.revise(task).stop_reason
    except AgentError as error:
        stop_reason = error.reason
    printed = (task.directory / "agent.stdout.txt").read_text()
    assert re.search(r"40[13]|429|503", printed), "naive: there is an error in what it printed"
    assert stop_reason == "unchanged", "attack: the miss left the rate"
