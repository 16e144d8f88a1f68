"""Snippets of head beside each hunk: by words and by meaning, over real HTTP."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.fixture_trees import FILES, write
from support.openai_server import OpenAIServer, Step, answer, raw, status, vectors
from support.reviewing import asked_about, by_file, question, snippets

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.core.reviewer import Reviewer, ReviewTask
from pytest_crbench.core.settings import Settings
from pytest_crbench.models.retrieval import index
from pytest_crbench.reviewers.llm import hunk_reviewer, make_llm_reviewer
from pytest_crbench.reviewers.llm.hunk_reviewer import RECORD

if TYPE_CHECKING:
    from conftest import Project

DIFF = """\
diff --git a/shop/client.py b/shop/client.py
new file mode 100644
--- /dev/null
+++ b/shop/client.py
@@ -0,0 +1,3 @@
+def wait(response):
+    value = response.headers.get("Retry-After")
+    return float(value)
diff --git a/shop/pay.py b/shop/pay.py
--- a/shop/pay.py
+++ b/shop/pay.py
@@ -1,2 +1,2 @@
 # Totals
-total = 0
+total = sum(line.price * line.amount for line in order.lines)
"""
CLIENT = 'def wait(response):\n    value = response.headers.get("Retry-After")\n    return float(value)\n'
PAY = "# Totals\ntotal = sum(line.price * line.amount for line in order.lines)\n"


@pytest.fixture
def task(project: Project, tmp_path: Path) -> ReviewTask:
    files = {**FILES, "shop/client.py": CLIENT.encode(), "shop/pay.py": PAY.encode()}
    tree = write(tmp_path / "head", files)
    return project.task(tmp_path / "run", head=tree, diff=DIFF.encode())


def letters(text: str) -> list[float]:
    """A model of a sort: letters as meanings."""
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


def reviewer(mode: str, server: OpenAIServer, cache: Path, **changes: Any) -> Reviewer:
    settings = Settings(
        cache=cache, base_url=server.base_url, reviewer_model="m", embedding_model="e", **changes
    )
    return make_llm_reviewer(f"llm:{mode}", settings, None, {})


def shown(server: OpenAIServer, path: str) -> list[tuple[str, str]]:
    (request,) = [r for r in server.requests if asked_about(r) == path]
    return snippets(request)


def test_bm25_shows_what_shares_words_but_not_the_hunk_itself(task: ReviewTask, tmp_path: Path) -> None:
    with OpenAIServer(by_file({})) as server:
        review = reviewer("bm25", server, tmp_path / "cache").review(task)
        again = reviewer("bm25", server, tmp_path / "cache").review(task)
        assert len(server.requests) == 2, "a second run asked again"
    first, second = shown(server, "shop/client.py"), shown(server, "shop/pay.py")
    assert len(first) == len(second) == 3
    # The function that reads the same header, and the one that sums up orders.
    assert first[0][0] == second[0][0] == "shop/orders.py"
    assert ("shop/client.py", "1-3") not in first
    assert ("shop/pay.py", "1-2") not in second
    text = next(question(r) for r in server.requests if asked_about(r) == "shop/client.py")
    assert "def retry_after(headers):" in text
    assert any("not indexed: 1 binary" in w for w in review.warnings)
    assert again.warnings == review.warnings
    record = json.loads((task.directory / RECORD).read_text())
    assert [s[0] for s in record[0]["snippets"]] == [path for path, _ in first]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_as_many_snippets_as_asked_for(task: ReviewTask, tmp_path: Path, count: int) -> None:
    with OpenAIServer(by_file({})) as server:
        made = reviewer("bm25", server, tmp_path / "cache", reviewer_snippets=count)
        made.review(task)
    assert len(shown(server, "shop/client.py")) <= count
    assert bool(shown(server, "shop/client.py")) == bool(count)
    assert (tmp_path / "cache" / "indexes").exists() == bool(count)


def test_embeddings_rank_and_a_second_run_asks_for_none(task: ReviewTask, tmp_path: Path) -> None:
    with OpenAIServer(by_file({}), embeddings=vectors(letters)) as server:
        review = reviewer("embedding", server, tmp_path / "cache").review(task)
        asked = len(server.embedded)
        # One request for the chunks and one for a hunk: the other is a new file, whose text is a chunk's.
        assert asked == 2
        again = reviewer("embedding", server, tmp_path / "cache").review(task)
        assert (len(server.requests), len(server.embedded)) == (2, asked)
    assert len(shown(server, "shop/pay.py")) == 3
    assert ("shop/pay.py", "1-2") not in shown(server, "shop/pay.py")
    assert (review.usage["embedding_calls"], review.usage["embedding_tokens"]) == (2, 20)
    assert review.usage["calls"] == 2
    assert "embedding_calls" not in again.usage
    assert {body["model"] for body in server.embedded} == {"e"}


def test_an_endpoint_of_embeddings_that_fails_is_nobodys_score(task: ReviewTask, tmp_path: Path) -> None:
    with (
        OpenAIServer(by_file({}), embeddings=lambda _body: status(401)) as server,
        pytest.raises(InfraError) as caught,
    ):
        reviewer("embedding", server, tmp_path / "cache").review(task)
    assert caught.value.reason == "unauthorized"
    assert server.requests == []


def test_what_an_index_used_that_failed_is_told(task: ReviewTask, tmp_path: Path) -> None:
    bad = raw('{"data": [], "usage": {"prompt_tokens": 7}}')
    with (
        OpenAIServer(by_file({}), embeddings=lambda _body: bad) as server,
        pytest.raises(InfraError, match="0 vectors for") as caught,
    ):
        reviewer("embedding", server, tmp_path / "cache").review(task)
    assert caught.value.usage == {"embedding_calls": 1, "embedding_tokens": 7}


def test_a_question_too_long_with_snippets_is_asked_without(task: ReviewTask, tmp_path: Path) -> None:
    def choose(request: dict[str, Any]) -> Step:
        if snippets(request):
            return status(400, message="This model's maximum context length is 100 tokens")
        return answer("<end/>")

    with OpenAIServer(choose) as server:
        review = reviewer("bm25", server, tmp_path / "cache").review(task)
    assert len(server.requests) == 4
    assert sum("asked without them" in w for w in review.warnings) == 2


def test_an_empty_answer_of_the_search_is_no_trouble(task: ReviewTask, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", {"a.py": b"\n"})
    with OpenAIServer(by_file({})) as server:
        reviewer("bm25", server, tmp_path / "cache").review(replace(task, head=empty))
    assert shown(server, "shop/client.py") == []


def test_the_fingerprint_holds_what_decides_the_snippets(tmp_path: Path) -> None:
    with OpenAIServer([]) as server:
        one = reviewer("bm25", server, tmp_path).fingerprint
        assert one["snippets"] == 3
        assert one["index"]["method"]["kind"] == "bm25"
        assert "tree-sitter" in one["index"]["chunks"]["grammars"]
        two = reviewer("embedding", server, tmp_path).fingerprint
        assert two["index"]["method"]["model"] == "e"
    assert (
        "snippets"
        not in make_llm_reviewer(
            "llm:none", Settings(cache=tmp_path, base_url="http://127.0.0.1:9/v1", model="m"), None, {}
        ).fingerprint
    )


def test_a_missing_model_of_embeddings_is_said_before_any_work(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path, base_url="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(UsageError, match=r"llm:embedding needs a model for embeddings.*embedding-model"):
        make_llm_reviewer("llm:embedding", settings, None, {})


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "bm25s", None)
    settings = Settings(cache=tmp_path, base_url="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(UsageError, match=r"pytest-crbench\[retrieval\]"):
        make_llm_reviewer("llm:bm25", settings, None, {})


def test_time_that_goes_into_the_index_is_not_the_reviewers(
    task: ReviewTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skew, build, find = [0.0], index.build_index, index.Index.find

    def slow(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            skew[0] += 1000.0
            return function(*arguments)

        return call

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + skew[0])
    monkeypatch.setattr(hunk_reviewer, "time", clock)
    monkeypatch.setattr(index, "build_index", slow(build))
    monkeypatch.setattr(index.Index, "find", slow(find))
    with OpenAIServer(by_file({})) as server:
        reviewer("bm25", server, tmp_path / "cache", reviewer_timeout=600.0).review(task)
    assert skew == [3000.0]
