"""Numbers of the scoring that could mislead: of few pull requests, of reviews that are missing, of a part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.aacr import comment, pull, write
from support.offline import Says, offline

from pytest_crbench.core.errors import InfraError, ReviewerError, UsageError
from pytest_crbench.core.model import Review, ReviewComment, ReviewRecord
from pytest_crbench.core.records import from_row, to_row
from pytest_crbench.core.status import Status
from pytest_crbench.scoring.matching.numbers import MatchingNumbers
from pytest_crbench.statistics.gate import decide, make_gate
from pytest_crbench.statistics.results import Results
from pytest_crbench.statistics.score import summarise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_crbench.core.model import Instance

pytest.importorskip("scipy")


def at(note: str, line: int) -> dict[str, Any]:
    return comment(note, path="shop.py", from_line=line, to_line=line)


def elsewhere(count: int) -> tuple[ReviewComment, ...]:
    return tuple(ReviewComment(f"x{n}", "No.", path="other.py", lines=(1, 1)) for n in range(count))


def scored(folder: Path, pulls: list[Any], review: Callable[[Instance], Review], **options: Any) -> Results:
    data = write(folder / "data", pulls)
    return offline(folder, Says(review), dataset=[f"aacr:{data}"], **options)


def test_the_interval_of_f1_is_that_of_f1(tmp_path: Path) -> None:
    """One pull request, of which nearly all is found among many comments: F1 is far below recall."""
    pulls = [pull(1, *(at(f"Note {n}.", 10 * n + 1) for n in range(10)))]
    said = lambda i: Review((*(c.comment for c in i.checks[:9]), *elsewhere(81)), "says")  # noqa: E731
    found = scored(tmp_path, pulls, said).summary().own.agreement
    assert found is not None
    for estimate in (found.precision, found.recall, found.f1, found.macro_f1):
        assert estimate.value is not None
        assert estimate.interval is not None
        assert estimate.interval.low < estimate.value < estimate.interval.high
        assert estimate.interval.high - estimate.interval.low > 0.5, "of one pull request little is known"


def test_pull_requests_that_are_alike_give_no_certainty(tmp_path: Path) -> None:
    pulls = [pull(n, at("Price.", 1), at("Tax.", 30)) for n in (1, 2, 3)]
    said = lambda i: Review((i.checks[0].comment, *elsewhere(1)), "says")  # noqa: E731
    found = scored(tmp_path, pulls, said).summary().own.agreement
    assert found is not None
    for estimate in (found.precision, found.f1, found.macro_precision, found.macro_f1):
        assert estimate.value == 0.5
        assert estimate.interval is not None
        assert estimate.interval.high - estimate.interval.low > 0.5


@pytest.mark.parametrize("failure", [InfraError, ReviewerError])
@pytest.mark.parametrize(
    "threshold", ["precision:0.9", "f1:0.5", "line_f1:0.5", "macro_f1:0.5", "macro_precision:0.5", "noise:0"]
)
def test_a_number_of_few_of_the_reviews_decides_nothing(
    tmp_path: Path, failure: type[InfraError], threshold: str
) -> None:
    """Nearly all references are in one pull request: a fifth of the reviews covers 96 % of the checks."""
    pulls = [pull(1, *(at(f"Note {n}.", 10 * n + 1) for n in range(96)))]
    pulls += [pull(n, at("Price.", 1)) for n in range(2, 6)]

    def said(instance: Instance) -> Review:
        if len(instance.checks) == 1:
            raise failure("It is late.", reason="late")
        return Review(tuple(check.comment for check in instance.checks), "says")

    results = scored(tmp_path, pulls, said)
    decision = decide(make_gate(fail_under=[threshold]), results.summary(), results)
    assert decision.outcome == "undecided"
    assert "but only 1 of 5 reviews are known" in decision.verdict
    recall = decide(make_gate(fail_under=["recall:0.95"]), results.summary(), results)
    assert recall.outcome == "met"


@pytest.mark.parametrize("metric", ["macro", "macro_recall"])
def test_a_mean_over_pull_requests_wants_the_pull_requests(tmp_path: Path, metric: str) -> None:
    pulls = [pull(1, *(at(f"Note {n}.", 10 * n + 1) for n in range(19))), pull(2, at("Price.", 1))]
    perfect = lambda i: Review(tuple(c.comment for c in i.checks), "says")  # noqa: E731
    whole = scored(tmp_path, pulls, perfect)
    never = summarise(
        [v for v in whole.verdicts if "-1" in v.key.instance], whole.planned, scoring="matching"
    )
    decision = decide(make_gate(fail_under=[f"{metric}:0.5"]), never)
    assert decision.outcome == "undecided"
    assert "only 1 of 2 reviews have a result" in decision.verdict


def test_ids_that_a_reviewer_uses_twice_are_told_apart(tmp_path: Path) -> None:
    """Also its equal comments; in whichever order they come, the same one has the match."""
    place = {"path": "shop.py", "lines": (1, 1)}
    said = [
        *(ReviewComment("mine", text, **place) for text in ("Price.", "Price.", "Tax.", "Else.")),
        ReviewComment("yours", "Nothing.", **place),
    ]
    pulls = [pull(1, at("Price.", 1), at("Tax.", 2))]
    made = []
    for name, comments in (("one", said), ("other", said[::-1])):
        results = scored(tmp_path / name, pulls, lambda _: Review(tuple(comments), "says"))  # noqa: B023
        found = results.summary().own.agreement
        assert found is not None
        assert (found.tally.comments, found.tally.matched, found.tally.duplicates) == (5, 2, 1)
        made.append([verdict.matching["comment"] for verdict in results.verdicts])
    assert made[0] == made[1]
    assert all(name.startswith("mine-") for name in made[0])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lines": (1.5, float("nan"))}, "key 'comments.0.lines.0': should be a valid integer"),
        ({"side": "RIGHT"}, "key 'comments.0.side': should be 'left' or 'right', found 'RIGHT'"),
        ({"body": None}, "key 'comments.0.body'"),
        ({"id": 7}, "key 'comments.0.id': should be a valid string, found 7"),
        (None, "'list' object"),
    ],
)
def test_what_is_no_review_is_the_reviewers_error(
    tmp_path: Path, changes: dict[str, Any] | None, said: str
) -> None:
    """Were it ours, a tool could keep what it is bad at out of its rate."""
    made: Any = []
    if changes is not None:
        made = Review((replace(elsewhere(1)[0], **changes),), "says")
    (verdict,) = scored(tmp_path, [pull(1, at("Price.", 1))], lambda _: made).verdicts
    assert (verdict.status, verdict.cause) == (Status.REVIEWER_ERROR, "unreadable")
    assert said in verdict.reason


def test_a_reference_that_nothing_can_match_is_no_check(tmp_path: Path) -> None:
    """It spans too many lines to be a place: as one without lines, it is a check where files are places."""
    pulls = [pull(1, at("Price.", 1), comment("All.", path="shop.py", from_line=1, to_line=101))]
    perfect = lambda i: Review(tuple(c.comment for c in i.checks), "says")  # noqa: E731
    for folder, level, checks in (("without", "nothing", 1), ("with", "file", 2)):
        overall = scored(tmp_path / folder, pulls, perfect, file_level=level).summary().overall
        assert (overall.passed, overall.selected) == (checks, checks)


def test_a_reviewer_object_that_raises_has_crashed(tmp_path: Path) -> None:
    def broken(_: Instance) -> Review:
        raise KeyError("price")

    (verdict,) = scored(tmp_path, [pull(1, at("Price.", 1))], broken).verdicts
    assert (verdict.status, verdict.cause) == (Status.REVIEWER_ERROR, "crashed")
    assert "KeyError: 'price'" in verdict.reason


def test_of_a_part_of_the_references_it_is_said(tmp_path: Path) -> None:
    pulls = [pull(1, at("Price.", 1), at("Tax.", 30), at("Name.", 60))]
    perfect = lambda i: Review(tuple(c.comment for c in i.checks), "says")  # noqa: E731
    whole = scored(tmp_path, pulls, perfect)
    (one, *_) = whole.verdicts
    found = summarise([one], scoring="matching").own.agreement
    assert found is not None
    assert (found.tally.found, found.tally.references, found.tally.matched) == (1, 1, 3)
    assert dict(MatchingNumbers(found).lines())["selected"].startswith("1 of 3 references count here")
    everything = whole.summary().own.agreement
    assert everything is not None
    assert "selected" not in dict(MatchingNumbers(everything).lines())


@pytest.mark.parametrize(
    "damage",
    [
        {"comments": -1},
        {"comments": 0},
        {"comments": True},
        {"matched": 10**400, "comments": 10**401},
        {"unlabelled": "many"},
        {"hunks": 1.5},
        {"rejected": 1},
        {"categories": {"Performance": "x"}},
        {"categories": ["Performance"]},
    ],
)
def test_counts_that_cannot_be_are_refused_on_reading(tmp_path: Path, damage: dict[str, Any]) -> None:
    perfect = lambda i: Review(tuple(c.comment for c in i.checks), "says")  # noqa: E731
    (verdict,) = scored(tmp_path, [pull(1, at("Price.", 1))], perfect).verdicts
    assert verdict.review is not None
    row = to_row(verdict.review)
    assert from_row(ReviewRecord, row) == verdict.review
    counts = {"matching": {**row["counts"]["matching"], **damage}}
    with pytest.raises(UsageError, match=r"key 'counts\.matching': .*should be"):
        from_row(ReviewRecord, {**row, "counts": counts})


def test_hunks_are_those_of_the_reviews_that_are_known(tmp_path: Path) -> None:
    """A review that fails takes no number from the others."""
    perfect = lambda i: Review(tuple(c.comment for c in i.checks), "says")  # noqa: E731
    first, second = scored(tmp_path, [pull(n, at("Price.", 1)) for n in (1, 2)], perfect).verdicts
    assert first.review is not None
    counts = {"matching": {**first.counts, "hunks": 4}}
    known = replace(first, review=replace(first.review, counts=counts))
    failed = replace(second, status=Status.REVIEWER_ERROR, review=None)
    for verdicts, hunks in (([known, failed], 4), ([known, second], None), ([failed], None)):
        found = summarise(verdicts, scoring="matching").own.agreement
        assert found is not None
        assert found.tally.hunks == hunks
