"""The door to the model, over real HTTP against a scripted server."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from support.openai_server import OpenAIServer, answer, call, calls, drip, drop, hang, raw, run, status

from pytest_crbench.core.errors import InfraError
from pytest_crbench.models.client import Model
from pytest_crbench.models.completion import CompletionCache
from pytest_crbench.models.retry import ContextLengthError, DeadlineError, Patience

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-very-secret-0123456789"
ASK = [{"role": "user", "content": "hello"}]
QUICK = Patience(total=5.0, first=0.01, longest=0.02, request=5.0)


def model(server: OpenAIServer, **settings: Any) -> Model:
    return replace(Model("m", base_url=server.base_url, key=KEY, patience=QUICK), **settings)


def failure(server: OpenAIServer, **settings: Any) -> InfraError:
    with pytest.raises(InfraError) as caught:
        model(server, **settings).complete(ASK)
    assert KEY not in str(caught.value)
    return caught.value


def test_an_answer_with_its_usage() -> None:
    with OpenAIServer([answer("hi", tokens=(7, 3))]) as server:
        got = model(server).complete(ASK)
    assert (got.text, got.finish_reason, got.tool_calls) == ("hi", "stop", ())
    assert (got.usage.calls, got.usage.prompt_tokens, got.usage.completion_tokens) == (1, 7, 3)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.requests[0] == {"model": "m", "messages": ASK}


def test_sampling_parameters_are_sent_only_when_set() -> None:
    with OpenAIServer([answer()], forever=True) as server:
        model(server, temperature=0.0, seed=3, max_output_tokens=50).complete(ASK)
        model(server, max_output_tokens=50, limit_parameter="max_tokens", extra_body={"top_k": 20}).complete(
            ASK
        )
    first, second = ({k: v for k, v in r.items() if k != "messages"} for r in server.requests)
    assert first == {"model": "m", "temperature": 0.0, "seed": 3, "max_completion_tokens": 50}
    assert second == {"model": "m", "max_tokens": 50, "top_k": 20}


def test_the_form_of_an_answer_is_asked_for_and_what_is_unusable_is_not_kept(tmp_path: Path) -> None:
    form = {"type": "json_object"}
    with OpenAIServer([answer("prose"), answer("{}")], forever=True) as server:
        asked = model(server, cache=CompletionCache(tmp_path))
        said = [
            asked.complete(ASK, response_format=form, usable=lambda got: got.text.startswith("{")).text
            for _ in range(4)
        ]
    assert said == ["prose", "{}", "{}", "{}"]
    assert [r["response_format"] for r in server.requests] == [form, form]


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 529])
def test_what_passes_is_retried(code: int) -> None:
    with OpenAIServer([status(code), status(code), answer("at last")]) as server:
        got = model(server).complete(ASK)
    assert got.text == "at last"
    assert len(server.requests) == 3
    assert got.lost > 0


@pytest.mark.parametrize(
    ("code", "reason"), [(400, "rejected"), (401, "unauthorized"), (403, "unauthorized"), (404, "not-found")]
)
def test_what_does_not_pass_is_not_retried(code: int, reason: str) -> None:
    with OpenAIServer([status(code, message=f"bad key {KEY}")], forever=True) as server:
        error = failure(server)
    assert error.reason == reason
    assert len(server.requests) == 1
    assert str(code) in str(error)
    assert "[redacted]" in str(error)


@pytest.mark.parametrize(("code", "reason"), [(429, "rate-limit"), (500, "endpoint")])
def test_patience_ends(code: int, reason: str) -> None:
    with OpenAIServer([status(code)], forever=True) as server:
        error = failure(server, patience=replace(QUICK, total=0.2))
    assert error.reason == reason
    assert len(server.requests) > 1
    assert "attempt" in str(error)


def test_an_exhausted_account_is_not_waited_for() -> None:
    with OpenAIServer([status(429, message="You exceeded your current quota")], forever=True) as server:
        assert failure(server).reason == "quota"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry-after-ms": "400", "Retry-After": "30"}, 0.4),
        ({"Retry-After": "0.4"}, 0.4),
        ({"Retry-After": "Wed, 01 Jan 2020 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, 0.0),
    ],
)
def test_retry_after_is_honoured(headers: dict[str, str], least: float) -> None:
    with OpenAIServer([status(429, headers), answer()]) as server:
        model(server).complete(ASK)
    waited = server.times[1] - server.times[0]
    assert least <= waited < least + 1.5


def test_retry_after_as_a_date() -> None:
    when = formatdate(time.time() + 2, usegmt=True)
    with OpenAIServer([status(503, {"Retry-After": when}), answer()]) as server:
        model(server).complete(ASK)
    assert 0.8 < server.times[1] - server.times[0] < 3.5  # the date has whole seconds


def test_a_wait_beyond_patience_is_not_begun() -> None:
    began = time.monotonic()
    with OpenAIServer([status(429, {"Retry-After": "3600"})]) as server:
        error = failure(server)
    assert time.monotonic() - began < 2
    assert error.reason == "rate-limit"
    assert "3600" in str(error)


@pytest.mark.parametrize("step", [drop(), drop(b'{"choices": ')])
def test_a_dropped_connection_is_retried(step: Any) -> None:
    with OpenAIServer([step, answer("again")]) as server:
        assert model(server).complete(ASK).text == "again"


def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    nobody = Model("m", f"http://127.0.0.1:{port}/v1", KEY, patience=replace(QUICK, total=0.1))
    with pytest.raises(InfraError, match="no connection to") as caught:
        nobody.complete(ASK)
    assert caught.value.reason == "endpoint"


@pytest.mark.parametrize("step", [hang(), drip()])
def test_a_hanging_endpoint_ends_and_is_infrastructure(step: Any) -> None:
    began = time.monotonic()
    with OpenAIServer([step], forever=True) as server:
        error = failure(server, patience=Patience(total=0.5, first=0.01, request=0.4))
        assert error.reason == "timeout"
        assert not isinstance(error, DeadlineError)
    assert time.monotonic() - began < 5


def test_the_callers_deadline_while_the_endpoint_answers() -> None:
    with OpenAIServer([hang()]) as server:
        began = time.monotonic()
        with pytest.raises(DeadlineError):
            model(server).complete(ASK, deadline=began + 0.3)
        assert time.monotonic() - began < 2


def test_time_lost_to_failures_moves_the_deadline() -> None:
    with OpenAIServer([status(429, {"Retry-After": "1.6"}), answer("in time")]) as server:
        got = model(server).complete(ASK, deadline=time.monotonic() + 1.5)
    assert got.text == "in time"
    assert got.lost >= 1.6


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (raw("<html><title>Sign in</title></html>", content_type="text/html"), "Sign in"),
        (raw('{"choices": [{"mess'), "choices"),
        (raw(""), "(nothing)"),
        (raw('{"hello": 1}'), "hello"),
        (raw("[1, 2]"), "[1, 2]"),
    ],
)
def test_a_body_that_is_no_completion(step: Any, found: str) -> None:
    with OpenAIServer([step]) as server:
        error = failure(server)
    assert error.reason == "unreadable"
    assert found in str(error)
    assert "--crbench-base-url" in str(error)


def test_an_error_object_with_status_200_is_an_error() -> None:
    limited = raw(json.dumps({"error": {"code": 429, "message": "slow down"}}))
    with OpenAIServer([limited, answer("ok")]) as server:
        assert model(server).complete(ASK).text == "ok"
    with OpenAIServer([raw('{"error": "provider is down"}')], forever=True) as server:
        assert failure(server, patience=replace(QUICK, total=0.1)).reason == "endpoint"


def test_messages_too_long_for_the_model() -> None:
    said = "This model's maximum context length is 8192 tokens"
    with OpenAIServer([status(400, message=said)]) as server:
        assert isinstance(failure(server), ContextLengthError)


def test_dialects() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "output_text", "text": "two"}]
    steps = [
        answer(parts, tokens=None),
        answer(None, reasoning_content="because", refusal=None),
        raw('{"choices": []}'),
        raw('{"choices": null, "usage": null}'),
        raw('{"choices": [{"message": null}]}'),
        call("bash", {"command": "ls"}),
        raw('{"choices": [{"message": {"tool_calls": [null, {"function": null}]}}]}'),
        answer("lone \ud800 surrogate"),
    ]
    with OpenAIServer(steps) as server:
        got = [model(server).complete(ASK) for _ in steps]
    assert got[0].text == "one two"
    assert got[0].usage.estimated_calls == 1
    assert got[0].usage.tokens > 0
    assert got[1].message == {"role": "assistant", "content": "", "reasoning_content": "because"}
    assert [g.finish_reason for g in got[2:5]] == ["no-choices"] * 3
    assert json.loads(got[5].tool_calls[0].arguments) == {"command": "ls"}
    assert [c.name for c in got[6].tool_calls] == ["", ""]
    assert got[7].text == "lone \ufffd surrogate"


def test_a_history_with_malformed_tool_calls_can_be_sent_back() -> None:
    with OpenAIServer([calls([("ba sh!", "{not json"), ("", "[]")]), answer()]) as server:
        first = model(server).complete(ASK)
        model(server).complete([*ASK, first.message])
    sent = server.requests[1]["messages"][1]["tool_calls"]
    assert [c["function"]["name"] for c in sent] == ["ba_sh_", "unnamed"]
    assert json.loads(sent[0]["function"]["arguments"]) == {"unreadable": "{not json"}
    assert len({c["id"] for c in sent}) == 2


def test_a_lone_surrogate_in_a_question_is_replaced() -> None:
    with OpenAIServer([answer()]) as server:
        model(server).complete([{"role": "user", "content": "a\udc80b"}])
    assert server.requests[0]["messages"][0]["content"] == "a\ufffdb"


def test_a_shared_answer_needs_no_second_request(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path)
    with OpenAIServer([run("ls", tokens=(5, 2)), answer("other")]) as server:
        first = model(server, cache=cache).complete(ASK)
        again = model(server, cache=cache).complete(ASK)
        other = model(server, cache=cache).complete(ASK, cache_key_extra={"repeat": 2})
    assert len(server.requests) == 2
    assert (again.message, again.tool_calls) == (first.message, first.tool_calls)
    assert (first.usage.calls_from_cache, again.usage.calls_from_cache) == (0, 1)
    assert again.usage.prompt_tokens == 5
    assert other.text == "other"
    files = list(tmp_path.rglob("*.json"))
    assert len(files) == 2
    assert all(f.parent.name == f.name[:2] and KEY not in f.read_text() for f in files)


def test_an_answer_that_tells_the_key_is_not_stored(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path)
    with OpenAIServer([answer(f"Your key is {KEY}."), answer("other")]) as server:
        assert KEY in model(server, cache=cache).complete(ASK).text
        model(server, cache=cache).complete([{"role": "assistant", "content": f"It is {KEY}."}, *ASK])
    assert list(tmp_path.rglob("*.json")) == []


def test_failures_are_not_shared(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path)
    with OpenAIServer([status(401), raw('{"choices": []}'), answer("now")]) as server:
        failure(server, cache=cache)
        model(server, cache=cache).complete(ASK)
        assert model(server, cache=cache).complete(ASK).text == "now"


@pytest.mark.parametrize("change", [{"model": "n"}, {"temperature": 1.0}, {"extra_body": {"top_k": 1}}])
def test_a_different_question_is_asked_again(tmp_path: Path, change: dict[str, Any]) -> None:
    cache = CompletionCache(tmp_path)
    with OpenAIServer([answer("one"), answer("two")]) as server:
        model(server, cache=cache).complete(ASK)
        assert model(server, cache=cache, **change).complete(ASK).text == "two"


def test_a_broken_cache_file_is_replaced(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path)
    with OpenAIServer([answer("one"), answer("two")]) as server:
        model(server, cache=cache).complete(ASK)
        next(tmp_path.rglob("*.json")).write_text("{half")
        assert model(server, cache=cache).complete(ASK).text == "two"
        assert model(server, cache=cache).complete(ASK).text == "two"


def test_a_login_in_the_url_is_used_and_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    with OpenAIServer([answer(), status(401, message="who is hunter2hunter2")]) as server:
        url = server.base_url.replace("http://", "http://user:hunter2hunter2@")
        asked = Model("m", url, KEY, patience=QUICK)
        asked.complete(ASK)
        with pytest.raises(InfraError) as caught:
            asked.complete(ASK)
    assert server.headers[0]["authorization"] == "Basic dXNlcjpodW50ZXIyaHVudGVyMg=="
    assert "POST" in caplog.text
    for told in (str(caught.value), json.dumps(asked.identity), caplog.text):
        assert "hunter2" not in told
        assert "dXNlcjpodW50ZXIyaHVudGVyMg" not in told


def test_the_key_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    with OpenAIServer([answer(), status(500), answer()]) as server:
        asked = model(server)
        asked.complete(ASK)
        asked.complete(ASK)
    assert "POST" in caplog.text
    assert KEY not in caplog.text
    assert KEY not in repr(asked)
