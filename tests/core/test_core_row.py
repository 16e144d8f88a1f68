"""Rows: plain JSON, and back to the same verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_builders import verdict
from support.records import review_record

from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.model import Key, ReviewRecord, Verdict
from pytest_crbench.core.records import from_row, to_row
from pytest_crbench.core.status import Status
from pytest_crbench.statistics.results import again
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
        durations=numbers,
        usage=st.dictionaries(text, numbers, max_size=3),
        matching=st.dictionaries(text, tree, max_size=3),
        warnings=st.lists(words, max_size=3).map(tuple),
        log=maybe,
    )


def reviews(words: st.SearchStrategy[str]) -> st.SearchStrategy[ReviewRecord]:
    count = st.integers(0, 99)
    return st.builds(
        ReviewRecord,
        id=words,
        dataset=words,
        instance=words,
        repeat=st.integers(1, 99),
        arm=words,
        reviewer=st.none() | words,
        comments=st.none() | count,
        outside_diff=count,
        duplicates=count,
        noted=st.dictionaries(words, count, max_size=3),
        keys=st.dictionaries(words, words, max_size=3),
        stop_reason=st.none() | words,
        durations=numbers,
        usage=st.dictionaries(text, numbers, max_size=3),
        counts=st.dictionaries(text, st.dictionaries(text, tree, max_size=3), max_size=3),
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
@given(verdicts(text), st.none() | reviews(text))
def test_round_trip(one: Verdict, review: ReviewRecord | None) -> None:
    one = replace(one, review=review)
    row, told = to_row(one), review and to_row(review)
    assert_plain(row)
    assert_plain(told)
    assert row["review"] == (review and review.id), "the review has a row of its own"
    assert again(json.loads(json.dumps(row)), json.loads(json.dumps(told)), "here") == one


@settings(deadline=None)
@given(reviews(text), reviews(text), reviews(text))
def test_rows_of_one_review_make_one_in_any_grouping(
    first: ReviewRecord, second: ReviewRecord, third: ReviewRecord
) -> None:
    assert first.merged(second).merged(third) == first.merged(second.merged(third))
    assert first.merged(first) == first


def test_each_process_adds_the_stages_that_it_knows() -> None:
    asked = review_record(comments=3, usage={"review": {"calls": 2}}, durations={"review": 4.0})
    matched = replace(asked, counts={"matching": {"matched": 1}}, durations={"matching": 1.0})
    revised = replace(asked, usage={"review": {}, "revision": {"calls": 1}}, stop_reason="finished")
    for found in (asked.merged(matched).merged(revised), revised.merged(matched.merged(asked))):
        assert found.comments == 3
        assert found.usage == {"review": {"calls": 2}, "revision": {"calls": 1}}
        assert found.durations == {"review": 4.0, "matching": 1.0}
        assert found.counts == {"matching": {"matched": 1}}
        assert found.stop_reason == "finished"
    unread = review_record(keys={"review": "k"}, usage={"review": {"calls": 1}})
    assert unread.merged(asked).comments == asked.merged(unread).comments == 3


@settings(deadline=None)
@given(verdicts(wild), reviews(wild))
def test_lone_surrogates_and_odd_names_do_not_get_through(one: Verdict, review: ReviewRecord) -> None:
    """A lone surrogate in a report ends a whole xdist run (pytest-xdist#1157)."""
    row, told = to_row(replace(one, review=review)), to_row(review)
    assert_plain(row)
    assert_plain(told)
    assert again(row, told, "here").reason == clean(one.reason)


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
        ({"review": 3}, "'review'"),
        ({"review": "pr/1"}, "'review': should be the id of one of the reviews, found 'pr/1'"),
    ],
)
def test_a_broken_row_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_row(Verdict, {**to_row(verdict("pr")), **change}, where="results.jsonl, line 7")
    assert "results.jsonl, line 7" in str(caught.value)
    assert named in str(caught.value)
