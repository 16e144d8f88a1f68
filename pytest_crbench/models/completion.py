"""One answer of a model, read from any dialect of an OpenAI-compatible response, and the cache."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..host import digest
from ..host.files import write_json
from ..text import plainjson
from ..text.plainjson import plain
from ..text.printable import clean, printable
from .usage import Usage, from_response

if TYPE_CHECKING:
    from pathlib import Path

#: Response fields that some endpoints want to see again in the history (reasoning models with tools).
_KEPT = ("reasoning_content", "reasoning_details")


@dataclass(frozen=True)
class ToolCall:
    """A tool call as the model wrote it; ``arguments`` is its text, which may not be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Completion:
    """One answer.

    ``message`` is fit to be sent back as part of the history: tool calls have ids, and arguments that were
    not a JSON object are wrapped in one, since endpoints refuse a history with malformed ones. ``text`` is
    the answer's text, "" if there is none. ``finish_reason`` is the endpoint's, or ``no-choices``.
    ``lost``: seconds that went into failed attempts and waits before this answer came.
    """

    message: dict[str, Any]
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    finish_reason: str
    lost: float = 0.0


def read(body: dict[str, Any], *, prompt_characters: int) -> Completion:
    """Read a response body that has a ``choices`` key; nothing else about it is taken for granted."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    message = choice.get("message") if choice else None
    if choice is None or not isinstance(message, dict):
        usage = from_response(body.get("usage"), prompt_characters=prompt_characters, completion_characters=0)
        return Completion({"role": "assistant", "content": ""}, "", (), usage, "no-choices")
    text = clean(_text(message.get("content")))
    calls = _tool_calls(message.get("tool_calls"))
    # What JSON has no word for (NaN, a lone surrogate) could not be sent back.
    kept = plain({key: message[key] for key in _KEPT if message.get(key)})
    written = len(text) + sum(len(call.arguments) for call in calls) + len(json.dumps(kept))
    return Completion(
        message=_history(text, calls, kept),
        text=text,
        tool_calls=calls,
        usage=from_response(
            body.get("usage"), prompt_characters=prompt_characters, completion_characters=written
        ),
        finish_reason=printable(str(choice.get("finish_reason") or ("tool_calls" if calls else "stop")), 60),
    )


def _text(content: Any) -> str:
    """Content is text, None, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_text(part) for part in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return ""


def _tool_calls(value: Any) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for item in value if isinstance(value, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        identifier = item.get("id") if isinstance(item, dict) else None
        identifier = clean(identifier) if isinstance(identifier, str) else ""
        while not identifier or identifier in seen:
            identifier = f"call_{len(seen) + 1}" if not identifier else f"{identifier}_"
        seen.add(identifier)
        calls.append(
            ToolCall(
                id=identifier,
                name=str(function.get("name") or ""),
                # Some local servers send the object itself where the protocol has its text.
                arguments=clean(arguments if isinstance(arguments, str) else json.dumps(arguments or {})),
            )
        )
    return tuple(calls)


def _history(text: str, calls: tuple[ToolCall, ...], kept: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, **kept}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _name(call.name), "arguments": _arguments(call.arguments)},
            }
            for call in calls
        ]
    return message


def _name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _arguments(text: str) -> str:
    try:
        if isinstance(plainjson.parse(text), dict):
            return text
    except ValueError:
        pass
    return json.dumps({"unreadable": text[:2000]})


@dataclass(frozen=True)
class Route:
    """One kind of question.

    ``resource`` is where the ``openai`` package has the method ``create`` for it; ``key`` tells an answer
    from any other JSON; ``noun`` is what messages call an answer.
    """

    resource: tuple[str, ...]
    key: str
    noun: str


CHAT = Route(("chat", "completions"), "choices", "chat completion")
EMBEDDINGS = Route(("embeddings",), "data", "list of embeddings")


@dataclass(frozen=True)
class CompletionCache:
    """Response bodies below ``root``, as ``<2 hex>/<digest>.json``; only successes are stored."""

    root: Path

    def key(self, question: Any) -> str:
        """Digest of all that decides an answer (URL, request, repeat); plain JSON, no credentials."""
        return digest.of(question)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the stored response, or None; an unreadable file counts as absent and is replaced."""
        try:
            stored = plainjson.parse(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None
        response = stored.get("response") if isinstance(stored, dict) else None
        return response if isinstance(response, dict) else None

    def put(self, key: str, question: Any, response: dict[str, Any]) -> None:
        """Store a response beside what was asked, so that a reader sees what it belongs to.

        Raises:
            InfraError: if the disk is full or the folder cannot be written to.
        """
        write_json(self._path(key), {"question": question, "response": response})

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}.json"
