"""Rows: plain JSON, and back to the same verdict."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_builders import verdict

from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.core.records import from_row, to_row
from pytest_crbench.core.status import Status
from pytest_crbench.text.plainjson import plain
from pytest_crbench.text.printable import clean

text = st.text(max_size=20)
wild = st.text(st.characters(exclude_categories=()), max_size=20)
numbers = st.dictionaries(text, st.floats(allow_nan=False, allow_infinity=False) | st.integers(), max_size=3)
tree = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


def verdicts(words: st.SearchStrategy[str]) -> st.SearchStrategy[Verdict]:
    maybe = st.none() | words
    return st.builds(
        Verdict,
        dataset=words,
        instance=words,
        check=words,
        scoring=words,
        repeat=st.integers(1, 99),
        arm=st.sampled_from(["review", "human", "none"]),
        status=st.sampled_from(Status),
        reason=words,
        facets=st.dictionaries(words, words, max_size=3),
        check_digest=words,
        keys=st.dictionaries(words, words, max_size=3),
        environment=maybe,
        sandbox=maybe,
        stop_reason=maybe,
        durations=numbers,
        usage=st.dictionaries(text, numbers, max_size=3),
        review=st.dictionaries(text, tree, max_size=3),
        warnings=st.lists(words, max_size=3).map(tuple),
        log=maybe,
    )


def assert_plain(value: Any) -> None:
    assert type(value) in (dict, list, str, int, float, bool, type(None)), type(value)
    if isinstance(value, dict):
        for key, item in value.items():
            assert type(key) is str
            key.encode()
            assert_plain(item)
    elif isinstance(value, list):
        for item in value:
            assert_plain(item)
    elif isinstance(value, str):
        value.encode()


@settings(deadline=None)
@given(verdicts(text))
def test_round_trip(one: Verdict) -> None:
    row = to_row(one)
    assert_plain(row)
    assert from_row(Verdict, json.loads(json.dumps(row))) == one


@settings(deadline=None)
@given(verdicts(wild))
def test_lone_surrogates_and_odd_names_do_not_get_through(one: Verdict) -> None:
    """A lone surrogate in a report ends a whole xdist run (pytest-xdist#1157)."""
    row = to_row(one)
    assert_plain(row)
    assert from_row(Verdict, row).reason == clean(one.reason)


def test_foreign_types_become_plain() -> None:
    class Colour(Enum):
        RED = "red"

    odd = {
        "path": Path("a") / "b",
        "enum": Colour.RED,
        "status": Status.PASSED,
        "nan": float("nan"),
        "set": {"b", "a"},
        "bytes": b"\xff",
        3: (1, 2),
        "object": Key("d", "i", "c"),
    }
    found = plain(odd)
    assert_plain(found)
    assert found["path"] == "a/b"
    assert found["enum"] == "red"
    assert type(found["status"]) is str
    assert found["nan"] is None
    assert found["set"] == ["a", "b"]
    assert found["3"] == [1, 2]


def test_keys_of_later_versions_are_left_aside() -> None:
    one = verdict("pr")
    assert from_row(Verdict, {**to_row(one), "novelty": [1]}) == one


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"status": "great"}, "'status': should be 'passed', 'missed'"),
        ({"status": None}, "'status'"),
        ({"repeat": True}, "'repeat'"),
        ({"repeat": 0}, "'repeat'"),
        ({"facets": []}, "'facets'"),
        ({"durations": {"review": "long"}}, "'durations.review': should be a number, found 'long'"),
        ({"usage": {"review": 3}}, "'usage.review'"),
        ({"warnings": "one"}, "'warnings'"),
        ({"log": 3}, "'log'"),
    ],
)
def test_a_broken_row_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_row(Verdict, {**to_row(verdict("pr")), **change}, where="results.jsonl, line 7")
    assert "results.jsonl, line 7" in str(caught.value)
    assert named in str(caught.value)
