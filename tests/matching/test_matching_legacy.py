"""The faults of the published evaluator, kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.matching import comment, matched, task

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.matching import Match
from pytest_crbench.models.completion import Completion
from pytest_crbench.models.usage import Usage
from pytest_crbench.reviewers.formats import HeadFiles, ParseContext, parse
from pytest_crbench.scoring.matching.legacy import LegacyMatcher, LegacyMeaning, LegacyQuestion, reads_as_yes
from pytest_crbench.scoring.matching.match import CommentMatcher
from pytest_crbench.scoring.matching.meaning import ExactMeaning
from pytest_crbench.scoring.matching.place import Rules

EXACT = LegacyMeaning(ExactMeaning())
PLAIN = LegacyMatcher(EXACT)
WITH_IDS = LegacyMatcher(EXACT, reference_ids=True)


class Endpoint:
    """A model that always says the same, or fails."""

    identity = {"model": "m"}  # noqa: RUF012
    ledger = None

    def __init__(self, said):
        self.said = said
        self.asked = []

    def complete(self, messages, **more):
        self.asked.append((messages, more))
        if isinstance(self.said, InfraError):
            raise self.said
        return Completion({}, self.said, (), Usage(calls=1), "stop")


class Always:
    """Says the same about every pair."""

    fingerprint = {"meaning": "always"}  # noqa: RUF012

    def __call__(self, pair):
        return True, {"calls": 1}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("yes", True),
        ("Yes.", True),
        ("no", False),
        ("No.", False),
        ("", False),
        ("No. The comments are not identical", True),
        ("Both comments note the same race. Yes", False),
        ("No, they are not the same.", True),
        ("Different.", False),
        ("Yes, there is no difference.", True),
        ("I do not know. yes", False),
    ],
)
def test_an_answer_is_read_by_words_within_words(reply: str, expected: bool) -> None:
    assert reads_as_yes(reply) is expected


def test_one_match_for_a_pull_request_and_its_first() -> None:
    references = [comment("r1", 10, "One."), comment("r2", 20, "Two.")]
    comments = [comment("c2", 20, "Two."), comment("c1", 10, "One.")]
    assert matched(PLAIN.match(task(references, comments))) == [("r2", "c2")]
    assert matched(WITH_IDS.match(task(references, comments))) == [("r2", "c2"), ("r1", "c1")]


def test_the_order_of_comments_changes_the_score() -> None:
    always = LegacyMatcher(Always(), reference_ids=True)
    references = [comment("r1", (10, 12)), comment("r2", (13, 14))]
    wide, narrow = comment("wide", (11, 14)), comment("narrow", (8, 9))
    assert len(always.match(task(references, [narrow, wide])).matches) == 2
    assert len(always.match(task(references, [wide, narrow])).matches) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"path": ""}, True),
        ({"path": None}, True),
        ({"path": "b.py"}, False),
        ({"side": "left"}, False),
        ({"lines": None}, True),
        ({"lines": (0, 0)}, True),
        ({"lines": (0, 500)}, True),
        ({"lines": (1, 99_999)}, True),
        ({"lines": (13, 20)}, True),
        ({"lines": (14, 20)}, False),
        ({"lines": (8, 9)}, True),
        ({"lines": (7, 8)}, False),
    ],
)
def test_what_is_missing_is_anything(change: dict[str, object], expected: bool) -> None:
    got = PLAIN.match(task([comment("r", (10, 12))], [comment("c", **change)]))  # type: ignore[arg-type]
    assert bool(got.matches) is expected


def test_a_reversed_range_overlaps_not_even_itself() -> None:
    swapped = comment("r", (1144, 1153), flags=("range-swapped",))
    assert PLAIN.match(task([swapped], [comment("c", (1144, 1153), flags=("range-swapped",))])).matches == ()


def test_by_line_a_reference_is_used_up_by_the_first_comment_there() -> None:
    references = [comment("r1", 10, "One."), comment("r2", 11, "Two.")]
    comments = [comment("c1", 10, "Else."), comment("c2", 11, "Two.")]
    got = WITH_IDS.match(task(references, comments))
    assert got.line_matches == (Match("r1", "c1", 0),)
    assert got.matches == (Match("r2", "c2", 0),)


def test_comments_without_words_are_passed_over() -> None:
    got = LegacyMatcher(Always()).match(task([comment("r", body=" ")], [comment("c"), comment("d", body="")]))
    assert got.matches == got.line_matches == ()


def test_what_experts_rejected_is_unused_and_nothing_is_a_duplicate() -> None:
    got = PLAIN.match(task([comment("r")], [comment("a"), comment("b"), comment("v", None)], [comment("n")]))
    assert (len(got.matches), got.rejected, got.duplicates, got.placeless) == (1, (), (), ())


def test_a_failing_endpoint_is_a_silent_no_and_told_in_the_warnings() -> None:
    logged: list[str] = []

    error = InfraError("the endpoint answered 500", reason="endpoint")
    error.usage = {"calls": 1}
    one = task([comment("r")], [comment("c"), comment("d")])
    object.__setattr__(one, "log", logged.append)
    got = LegacyMatcher(LegacyQuestion(Endpoint(error))).match(one)
    assert got.matches == ()
    assert len(logged) == 2
    assert got.usage == {"calls": 2}
    assert got.warnings == ("2 question(s) got no answer and count as a no: the endpoint answered 500",)


def test_a_budget_that_is_used_up_is_not_the_endpoints_doing() -> None:
    endpoint = Endpoint(InfraError("the run has used 10 tokens", reason="budget"))
    with pytest.raises(InfraError, match="10 tokens"):
        LegacyMatcher(LegacyQuestion(endpoint)).match(task([comment("r")], [comment("c")]))


def test_a_pair_is_asked_about_once_and_not_after_the_match() -> None:
    endpoint = Endpoint("Yes")
    matcher = LegacyMatcher(LegacyQuestion(endpoint))
    got = matcher.match(task([comment("r", body="REF")], [comment("c", body="GEN"), comment("d")]))
    assert matched(got) == [("r", "c")]
    (([question], more),) = endpoint.asked
    assert more["response_format"] is None
    assert question["content"].index("GEN") < question["content"].index("REF")


@pytest.mark.parametrize(("lines", "expected"), [((10, 12), True), ((50, 60), False), (None, True)])
def test_lines_without_a_path_are_compared_as_published(
    lines: tuple[int, int] | None, expected: bool, tmp_path: Path
) -> None:
    """From what a tool wrote: a path that is missing is any path, but not any line."""
    context = ParseContext(tmp_path, HeadFiles(lambda: tmp_path))
    said: dict[str, Any] = {
        "body": "Off by one.",
        **({"line": lines[0], "end_line": lines[1]} if lines else {}),
    }
    (read,) = parse(json.dumps({"comments": [said]}).encode(), "native", context).comments
    review = [replace(read, id="c")]
    found = WITH_IDS.match(task([comment("r")], review))
    assert bool(found.matches) is bool(found.line_matches) is expected
    ours = CommentMatcher(ExactMeaning(), Rules(file_level="file")).match(task([comment("r")], review))
    assert (ours.near["r"], ours.placeless) == (0, ("c",))
