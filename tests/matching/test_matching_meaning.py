"""Equal texts and near vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.matching import comment

from pytest_crbench.core.errors import InfraError
from pytest_crbench.models.client import Model
from pytest_crbench.models.usage import Usage
from pytest_crbench.scoring.matching.meaning import EmbeddingMeaning, ExactMeaning, Pair, in_full

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK = "```suggestion\nx = 1\n```"


def exact(one: str, other: str, **more: Any) -> str:
    (answer,) = ExactMeaning().same([Pair(comment("r", body=one), comment("c", body=other, **more))]).answers
    return answer


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Off by one.", "Off by one.  \n"),
        ("Off by\n  one.", "Off by one."),
        (f"Off by one.\n{BLOCK}", "Off by one."),
        (f"Off by one.\r\n{BLOCK}\r\n", f"{BLOCK}\nOff by one.\n```suggestion\ny\n```\n"),
        (BLOCK, BLOCK + "\n"),
    ],
)
def test_the_same_text(one: str, other: str) -> None:
    assert exact(one, other) == exact(other, one) == "yes"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Off by one.", "off by one."),
        ("Off by one.", "Off by two."),
        ("```\nx = 1\n```", "```\nx = 2\n```"),
        (BLOCK, "```suggestion\nx = 2\n```"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_another_text(one: str, other: str) -> None:
    assert exact(one, other) == exact(other, one) == "no"


def test_a_suggestion_in_its_own_field_stands_for_a_comment_without_words() -> None:
    assert exact(BLOCK, "", suggestion="x = 1\n") == "yes"
    assert exact(BLOCK, "", suggestion="x = 2\n") == "no"


def test_a_reader_is_shown_a_suggestion_once() -> None:
    assert in_full(comment("c", body=f"Why?\n{BLOCK}", suggestion="x = 1\n")) == f"Why?\n{BLOCK}"
    assert in_full(comment("c", body="Why?", suggestion="x = 1\n")).endswith("x = 1")
    assert "delete" in in_full(comment("c", body="Why?", suggestion=""))


class Vectors:
    """Embeddings by table, and what was asked for."""

    identity = {"model": "m"}  # noqa: RUF012
    model = Model("m")

    def __init__(self, table: dict[str, list[float]]) -> None:
        self.table = table
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        self.asked.append(list(texts))
        return [self.table[text] for text in texts], Usage(calls=1)


def compare(table: dict[str, list[float]], threshold: float, *pairs: tuple[str, str]) -> tuple[str, ...]:
    meaning = EmbeddingMeaning(Vectors(table), threshold)
    return meaning.same([Pair(comment("r", body=a), comment("c", body=b)) for a, b in pairs]).answers


def test_near_vectors_say_the_same_from_the_threshold_on() -> None:
    table = {"a": [1.0, 0.0], "b": [3.0, 4.0], "c": [-2.0, 0.0]}
    assert compare(table, 0.6, ("a", "b"), ("a", "c"), ("b", "a")) == ("yes", "no", "yes")
    assert compare(table, 0.601, ("a", "b")) == ("no",)


def test_each_text_is_embedded_once_and_empty_ones_never() -> None:
    embed = Vectors({"a": [1.0], "b": [1.0]})
    meaning = EmbeddingMeaning(embed, 0.5)
    pairs = [Pair(comment("r", body=a), comment("c", body=b)) for a, b in ("ab", "ba", "aa", ("a ", ""))]
    assert meaning.same(pairs).answers == ("yes", "yes", "yes", "no")
    assert embed.asked == [["a", "b"]]
    assert meaning.same([Pair(comment("r", body=""), comment("c", body=""))]).answers == ("no",)
    assert len(embed.asked) == 1


@pytest.mark.parametrize("strange", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0, 2.0, 3.0]])
def test_vectors_that_cannot_be_compared_are_no_answer(strange: list[float]) -> None:
    with pytest.raises(InfraError) as caught:
        compare({"a": [1.0, 0.0], "b": strange}, 0.5, ("a", "b"))
    assert caught.value.reason == "unreadable"
