# ruff: noqa: E501, PTH
"""What model endpoints answer, and what the agent makes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pytest_crbench.core.errors import InfraError
from pytest_crbench.models import completion, tools
from pytest_crbench.models.client import Model
from pytest_crbench.models.completion import CHAT
from pytest_crbench.models.retry import Failure, of_status
from pytest_crbench.models.usage import Price, Usage

from .shapes import altered, anything, json_text, mutated, sometimes, table
from .source import Source, either, listed, one_of, text, whole
from .target import Target, refused

_ARGUMENTS = either(
    one_of('{"command": "ls"}', '{"command": ""}', '{"command": "\\u0000"}', "{", "[]", "[" * 5000), text
)


def targets() -> list[Target]:
    """Answers, tool calls, usage, errors."""
    return [
        Target("model-body", either(json_text(_body), mutated([_SOUND]), json_text(anything)), _read),
        Target("model-answer", either(_body, altered([json.loads(_SOUND)])), _answer),
        Target(
            "model-error",
            json_text(table({"error": sometimes(table({"code": whole(390, 610), "message": text}))}, 30)),
            _read,
        ),
        Target("model-status", lambda s: (s.between(100, 700), text(s), text(s)), _status),
        Target("tool-arguments", _ARGUMENTS, _command),
    ]


_SOUND = (
    b'{"id": "x", "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": '
    b'[{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}]}}], '
    b'"usage": {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 1}}}'
)


def _body(source: Source) -> Any:
    function = table({"name": either(one_of("bash"), text), "arguments": either(_ARGUMENTS, anything)}, 20)
    call = table(
        {
            "id": one_of("a", "b", "call_1", "call_2", "\ud800", "\udfff", ""),
            "function": function,
            "type": one_of("function"),
        },
        20,
    )
    message = table(
        {
            "content": either(text, listed(table({"text": text, "type": one_of("text")}), 3)), "role": one_of("assistant"),
            "tool_calls": listed(sometimes(call, 20), 4), "reasoning_content": text, "reasoning_details": anything,
        },
        20,
    )  # fmt: skip
    count = sometimes(whole(0, 9), 3)
    usage = table(
        {
            "prompt_tokens": count,
            "completion_tokens": count,
            "prompt_tokens_details": table({"cached_tokens": count}),
        },
        20,
    )
    choice = table({"message": message, "finish_reason": either(one_of("stop", "length", None), text)}, 20)
    return table({"choices": listed(sometimes(choice, 30), 2, 1), "usage": usage}, 30)(source)


def _read(raw: bytes, folder: Path) -> None:
    model = Model("m", key="sk-secret-secret")
    found = model.read_body(CHAT, raw, "application/json")
    if isinstance(found, Failure):
        with refused(InfraError):
            raise found.error()
    elif isinstance(found, dict):
        _answer(found, folder)


def _answer(body: Any, _folder: Path) -> None:
    """An answer, whatever it is, can be counted, paid, kept, and sent back as history."""
    if not isinstance(body, dict):
        return
    answer = completion.read(body, prompt_characters=100)
    history = Model("m").request_of([{"role": "user", "content": "x"}, answer.message], [tools.BASH], None)
    json.dumps(history, allow_nan=False, ensure_ascii=False).encode()
    json.dumps([answer.text, answer.finish_reason], ensure_ascii=False).encode()
    calls = answer.message.get("tool_calls", [])
    assert len(calls) == len(answer.tool_calls)
    assert len({call["id"] for call in history["messages"][1].get("tool_calls", [])}) == len(calls)
    for call in calls:
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call["function"]["name"])
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
    for call in answer.tool_calls:
        _command(call.arguments, _folder)
        with refused(tools.FormatError):
            tools.read_command(call)
    total = answer.usage + Usage(calls=1)
    assert Usage.from_dict(json.loads(json.dumps(total.as_dict()))) == total
    assert 0 <= Price(1e3, 1e3).cost(total) < 1e15
    assert json.dumps(total.as_dict())


def _status(value: tuple[int, str, str], _folder: Path) -> None:
    status, said, header = value
    failure = of_status(status, said, {"retry-after": header, "retry-after-ms": header}, "http://h (m)")
    assert failure.asked is None or 0 <= failure.asked < float("inf")
    assert failure.error().reason


def _command(arguments: Any, _folder: Path) -> None:
    with refused(tools.FormatError):
        command = tools.read_command(completion.ToolCall("c", "bash", str(arguments)))
        command.encode()
        assert command.strip()
        assert "\0" not in command
