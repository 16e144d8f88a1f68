"""Indexes: made once per tree and settings, found again, made again when damaged, always ranked alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.fixture_trees import write

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import Tree
from pytest_crbench.host.eviction import cache_items, evict
from pytest_crbench.models.retrieval.index import Index, open_index
from pytest_crbench.models.retrieval.ranking import Bm25, ByEmbedding, unit


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return write(tmp_path / "tree")


class Counting(Bm25):
    """BM25 that counts how often an index is made."""

    def __init__(self) -> None:
        super().__init__()
        self.built = 0

    def build(self, texts: Sequence[str], folder: Path) -> None:
        self.built += 1
        super().build(texts, folder)


def opened(tree: Tree, cache: Path, method: Any = None) -> Index:
    return open_index(tree, method or Bm25(), cache=cache, log=lambda _line: None)


def lexical(texts: Sequence[str]) -> list[list[float]]:
    """A model of a sort: letters as meanings."""
    return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def test_bm25_finds_what_shares_words_in_any_spelling(tree: Tree, tmp_path: Path) -> None:
    index = opened(tree, tmp_path / "cache")
    for query, path, text in (
        ("parse_http_header", "shop/http.go", "func ParseHTTPHeader"),
        ("what is the retryAfter of headers", "shop/orders.py", "def retry_after"),
        ("customer_id basket_cache", "shop/orders.py", "class BasketCache"),
    ):
        best = index.find(query, 1)[0]
        assert best.path == path
        assert text in best.text
        assert best.score > 0
    assert index.find("zebra quagga", 3) == []
    assert index.find("", 3) == []
    assert index.find("price", 0) == []
    assert index.notes == ("not indexed: 1 binary, 4 generated, 1 huge of 13 files",)


def test_lines_are_those_of_the_file(tree: Tree, tmp_path: Path) -> None:
    for found in opened(tree, tmp_path / "cache").find("price customer http note add", 20):
        lines = (tree.path / found.path).read_text("utf-8", errors="replace").split("\n")
        assert found.text == "\n".join(lines[found.lines[0] - 1 : found.lines[1]])


def test_what_is_asked_about_is_not_found(tree: Tree, tmp_path: Path) -> None:
    index = opened(tree, tmp_path / "cache")
    first = index.find("parse_http_header", 1)[0]
    assert index.find("parse_http_header", 1, (first.path, first.lines)) == []
    inner = (first.lines[0] + 1, first.lines[1])
    assert index.find("parse_http_header", 1, (first.path, inner)) == [first]
    assert index.find("parse_http_header", 1, ("other.go", first.lines)) == [first]


def test_equal_scores_are_in_the_order_of_paths(tmp_path: Path) -> None:
    files = {f"{name}.txt": b"the same words here\n" for name in ("d", "b", "a", "c", "e")}
    index = opened(write(tmp_path / "tree", files), tmp_path / "cache")
    # Paths are words too, of one letter here: they do not count.
    assert [f.path for f in index.find("same words", 3)] == ["a.txt", "b.txt", "c.txt"]
    assert len({f.score for f in index.find("same words", 5)}) == 1
    alike = opened(
        write(tmp_path / "more", files), tmp_path / "cache", ByEmbedding(lambda t: [[1.0]] * len(t), {})
    )
    assert [f.path for f in alike.find("same words", 3)] == ["a.txt", "b.txt", "c.txt"]


def test_an_index_is_made_once_per_tree_and_settings(tree: Tree, tmp_path: Path) -> None:
    method, cache = Counting(), tmp_path / "cache"
    first = opened(tree, cache, method)
    copy = write(tmp_path / "copy")
    assert opened(copy, cache, method).find("price", 3) == first.find("price", 3)
    assert method.built == 1
    opened(write(tmp_path / "other", {"a.py": b"price = 1\n"}), cache, method)
    assert method.built == 2
    method.identity = {**method.identity, "k1": 9}
    opened(tree, cache, method)
    assert method.built == 3


@pytest.mark.parametrize(
    "damage", ["data/chunks.json", "data/bm25/data.csc.index.npy", "record.json", "data"]
)
def test_a_damaged_index_is_made_again(tree: Tree, tmp_path: Path, damage: str) -> None:
    method, cache = Counting(), tmp_path / "cache"
    before = opened(tree, cache, method).find("price", 3)
    (place,) = (cache / "indexes").iterdir()
    hurt = place / damage
    if hurt.is_dir():
        (hurt / "more").write_text("x")
    else:
        hurt.write_bytes(hurt.read_bytes()[:-3])
    assert opened(tree, cache, method).find("price", 3) == before
    assert method.built == 2
    assert [p.name for p in (cache / "indexes").iterdir()] == [place.name]


def test_processes_that_come_together_make_one_index(tree: Tree, tmp_path: Path) -> None:
    script = """
import json, sys
from pathlib import Path
from pytest_crbench.core.model import Tree
from pytest_crbench.models.retrieval.ranking import Bm25
from pytest_crbench.models.retrieval.index import open_index
lines = []
index = open_index(Tree(Path(sys.argv[1]), sys.argv[2]), Bm25(), cache=Path(sys.argv[3]), log=lines.append)
print(json.dumps([[f.path for f in index.find("price", 3)], sum("chunks of" in line for line in lines)]))
"""
    argv = [sys.executable, "-c", script, str(tree.path), tree.digest, str(tmp_path / "cache")]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(3)]
    said = [json.loads(p.communicate(timeout=60)[0]) for p in running]
    assert sum(built for _, built in said) == 1
    assert said[0][0] == said[1][0] == said[2][0]


def test_an_index_can_be_evicted(tree: Tree, tmp_path: Path) -> None:
    method, cache = Counting(), tmp_path / "cache"
    opened(tree, cache, method)
    items = [item for item in cache_items(cache) if item.kind == "indexes"]
    assert len(items) == 1
    assert items[0].size > 0
    assert evict(items, 0).entries == 1
    opened(tree, cache, method)
    assert method.built == 2


def test_an_empty_tree_has_nothing_to_find(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {})
    for method in (Bm25(), ByEmbedding(lexical, {})):
        assert opened(tree, tmp_path / "cache", method).find("x", 3) == []
    blank = write(tmp_path / "blank", {"a.py": b"( ) + -\n"})
    assert opened(blank, tmp_path / "cache").find("anything", 3) == []


def test_embeddings_rank_by_angle_and_are_asked_for_once(tree: Tree, tmp_path: Path) -> None:
    asked: list[int] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.append(len(texts))
        return lexical(texts)

    method = ByEmbedding(embed, {"model": "letters"})
    index = opened(tree, tmp_path / "cache", method)
    assert asked == [len(index.chunks)]
    chunk = next(c for c in index.chunks if "ParseHTTPHeader" in c.text)
    best = opened(tree, tmp_path / "cache", method).find(f"{chunk.path}\n{chunk.text}", 1)[0]
    assert (best.path, best.lines) == (chunk.path, chunk.lines)
    assert best.score == pytest.approx(1.0, abs=1e-5)
    assert asked == [len(index.chunks), 1]


def test_large_numbers_have_an_angle_too() -> None:
    assert unit([[3e30, 4e30], [0, 0]]).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]


def test_a_model_that_changed_its_vectors_is_an_error(tree: Tree, tmp_path: Path) -> None:
    opened(tree, tmp_path / "cache", ByEmbedding(lexical, {}))
    other = opened(tree, tmp_path / "cache", ByEmbedding(lambda texts: [[1.0, 2.0]] * len(texts), {}))
    with pytest.raises(InfraError, match="vectors of 2 numbers"):
        other.find("x", 1)


def test_an_endpoint_that_fails_leaves_no_index(tree: Tree, tmp_path: Path) -> None:
    def fail(_texts: Sequence[str]) -> list[list[float]]:
        raise InfraError("no", reason="endpoint")

    with pytest.raises(InfraError):
        opened(tree, tmp_path / "cache", ByEmbedding(fail, {}))
    assert list((tmp_path / "cache" / "indexes").iterdir()) == []


def test_a_cache_that_cannot_be_written_to_is_said(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "indexes").write_text("in the way")
    with pytest.raises(InfraError, match="--crbench-cache"):
        opened(tree, tmp_path / "cache")
