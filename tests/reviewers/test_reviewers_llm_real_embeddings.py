"""Retrieval and matching by meaning with a real model of embeddings, over its real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.embedding_model import serving
from support.fixture_trees import write
from support.openai_server import OpenAIServer
from support.reviewing import by_file, question, snippets

from pytest_crbench.core.matching import MatchTask
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.core.settings import Settings
from pytest_crbench.models.load import embeddings
from pytest_crbench.reviewers.llm import make_llm_reviewer
from pytest_crbench.scoring.matching.matchers import make_matcher

if TYPE_CHECKING:
    from conftest import Project

MODEL = "multilingual-e5-small-q4"
FILES = {
    "net/backoff.py": b"def sleep_between_attempts(n):\n    time.sleep(min(60, 2 ** n))\n",
    "db/rows.py": b"def fetch(cursor, table):\n    cursor.execute('SELECT * FROM ' + table)\n",
    "ui/colours.py": b"def shade(hue):\n    return hue * 0.8, 'light blue'\n",
    "mail/letters.py": b"def greet(person):\n    return 'Dear ' + person\n",
    "geo/shapes.py": b"def surface(width, height):\n    return width * height\n",
}
DIFF = b"""\
diff --git a/work.py b/work.py
new file mode 100644
--- /dev/null
+++ b/work.py
@@ -0,0 +1,3 @@
+# The server was busy: wait longer and longer before every retry (exponential delay).
+def pause(times_failed):
+    wait(times_failed)
"""
SQL = "SQL is built by string concatenation, which allows injection. Use parameters."
SQL_AGAIN = "User input goes straight into the query string: bind it as a parameter to prevent SQL injection."
NAMES = "Variable name `x` tells nothing; rename it to `order_count`."


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with serving() as url:
        yield url


def settings(server: str, cache: Path, **changes: Any) -> Settings:
    return Settings(cache=cache, embedding_base_url=server, embedding_model=MODEL, **changes)


def test_what_means_the_same_is_retrieved_though_its_words_differ(
    server: str, project: Project, tmp_path: Path
) -> None:
    tree = write(tmp_path / "head", FILES)
    task = project.task(tmp_path / "run", head=tree, diff=DIFF)
    with OpenAIServer(by_file({})) as chat:
        wanted = settings(
            server, tmp_path / "cache", base_url=chat.base_url, reviewer_model="m", reviewer_snippets=1
        )
        review = make_llm_reviewer("llm:embedding", wanted, None, {}).review(task)
        again = make_llm_reviewer("llm:embedding", wanted, None, {}).review(task)
    (request,) = chat.requests
    assert snippets(request) == [("net/backoff.py", "1-2")]
    assert "sleep_between_attempts" in question(request)
    assert review.usage["embedding_calls"] == 2
    assert review.usage["embedding_tokens"] > 50
    assert "embedding_calls" not in again.usage


def test_comments_match_by_meaning(server: str, tmp_path: Path) -> None:
    """The model's cosines lie close together: two unrelated comments are at 0.85 already."""

    def comment(name: str, body: str) -> ReviewComment:
        return ReviewComment(name, body, "db/rows.py", (2, 2))

    matcher = make_matcher(settings(server, tmp_path, matcher="embedding", embedding_threshold=0.9), None, {})
    found = matcher.match(
        MatchTask(
            "one",
            references=(comment("r", SQL),),
            rejected=(),
            comments=(comment("other", NAMES), comment("same", SQL_AGAIN)),
            renames={},
            log=lambda _line: None,
        )
    )
    assert [(m.reference, m.comment) for m in found.matches] == [("r", "same")]
    alone = matcher.match(
        MatchTask("one", (comment("r", SQL),), (), (comment("other", NAMES),), {}, lambda _line: None)
    )
    assert alone.matches == ()
    assert len(alone.line_matches) == 1


def test_vectors_are_the_models_and_kept(server: str, tmp_path: Path) -> None:
    made = embeddings(settings(server, tmp_path), None, who="this", environ={})
    first, usage = made.embed([SQL, NAMES])
    assert [len(vector) for vector in first] == [384, 384]
    assert (usage.calls, usage.estimated_calls) == (1, 0)
    again, kept = made.embed([NAMES, SQL])
    assert again == first[::-1]
    assert kept.calls == 0
