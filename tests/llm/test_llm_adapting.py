"""What an endpoint refuses is left out, and only believed once leaving it out has helped."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.openai_server import OpenAIServer, Step, answer, status

from pytest_crbench.core.errors import InfraError
from pytest_crbench.host.pool import Pool
from pytest_crbench.models.adapting import Adapting
from pytest_crbench.models.client import Model
from pytest_crbench.models.completion import CompletionCache


def adapting(server: OpenAIServer, cache: Path) -> Adapting:
    return Adapting(
        Model("m", base_url=server.base_url, extra_body={"top_k": 20}, cache=CompletionCache(cache))
    )


def ask(model: Adapting, text: str) -> str:
    return model.complete([{"role": "user", "content": text}]).text


def test_a_refusal_that_only_repeats_a_name_changes_no_other_question(tmp_path: Path) -> None:
    def choose(request: dict[str, Any]) -> Step:
        said = request["messages"][0]["content"]
        return status(400, message=f"Refused by policy: {said}") if "top_k" in said else answer("good")

    with OpenAIServer(choose) as server:
        model = adapting(server, tmp_path)
        with pytest.raises(InfraError, match="Refused by policy"):
            ask(model, "the text of a pull request that says top_k")
        assert (ask(model, "another"), model.warnings) == ("good", ())
        assert ask(adapting(server, tmp_path), "and a later run") == "good"
    assert ["top_k" in request for request in server.requests] == [True, False, True, True]


def test_two_questions_at_once_that_meet_the_same_refusal(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=30)

    def refuse(request: dict[str, Any]) -> Step:
        if "top_k" not in request:
            return answer("new")
        both.wait()
        return status(400, message="unknown top_k")

    with OpenAIServer([answer("kept")]) as server:
        ask(adapting(server, tmp_path), "first")
        server.choose = refuse
        model = adapting(server, tmp_path)
        assert ask(model, "first") == "kept"  # from the cache: it tells nothing of the endpoint as it is now
        with Pool(2) as pool:
            asked = [pool.submit(ask, model, text) for text in ("second", "third")]
            assert [one.result() for one in asked] == ["new", "new"]
        assert model.warnings == ("the endpoint refuses top_k: it was left out",)
