"""A scripted server that speaks OpenAI's chat-completions protocol over real HTTP.

    with OpenAIServer([run("ls"), answer("Done.")]) as server:
        ...                       # a client of server.base_url, any key
    server.requests               # the JSON bodies that came, in order

A script is a list of steps; each request takes the next one. A step is made by one of the functions
below: `answer` (text), `run` (a call of the ``bash`` tool), `call` (any tool call, also a malformed one),
`calls` (several), `status` (an HTTP error with headers), `raw` (any body: HTML, half a JSON), `hang`,
`drip` (white space for ever) and `drop` (closes the connection). When the script is used up, its last step
repeats if ``forever`` is set; else the request is answered with status 400.

Embeddings are served where ``embeddings`` is given: a function that makes the step from the request's body,
such as ``vectors(words)``, where ``words`` makes a list of numbers of a text.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = Callable[["_Handler"], None]


def answer(
    text: str | list[Any] | None = "Done.",
    *,
    tokens: tuple[int, int] | None = (100, 10),
    finish: str = "stop",
    **message: Any,
) -> Step:
    """An assistant message without a tool call; ``tokens`` are (prompt, completion), None for no usage."""
    return _completion({"role": "assistant", "content": text, **message}, tokens, finish)


def run(command: str, *, tokens: tuple[int, int] | None = (100, 10), text: str | None = None) -> Step:
    """One well-formed call of the ``bash`` tool."""
    return call("bash", json.dumps({"command": command}), tokens=tokens, text=text)


def call(
    name: str, arguments: Any, *, tokens: tuple[int, int] | None = (100, 10), text: str | None = None
) -> Step:
    """One tool call; ``arguments`` go out as they are, JSON or not."""
    return calls([(name, arguments)], tokens=tokens, text=text)


def calls(
    wanted: list[tuple[str, Any]], *, tokens: tuple[int, int] | None = (100, 10), text: str | None = None
) -> Step:
    """Several tool calls in one message."""
    made = [
        {"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": a}}
        for i, (n, a) in enumerate(wanted)
    ]
    return _completion({"role": "assistant", "content": text, "tool_calls": made}, tokens, "tool_calls")


def status(code: int, headers: dict[str, str] | None = None, message: str = "scripted failure") -> Step:
    """An HTTP error in OpenAI's form."""
    body = json.dumps({"error": {"message": message, "type": "scripted", "code": None}}).encode()
    return lambda handler: handler.reply(code, body, headers=headers)


def raw(body: bytes | str, *, content_type: str = "application/json", code: int = 200) -> Step:
    """Any body: an HTML page, half a JSON, JSON that is no completion."""
    data = body.encode() if isinstance(body, str) else body
    return lambda handler: handler.reply(code, data, content_type=content_type)


def hang(seconds: float = 30.0) -> Step:
    """Say nothing for ``seconds`` (or until the server closes), then drop the connection."""

    def step(handler: _Handler) -> None:
        handler.owner.closing.wait(seconds)
        handler.close_connection = True

    return step


def drip(seconds: float = 30.0) -> Step:
    """Send headers and then a space every 50 ms: no read ever times out."""

    def step(handler: _Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not handler.owner.closing.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()
        handler.close_connection = True

    return step


def drop(sent: bytes = b"") -> Step:
    """Close the connection, after ``sent`` bytes of a response whose length promises more."""

    def step(handler: _Handler) -> None:
        if sent:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(sent) + 100))
            handler.end_headers()
            handler.wfile.write(sent)
        handler.close_connection = True

    return step


def reset(sent: bytes = b'{"choices": [') -> Step:
    """Reset the connection (RST, no orderly end) after ``sent`` bytes of a response that promises more."""

    def step(handler: _Handler) -> None:
        drop(sent)(handler)
        # Linger for no time: what closes the socket resets the connection.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()

    return step


def vectors(embed: Callable[[str], list[float]], *, tokens: int | None = 10) -> Callable[[Any], Step]:
    """Answers to requests for embeddings, each text's vector made by ``embed``; in no particular order."""

    def respond(body: dict[str, Any]) -> Step:
        made = [
            {"object": "embedding", "index": i, "embedding": embed(t)} for i, t in enumerate(body["input"])
        ]
        answered: dict[str, Any] = {"object": "list", "data": made[::-1], "model": body["model"]}
        if tokens is not None:
            answered["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        return raw(json.dumps(answered))

    return respond


class OpenAIServer:
    """Serves a script on a free port of 127.0.0.1 while the ``with`` block runs.

    ``script`` may be a function that makes the step from the request's body. ``port``: one that is free.
    ``certificate``: PEM files of a certificate and its key, to be spoken to over TLS.
    """

    def __init__(
        self,
        script: list[Step] | Callable[[dict[str, Any]], Step],
        *,
        forever: bool = False,
        port: int = 0,
        certificate: tuple[str, str] | None = None,
        models: tuple[str, ...] | None = None,
        embeddings: Callable[[dict[str, Any]], Step] | None = None,
    ) -> None:
        self.choose = script if callable(script) else None
        self.script = [] if callable(script) else list(script)
        #: What ``GET /models`` lists (None: the server has no such path), and how often it was asked.
        self.models = models
        self.asked_for_models = 0
        self.embeddings = embeddings
        #: Bodies of the requests for embeddings, which are not among `requests`.
        self.embedded: list[dict[str, Any]] = []
        self.forever = forever
        self.scheme = "http" if certificate is None else "https"
        #: JSON bodies of the requests, in order, and their headers (lower-case names).
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            # The handshake is made by the connection's own thread: one that fails must not end the server.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._server.daemon_threads = True
        self._server.owner = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"{self.scheme}://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, headers: dict[str, str], body: dict[str, Any]) -> Step:
        with self.lock:
            index = len(self.requests)
            self.requests.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
        if self.choose is not None:
            return self.choose(body)
        if index < len(self.script):
            return self.script[index]
        if self.forever and self.script:
            return self.script[-1]
        return status(400, message="the script is used up")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> OpenAIServer:
        return self.server.owner  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        self.owner.asked_for_models += 1
        if self.path != "/v1/models" or self.owner.models is None:
            self.reply(404, json.dumps({"error": {"message": f"no such path {self.path}"}}).encode())
            return
        listed = [{"id": name, "object": "model", "created": 1} for name in self.owner.models]
        self.reply(200, json.dumps({"object": "list", "data": listed}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if path == "/v1/embeddings" and self.owner.embeddings is not None:
            with self.owner.lock:
                self.owner.embedded.append(body)
            self.owner.embeddings(body)(self)
            return
        if path != "/v1/chat/completions":
            self.reply(404, json.dumps({"error": {"message": f"no such path {self.path}"}}).encode())
            return
        step = self.owner.take({k.lower(): v for k, v in self.headers.items()}, body)
        try:
            step(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def reply(
        self,
        code: int,
        body: bytes,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(code)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, ssl.SSLError):
            return  # a client that trusts no such certificate, or is gone


def _completion(message: dict[str, Any], tokens: tuple[int, int] | None, finish: str) -> Step:
    body: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if tokens is not None:
        body["usage"] = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
        }
    data = json.dumps(body).encode()
    return lambda handler: handler.reply(200, data)
