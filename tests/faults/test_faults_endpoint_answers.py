"""Endpoints that answer with what is no answer; all in one run, a pull request for each."""

from __future__ import annotations

import secrets
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from support.benchmarks import Pull, run, write_dataset
from support.broken_endpoints import BrokenModel
from support.openai_server import OpenAIServer, drip, drop, hang, raw, reset, status
from support.stories import RESUME, Story, crbench_clean, own_cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faults import Told

pytestmark = [pytest.mark.network, pytest.mark.slow]
KEY = "sk-fault-very-secret-0123456789"
#: Seconds that an agent has; a failing endpoint may take as many.
LIMIT = 8
_TOO_LONG = "This model's maximum context length is 8192 tokens"
#: By the first letter of the instance's checks.
FAULTS = {
    "b": [hang()],
    "c": [drop(b'{"choices": [{"message": ')],
    "d": [raw("<html><title>Sign in</title></html>", content_type="text/html")],
    "e": [raw("")],
    "f": [status(429, {"Retry-After": "1"})],
    "g": [reset()],
    "h": [raw('{"hello": 1}')],
    "i": [status(401, message=f"no such key: {KEY}")],
    "j": [drip()],
    "k": [status(500), drop(), reset()],
    "l": [status(429, {"Retry-After": "1"})] * 2,
    "m": [status(429, {"Retry-After": "180"})],
    "n": [status(400, message=_TOO_LONG)],
    "o": [status(400, message=_TOO_LONG)],
}
PASSING = "kl"
#: Answered as soon as the comments are left out.
SHORTER = "n"


@pytest.fixture
def story(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> Story:
    """The run with all faults, and the one that was resumed when the endpoint was well."""
    return once("answers", lambda story: _tell(story, cache))


def _tell(story: Story, cache: Path) -> None:
    pulls = [Pull(letter, fixable=(f"{letter}1",)) for letter in (*FAULTS, "z")]
    dataset = write_dataset(story.folder / "small", pulls)
    own = own_cache(story.folder / "cache", cache)
    model = BrokenModel(FAULTS, PASSING, SHORTER)
    with OpenAIServer(model) as server:
        done = run(
            story.vendor,
            dataset,
            own,
            "--crbench-reviewer=human",
            "--crbench-agent=llm",
            f"--crbench-agent-timeout={LIMIT}",
            f"--crbench-base-url={server.base_url}",
            f"--crbench-model=scripted-{secrets.token_hex(6)}",
            # Most of the time they wait.
            "-n",
            "4",
            env={"CRBENCH_API_KEY": KEY},
        )
        story.keep("first", done, asked=dict(model.asked))
        model.healed = True
        model.asked.clear()
        done = run(story.vendor, dataset, own, *RESUME, env={"CRBENCH_API_KEY": KEY})
    crbench_clean(own)
    sandboxes = [path.name for path in own.glob("sandboxes/*")]
    story.keep("again", done, asked=sorted(model.asked), sandboxes=sandboxes)


def _look(story: Story, letter: str, fault: Told) -> dict[str, Any]:
    """Assert what is the same for every fault of an endpoint; its row of the first run."""
    first, again = story.statuses("first"), story.statuses("again")
    assert first["z"] == "passed", "a sound answer beside a broken one is measured"
    assert first[letter] == fault.status, story.rows("first")[letter]["reason"]
    assert again == {**dict.fromkeys(again, "passed"), "n": "missed"}
    told = story.told("again")
    lost = sorted(name for name, found in first.items() if found == "infra_error")
    assert told["asked"] == lost, "the model is asked again for what was not measured, and for nothing else"
    assert told["sandboxes"] == []
    row: dict[str, Any] = story.rows("first")[letter]
    assert KEY not in str(row)
    return row


def _asked(story: Story, letter: str) -> list[float]:
    times: list[float] = story.told("first")["asked"][letter]
    return times


def test_a_hanging_endpoint(story: Story, fault: Told) -> None:
    """The model endpoint takes a request and never answers.

    Status: infra_error
    Message: was still answering when the time was up
    """
    fault.assert_told(_look(story, "b", fault)["reason"])


def test_half_an_answer(story: Story, fault: Told) -> None:
    """The model endpoint sends half an answer and closes the connection, every time.

    Status: infra_error
    Message: Repeat later with --crbench-resume --crbench-rerun-errors, or with fewer workers
    """
    fault.assert_told(_look(story, "c", fault)["reason"])
    assert len(_asked(story, "c")) >= 3


def test_html(story: Story, fault: Told) -> None:
    """The model endpoint answers 200 with a page in HTML.

    Status: infra_error
    Message: not a chat completion (text/html): <html><title>Sign in</title></html>. Check --crbench-base-url
    """
    fault.assert_told(_look(story, "d", fault)["reason"])
    assert len(_asked(story, "d")) == 1


def test_an_empty_body(story: Story, fault: Told) -> None:
    """The model endpoint answers 200 with an empty body.

    Status: infra_error
    Message: what is not a chat completion (application/json): (nothing). Check --crbench-base-url
    """
    fault.assert_told(_look(story, "e", fault)["reason"])


def test_rate_limits_that_do_not_end(story: Story, fault: Told) -> None:
    """The model endpoint answers 429 for as long as it is asked.

    Status: infra_error
    Message: answered 429: {"message": "scripted failure"
    """
    reason = _look(story, "f", fault)["reason"]
    fault.assert_told(reason)
    assert "--crbench-resume --crbench-rerun-errors, or with fewer workers" in reason
    times = _asked(story, "f")
    assert len(times) >= 3
    assert all(later - sooner >= 1 for sooner, later in pairwise(times)), "Retry-After is honoured"


def test_a_reset_connection(story: Story, fault: Told) -> None:
    """The model endpoint resets the connection in the middle of a body, every time.

    Status: infra_error
    Message: Check that it runs and --crbench-base-url
    """
    fault.assert_told(_look(story, "g", fault)["reason"])


def test_json_of_another_shape(story: Story, fault: Told) -> None:
    """The model endpoint answers 200 with JSON that is no completion.

    Status: infra_error
    Message: what is not a chat completion (JSON without choices): {"hello": 1}. Check --crbench-base-url
    """
    fault.assert_told(_look(story, "h", fault)["reason"])


def test_a_refused_key(story: Story, fault: Told) -> None:
    """The model endpoint answers 401, and repeats the key.

    Status: infra_error
    Message: Check the key (CRBENCH_API_KEY or OPENAI_API_KEY) and that it belongs to this endpoint
    """
    fault.assert_told(_look(story, "i", fault)["reason"])
    assert len(_asked(story, "i")) == 1


def test_an_answer_that_drips(story: Story, fault: Told) -> None:
    """The model endpoint sends a space every 50 ms and no answer.

    Status: infra_error
    Message: was still answering when the time was up
    """
    fault.assert_told(_look(story, "j", fault)["reason"])


def test_failures_that_pass(story: Story, fault: Told) -> None:
    """The model endpoint fails in three ways (500, closed, reset) and then answers.

    Status: passed
    Message: agent: finished after 2 model calls
    """
    row = _look(story, "k", fault)
    fault.assert_told(story.log("k"))
    assert row["usage"]["revision"]["seconds_lost"] > 0


def test_rate_limits_that_end(story: Story, fault: Told) -> None:
    """The model endpoint answers 429 twice, and asks for a second's wait each time.

    Status: passed
    Message: agent: finished after 2 model calls
    """
    row = _look(story, "l", fault)
    fault.assert_told(story.log("l"))
    assert row["usage"]["revision"]["seconds_lost"] >= 2


def test_a_wait_that_is_too_long(story: Story, fault: Told) -> None:
    """The model endpoint answers 429 and asks for a wait of three minutes, longer than a revision may take.

    Status: infra_error
    Message: then asked to wait 180 s; waits of up to 8 s are allowed
    """
    fault.assert_told(_look(story, "m", fault)["reason"])
    assert len(_asked(story, "m")) == 1


def test_a_context_that_is_too_long(story: Story, fault: Told) -> None:
    """The model endpoint answers 400, too long, but for the same request without the comments.

    A limit of the agent, not of the machine: the revision, which is empty, is tested.

    Status: missed
    Message: agent: token-limit after 1 model calls, 0 commands
    """
    assert _look(story, "n", fault)["stop_reason"] == "token-limit"
    fault.assert_told(story.log("n"))


def test_a_context_that_is_too_short_for_anything(story: Story, fault: Told) -> None:
    """The model endpoint answers 400, too long, also when the comments are left out.

    Status: infra_error
    Message: This model's maximum context length is 8192 tokens
    """
    fault.assert_told(_look(story, "o", fault)["reason"])
    assert len(_asked(story, "o")) == 2
