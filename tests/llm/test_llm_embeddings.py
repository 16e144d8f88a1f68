"""Embeddings over real HTTP: order, batches, cache, budget, and endpoints that answer amiss."""

from __future__ import annotations

import base64
import json
import struct
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.openai_server import OpenAIServer, Step, raw, status, vectors

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.core.settings import Settings
from pytest_crbench.models.client import Model
from pytest_crbench.models.embeddings import Embeddings, VectorCache
from pytest_crbench.models.load import embeddings as embeddings_of
from pytest_crbench.models.retry import Patience
from pytest_crbench.models.usage import Ledger

KEY = "sk-very-secret-0123456789"
QUICK = Patience(total=5.0, first=0.01, longest=0.02, request=5.0)


def letters(text: str) -> list[float]:
    return [float(len(text)), float(text.count("a")), 0.5]


def make(server: OpenAIServer, **changes: Any) -> Embeddings:
    model = Model(
        "embedder", base_url=server.base_url, key=KEY, patience=QUICK, ledger=changes.pop("ledger", None)
    )
    return Embeddings(model, **changes)


def serving(respond: Any = None) -> OpenAIServer:
    return OpenAIServer([], embeddings=respond or vectors(letters))


def test_vectors_come_in_the_order_of_the_texts_each_text_once() -> None:
    with serving() as server:
        made, usage = make(server).embed(["b", "aa", "b", "banana"])
    assert [list(vector) for vector in made] == [[1, 0, 0.5], [2, 2, 0.5], [1, 0, 0.5], [6, 3, 0.5]]
    (asked,) = server.embedded
    assert asked == {"model": "embedder", "input": ["b", "aa", "banana"], "encoding_format": "float"}
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 10, 0)


def test_batches_are_bounded_and_nothing_is_asked_for_no_texts() -> None:
    with serving() as server:
        texts = [f"text {'a' * n}" for n in range(25)]
        made, usage = make(server, batch=10).embed(texts)
        assert make(server)([]) == []
    assert [list(vector) for vector in made] == [letters(text) for text in texts]
    assert sorted(len(body["input"]) for body in server.embedded) == [5, 10, 10]
    assert usage.calls == 3


def test_no_more_requests_than_allowed_are_under_way_at_once() -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def respond(body: dict[str, Any]) -> Step:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        threading.Event().wait(0.03)
        with lock:
            under_way -= 1
        return vectors(letters)(body)

    with serving(respond) as server:
        make(server, batch=1, concurrency=3)([f"t{n}" for n in range(12)])
    assert 2 <= most <= 3


def test_a_second_run_makes_no_request(tmp_path: Path) -> None:
    texts = ["one", "two", "", " "]
    with serving() as server:
        first = make(server, vectors=VectorCache(tmp_path / "v.sqlite"))(texts)
        again, usage = make(server, vectors=VectorCache(tmp_path / "v.sqlite")).embed(texts[::-1])
        assert len(server.embedded) == 1
        make(server, vectors=VectorCache(tmp_path / "v.sqlite")).embed(["one", "three"])
        other = replace(make(server).model, model="another")
        Embeddings(other, VectorCache(tmp_path / "v.sqlite")).embed(["one"])
    assert again[::-1] == first
    assert (usage.calls, usage.calls_from_cache) == (0, 1)
    assert [body["input"] for body in server.embedded[1:]] == [["three"], ["one"]]
    assert "" not in server.embedded[0]["input"]


def test_a_damaged_cache_is_one_that_knows_nothing(tmp_path: Path) -> None:
    place = tmp_path / "v.sqlite"
    with serving() as server:
        make(server, vectors=VectorCache(place))(["one"])
        data = bytearray(place.read_bytes())
        at = data.rindex(struct.pack("3f", *letters("one")))
        data[at] ^= 1
        place.write_bytes(data)
        assert list(make(server, vectors=VectorCache(place))(["one"])[0]) == letters("one")
        assert len(server.embedded) == 2, "a changed byte went unnoticed"
        place.write_bytes(b"no database, but long enough to be looked at by SQLite" * 20)
        make(server, vectors=VectorCache(place))(["one"])
        make(server, vectors=VectorCache(place))(["one"])
        assert len(server.embedded) == 3
    (tmp_path / "folder").mkdir()
    with serving() as server:
        assert len(make(server, vectors=VectorCache(tmp_path / "folder"))(["one"])) == 1


def test_what_passes_is_waited_out_and_retry_after_is_honoured() -> None:
    answers: list[Any] = [status(429, {"Retry-After": "0.2"}), status(500), None]

    def respond(body: dict[str, Any]) -> Step:
        return answers.pop(0) or vectors(letters)(body)

    with serving(respond) as server:
        assert list(make(server)(["a"])[0]) == letters("a")
    assert len(server.embedded) == 3


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (status(401), "unauthorized", "401"),
        (status(400, message="input is too long, maximum context length is 512"), "context-length", "512"),
        (raw("<html>", content_type="text/html"), "unreadable", "list of embeddings"),
        (raw('{"choices": []}'), "unreadable", "JSON without data"),
        (raw('{"data": []}'), "unreadable", "0 vectors for 2 texts"),
        (raw('{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}'), "unreadable", "different lengths"),
        (raw('{"data": [{"embedding": [1]}, {"embedding": ["x"]}]}'), "unreadable", "place 1"),
        (raw('{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}'), "unreadable", "place 0"),
        (raw('{"data": [{"embedding": []}, 1]}'), "unreadable", "place 0"),
        (
            raw('{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}'),
            "unreadable",
            "fit",
        ),
    ],
)
def test_what_is_no_answer_is_an_error_and_never_a_vector(answer: Step, reason: str, said: str) -> None:
    with serving(lambda _body: answer) as server, pytest.raises(InfraError, match=said) as caught:
        make(server)(["one", "two"])
    assert caught.value.reason == reason
    assert KEY not in str(caught.value)
    assert len(server.embedded) == 1


def test_another_model_under_a_known_name_is_said_with_the_way_out(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.sqlite")
    with serving() as server:
        make(server, vectors=cache).embed(["one"])
        server.embeddings = vectors(lambda _text: [1.0, 2.0])
        with pytest.raises(InfraError, match=r"\(2, 3; some are of an earlier run.*--crbench-cache"):
            make(server, vectors=cache).embed(["one", "two"])


def test_base64_is_read_where_a_server_sends_it_unasked() -> None:
    packed = base64.b64encode(struct.pack("2f", 1.5, -2.0)).decode()
    with serving(lambda _body: raw(json.dumps({"data": [{"embedding": packed}]}))) as server:
        assert list(make(server)(["x"])[0]) == [1.5, -2.0]


def test_tokens_count_for_the_budget_of_the_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json", total_tokens=15)
    with serving() as server:
        made = make(server, ledger=ledger, batch=1, concurrency=1)
        with pytest.raises(InfraError, match="--crbench-llm max-total-tokens") as caught:
            made(["one", "two", "three", "four"])
    assert caught.value.reason == "budget"
    assert len(server.embedded) == 2
    assert ledger.spent().prompt_tokens == 20


def test_a_long_text_counts_with_its_beginning() -> None:
    with serving() as server:
        made = make(server, text_limit=5)(["aaaaab", "aaaaac", "\ud800"])
    assert made[0] == made[1]
    assert server.embedded[0]["input"] == ["aaaaa", "\ufffd"]


def test_the_settings_name_model_endpoint_and_key(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path, base_url="http://127.0.0.1:1/v1", embedding_model="e")
    environ = {"CRBENCH_API_KEY": KEY}
    made = embeddings_of(settings, None, who="this", environ=environ)
    assert made.identity == {"model": "e", "base_url": "http://127.0.0.1:1/v1", "text_limit": 8000}
    other = replace(settings, embedding_base_url="http://127.0.0.1:2/v1")
    assert embeddings_of(other, None, who="this", environ=environ).model.base_url.endswith(":2/v1")
    with pytest.raises(UsageError, match="this needs a model and a key for embeddings"):
        embeddings_of(Settings(cache=tmp_path), None, who="this", environ={})
    with pytest.raises(UsageError, match="--crbench-llm embedding-base-url=ftp"):
        embeddings_of(replace(settings, embedding_base_url="ftp://x"), None, who="this", environ=environ)
