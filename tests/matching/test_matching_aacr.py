"""The published data as a review of itself, and reviews that say nothing about where."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.matching import task, task_of

from pytest_crbench.core.model import Instance, ReviewComment
from pytest_crbench.datasets import open_dataset
from pytest_crbench.scoring.matching.legacy import LegacyMatcher, LegacyMeaning
from pytest_crbench.scoring.matching.match import CommentMatcher
from pytest_crbench.scoring.matching.meaning import ExactMeaning
from pytest_crbench.scoring.matching.place import FileLevel, Rules

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytest.importorskip("scipy")

Reviewer = "Callable[[Instance], Iterable[ReviewComment]]"


@pytest.fixture(scope="module")
def instances(aacr_data: Path) -> tuple[Instance, ...]:
    return open_dataset(f"aacr:{aacr_data}").instances


def exact(file_level: FileLevel = "nothing") -> CommentMatcher:
    return CommentMatcher(ExactMeaning(), Rules(file_level=file_level))


def perfect(instance: Instance) -> list[ReviewComment]:
    """Every reference, with ids, flags and trailing white space of a tool's own."""
    return [
        replace(check.comment, id=f"c{number:03}", body=f"{check.comment.body} \n", flags=())
        for number, check in enumerate(instance.checks)
    ]


def total(matcher: CommentMatcher | LegacyMatcher, instances: Iterable[Instance], reviewer: Reviewer) -> int:
    return sum(len(matcher.match(task_of(one, reviewer(one))).matches) for one in instances)


def test_a_perfect_review_finds_everything(instances: tuple[Instance, ...]) -> None:
    matcher, found = exact(), 0
    for instance in instances:
        got = matcher.match(task_of(instance, perfect(instance)))
        found += len(got.matches)
        assert {m.reference for m in got.matches} == {check.comment.id for check in instance.checks}
        assert all(m.distance == 0 for m in got.matches)
        assert len(got.line_matches) == len(instance.checks)
        assert got.rejected == got.duplicates == got.placeless == ()
    assert found == 1505


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_the_order_of_a_review_and_of_the_references_changes_nothing(
    instances: tuple[Instance, ...], order: str
) -> None:
    matcher, chance = exact(), random.Random(7)
    for instance in instances[::3]:
        references, comments = [c.comment for c in instance.checks], perfect(instance)
        # Some are missing, some come twice, some are elsewhere.
        comments = comments[1:] + [replace(c, id=f"again-{c.id}") for c in comments[:3]]
        expected = matcher.match(task(references, comments, instance.rejected))
        for one in (references, comments):
            one.reverse() if order == "reversed" else chance.shuffle(one)
        got = matcher.match(task(references, comments, instance.rejected))
        assert replace(got, duration=0) == replace(expected, duration=0)


def everywhere(lines: tuple[int, int] | None, path: str | None = "") -> Reviewer:
    """Say what the references say, at a place that says nothing; ``path`` "" is the reference's own."""

    def review(instance: Instance) -> list[ReviewComment]:
        return [
            replace(comment, lines=lines, path=comment.path if path == "" else path)
            for comment in perfect(instance)
        ]

    return review


VAGUE = {
    "the lines 1-99999 of its file": everywhere((1, 99_999)),
    "an empty path": lambda i: [replace(c, path="") for c in perfect(i)],
    "no path": lambda i: [replace(c, path=None) for c in perfect(i)],
    "line 0": everywhere((0, 0)),
    "from line 0 on": lambda i: [replace(c, lines=(0, c.lines[1])) for c in perfect(i)],
    "no lines": everywhere(None),
}


@pytest.mark.parametrize("name", VAGUE)
def test_a_review_that_says_everything_and_not_where_gains_nothing(
    instances: tuple[Instance, ...], name: str
) -> None:
    reviewer = VAGUE[name]
    matcher = exact()
    placeless = sum(len(matcher.match(task_of(i, reviewer(i))).placeless) for i in instances)
    assert (total(matcher, instances, reviewer), placeless) == (0, 1505)
    # Added to a perfect review it takes nothing away either.
    half = instances[::4]
    with_rest: Reviewer = lambda i: [*perfect(i), *(replace(c, id=f"v-{c.id}") for c in reviewer(i))]  # noqa: E731
    assert total(matcher, half, with_rest) == sum(len(i.checks) for i in half)


@pytest.mark.parametrize(("name", "expected"), [("an empty path", 0), ("line 0", 1505), ("no lines", 1505)])
def test_what_the_policy_file_gives_is_told(
    instances: tuple[Instance, ...], name: str, expected: int
) -> None:
    """It is the user's choice that a file is a place; a file that is not named is none."""
    assert total(exact("file"), instances, VAGUE[name]) == expected


# The published evaluator, executed against its own data.

LEGACY = LegacyMatcher(LegacyMeaning(ExactMeaning()))
WITH_IDS = LegacyMatcher(LegacyMeaning(ExactMeaning()), reference_ids=True)


def test_legacy_a_perfect_review_scores_one_for_each_pull_request(instances: tuple[Instance, ...]) -> None:
    assert len(instances) == 196
    assert total(LEGACY, instances, perfect) == 196
    assert total(LEGACY, instances, lambda i: reversed(perfect(i))) == 196


def as_written(instance: Instance) -> list[ReviewComment]:
    """Every reference with its lines in the file's order, as a tool's output would have them."""
    return [
        replace(made, flags=check.comment.flags)
        for made, check in zip(perfect(instance), instance.checks, strict=True)
    ]


def test_legacy_with_ids_one_is_lost_the_reversed_range(instances: tuple[Instance, ...]) -> None:
    assert total(WITH_IDS, instances, as_written) == 1504
    (lost,) = {c.id for i in instances for c in i.checks} - {
        m.reference for i in instances for m in WITH_IDS.match(task_of(i, as_written(i))).matches
    }
    (check,) = (c for i in instances for c in i.checks if c.id == lost)
    assert check.comment.lines == (1144, 1153)
    assert check.comment.flags == ("range-swapped",)


@pytest.mark.parametrize("name", ["the lines 1-99999 of its file", "an empty path", "line 0", "no lines"])
def test_legacy_rewards_what_says_no_place(instances: tuple[Instance, ...], name: str) -> None:
    assert total(WITH_IDS, instances, VAGUE[name]) == 1505
