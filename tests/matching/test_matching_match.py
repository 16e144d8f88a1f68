"""A whole review: what each comment becomes, and that no order plays a part."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.matching import comment, matched, task

from pytest_crbench.core.matching import Match
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.scoring.matching.match import CommentMatcher
from pytest_crbench.scoring.matching.meaning import Compared, ExactMeaning
from pytest_crbench.scoring.matching.place import FILE_DISTANCE, Rules

pytest.importorskip("scipy")

EXACT = CommentMatcher(ExactMeaning(), Rules())
BY_FILE = CommentMatcher(ExactMeaning(), Rules(file_level="file"))


class Stub:
    """Answers by the body of the comment: what it begins with."""

    fingerprint = {"meaning": "stub"}  # noqa: RUF012

    def __init__(self) -> None:
        self.asked = 0

    def same(self, pairs):
        self.asked += len(pairs)
        return Compared(tuple(p.comment.body.split()[0] for p in pairs), {"calls": float(len(pairs))})


def test_what_each_comment_becomes() -> None:
    references = [comment("r1", 10, "One."), comment("r2", 50, "Two.")]
    rejected = [comment("n1", 30, "Nit."), comment("n2", 12, "One.")]
    comments = [
        comment("hit", 10, "One."),
        comment("again", 11, "One."),
        comment("near", 51, "Something else."),
        comment("nit", 30, "Nit."),
        comment("nit-again", 31, "Nit."),
        comment("away", 99, "Two."),
        comment("vague", None, "Two."),
        comment("nowhere", None, "Two.", path=None),
    ]
    got = EXACT.match(task(references, comments, rejected))
    assert got.matches == (Match("r1", "hit", 0),)
    # "again" is at the place of n2 too, and says what that says: a hit on what experts rejected comes first.
    assert got.rejected == (Match("n1", "nit", 0), Match("n2", "again", 1))
    assert got.duplicates == ("nit-again",)
    assert got.placeless == ("nowhere", "vague")
    assert got.line_matches == (Match("r1", "hit", 0), Match("r2", "near", 1))
    assert dict(got.near) == {"r1": 2, "r2": 1}


def test_a_repeated_match_is_a_duplicate() -> None:
    got = EXACT.match(task([comment("r")], [comment("b"), comment("a"), comment("c", 13)]))
    assert matched(got) == [("r", "a")]
    assert got.duplicates == ("b", "c")


def test_a_match_cannot_be_a_rejected_one_as_well() -> None:
    got = EXACT.match(task([comment("r")], [comment("c")], rejected=[comment("n")]))
    assert matched(got) == [("r", "c")]
    assert got.rejected == ()


def test_one_comment_takes_the_reference_that_lets_most_be_found() -> None:
    references = [comment("r1", (10, 12)), comment("r2", (13, 14))]
    got = EXACT.match(task(references, [comment("c1", (12, 13)), comment("c2", (8, 9))]))
    assert matched(got) == [("r1", "c2"), ("r2", "c1")]


def test_file_level_comments_match_after_all_others_where_they_may() -> None:
    references = [comment("r1", 10), comment("r2", 90), comment("whole", None)]
    comments = [comment("vague", None), comment("exact", 10)]
    assert matched(EXACT.match(task(references, comments))) == [("r1", "exact")]
    assert EXACT.match(task(references, comments)).placeless == ("vague",)
    got = BY_FILE.match(task(references, comments))
    assert got.matches == (Match("r1", "exact", 0), Match("r2", "vague", FILE_DISTANCE))
    assert got.placeless == ()


def test_a_vague_comment_may_be_rejected_or_a_duplicate_under_the_policy_file() -> None:
    comments = [comment("a", 10), comment("b", None), comment("c", None, "Nit."), comment("d", None, "?")]
    got = BY_FILE.match(task([comment("r", 10)], comments, rejected=[comment("n", 70, "Nit.")]))
    assert (got.duplicates, [m.comment for m in got.rejected], got.placeless) == (("b",), ["c"], ("d",))


def test_abstentions_match_nothing_and_are_counted() -> None:
    stub = Stub()
    matcher = CommentMatcher(stub, Rules())
    comments = [comment("a", body="abstain"), comment("n", body="no"), comment("y", body="yes")]
    got = matcher.match(task([comment("r")], comments, rejected=[comment("x")]))
    assert matched(got) == [("r", "y")]
    # Three pairs with the reference; two with what was rejected, for those without a match.
    assert (stub.asked, got.abstained, got.usage) == (5, 2, {"calls": 5.0})


def test_only_pairs_at_one_place_are_compared() -> None:
    stub = Stub()
    CommentMatcher(stub, Rules()).match(task([comment("r", 10)], [comment("c", 50, "yes")]))
    assert stub.asked == 0


def test_ids_that_are_not_unique_are_refused() -> None:
    with pytest.raises(ValueError, match="'c'"):
        EXACT.match(task([comment("r")], [comment("c"), comment("c", 90)]))


def test_an_empty_review_and_an_empty_reference() -> None:
    assert EXACT.match(task([comment("r")], [])).matches == ()
    assert EXACT.match(task([], [comment("c")])).matches == ()


def test_the_fingerprint_says_all_that_decides() -> None:
    kinds = [
        EXACT,
        BY_FILE,
        CommentMatcher(ExactMeaning(), Rules(2)),
        CommentMatcher(Stub(), Rules()),
    ]
    assert all(one.fingerprint != other.fingerprint for one, other in pairwise(kinds))


BODIES = st.sampled_from(["One.", "Two.", ""])
PLACES = st.tuples(
    st.sampled_from(["a.py", "b.py", None]),
    st.sampled_from(["left", "right"]),
    st.tuples(st.integers(0, 9), st.integers(0, 9)) | st.none() | st.just((1, 500)),
    BODIES,
)


def made(prefix: str, places: list) -> list[ReviewComment]:
    return [comment(f"{prefix}{i}", li, b, p, side=s) for i, (p, s, li, b) in enumerate(places)]


@given(
    st.lists(PLACES, max_size=6),
    st.lists(PLACES, max_size=8),
    st.lists(PLACES, max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_no_order_changes_anything_and_every_comment_is_one_thing(
    references: list, comments: list, rejected: list, chance: random.Random, by_file: bool
) -> None:
    matcher = BY_FILE if by_file else EXACT
    lists = [made("r", references), made("c", comments), made("n", rejected)]
    expected = matcher.match(task(*lists))
    for one in lists:
        chance.shuffle(one)
    got = matcher.match(task(*lists))
    same = ("matches", "line_matches", "rejected", "duplicates", "placeless", "near")
    assert [getattr(got, name) for name in same] == [getattr(expected, name) for name in same]
    kinds = [
        *(m.comment for m in got.matches),
        *(m.comment for m in got.rejected),
        *got.duplicates,
        *got.placeless,
    ]
    assert len(kinds) == len(set(kinds))
    assert len({m.reference for m in got.matches}) == len(got.matches) <= len(got.line_matches)
