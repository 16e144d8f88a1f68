"""The scoring as a whole, on all of AACR-Bench and on data of its form: every number by hand."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from support.offline import Says, offline

from pytest_crbench.core.model import Review, ReviewComment
from pytest_crbench.reviewers.builtin import HumanReviewer
from pytest_crbench.statistics.gate import decide, make_gate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_crbench.core.model import Instance
    from pytest_crbench.statistics.score import Summary


def numbers(summary: Summary) -> dict[str, Any]:
    """Everything that a reordering must leave as it is."""
    found = summary.own.agreement
    assert found is not None
    groups = {(g.facet, g.value): (g.passed, g.selected, g.strict.interval) for g in summary.groups}
    return {"tally": found.tally, "f1": found.f1, "macro": found.macro_f1, "groups": groups}


def scored(
    data: Path, folder: Path, comments: Callable[[Instance], list[ReviewComment]], **o: Any
) -> Summary:
    folder.mkdir()
    says = Says(lambda instance: Review(tuple(comments(instance)), "says"))
    return offline(folder, says, dataset=[f"aacr:{data}"], **o).summary()


def some_of(data: Path, folder: Path) -> Path:
    """Every eighth pull request of the data."""
    made = folder / "some"
    made.mkdir()
    for name in ("positive_samples.json", "negative_samples.json"):
        (made / name).write_text(json.dumps(json.loads((data / name).read_text("utf-8"))[::8]))
    return made


def perfect(instance: Instance) -> list[ReviewComment]:
    return [check.comment for check in instance.checks]


def test_a_perfect_reviewer_of_all_of_aacr_bench(aacr_data: Path, tmp_path: Path) -> None:
    summary = scored(aacr_data, tmp_path / "perfect", perfect)
    found = summary.own.agreement
    assert found is not None
    assert (found.tally.matched, found.tally.comments, found.tally.found) == (1505, 1505, 1505)
    assert found.precision.value == found.recall.value == found.f1.value == found.macro_f1.value == 1
    assert summary.overall.coverage == 1
    assert found.precision.interval is not None
    assert 0.9 < found.precision.interval.low < 1, "never degenerate"


def test_the_order_of_comments_is_nothing(aacr_data: Path, tmp_path: Path) -> None:
    """Half of the comments, so that there is something to get wrong: as they come, reversed, shuffled."""

    def half(instance: Instance) -> list[ReviewComment]:
        return [*perfect(instance)[::2], *instance.rejected]

    def shuffled(instance: Instance) -> list[ReviewComment]:
        return random.Random(instance.id).sample(half(instance), len(half(instance)))

    part = some_of(aacr_data, tmp_path)
    first = numbers(scored(part, tmp_path / "first", half))
    assert 0 < first["tally"].found < first["tally"].references
    assert numbers(scored(part, tmp_path / "reversed", lambda i: half(i)[::-1])) == first
    assert numbers(scored(part, tmp_path / "shuffled", shuffled)) == first


VAGUE: dict[str, dict[str, Any]] = {
    "a range over the whole file": {"lines": (1, 99999)},
    "no path": {"path": None},
    "an empty path": {"path": ""},
    "line 0": {"lines": (0, 0)},
    "no lines": {"lines": None},
}


def test_vague_places_gain_nothing(aacr_data: Path, tmp_path: Path) -> None:
    """The right words at no place: by the published rules each of these matches whatever it likes."""

    def vague(instance: Instance) -> list[ReviewComment]:
        return [
            replace(comment, id=f"{comment.id}-{number}", **place)
            for comment in perfect(instance)
            for number, place in enumerate(VAGUE.values())
        ]

    found = scored(aacr_data, tmp_path / "vague", vague).own.agreement
    assert found is not None
    assert (found.tally.matched, found.tally.line_matched, found.tally.found) == (0, 0, 0)
    assert found.tally.placeless == found.tally.comments == 1505 * len(VAGUE)
    assert found.precision.value == found.f1.value == 0
    assert found.noise == (1, 1)


def test_the_published_rules_reward_vague_places(aacr_data: Path, tmp_path: Path) -> None:
    """The attack on the evaluator that the dataset was published with; above, it is shut out."""

    def everywhere(instance: Instance) -> list[ReviewComment]:
        return [replace(comment, path="", lines=None) for comment in perfect(instance)[::-1]]

    part = some_of(aacr_data, tmp_path)
    legacy = scored(part, tmp_path / "legacy", everywhere, aacr_legacy=True)
    assert legacy.overall.passed == legacy.overall.instances, (
        "one for each pull request, as a perfect reviewer"
    )


def test_what_experts_rejected_is_told_apart(aacr_data: Path, tmp_path: Path) -> None:
    """A reviewer that says what experts rejected: by place it would find a tenth of the references."""
    found = scored(aacr_data, tmp_path / "negatives", lambda i: list(i.rejected)).own.agreement
    assert found is not None
    assert (found.tally.comments, found.tally.rejected, found.tally.rejected_of) == (632, 632, 632)
    assert (found.tally.found, found.tally.line_found, found.tally.unlabelled) == (0, 143, 0)
    assert found.recall.value == found.precision.value == found.highest_precision == 0
    assert found.rejected == 1


# Numbers by hand, on data of the same form -----------------------------------------------------------


def entry(number: int, language: str, notes: list[tuple[str, int, str]]) -> dict[str, Any]:
    return {
        "change_line_count": 10,
        "project_main_language": language,
        "source_commit": f"{number:040x}",
        "target_commit": f"{number + 1000:040x}",
        "githubPrUrl": f"https://github.com/acme/shop/pull/{number}",
        "comments": [
            {
                "is_ai_comment": False, "note": note, "path": "shop.py", "side": "right", "source_model": "",
                "from_line": line, "to_line": line, "category": "Code Defect", "context": context,
            }
            for note, line, context in notes
        ],
    }  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two pull requests with three references and one, and two comments that experts rejected."""
    folder = tmp_path / "small"
    folder.mkdir()
    references = [
        ("The price is wrong.", 10, "Diff Level"),
        ("The tax is wrong.", 20, "Repo Level"),
        ("The name is wrong.", 30, "Diff Level"),
    ]
    positives = [
        entry(1, "Python", references),
        entry(2, "Go", [("The sum is wrong.", 10, "File Level")]),
    ]
    negatives = [entry(1, "Python", [("Use tabs.", 40, "Diff Level"), ("Use a class.", 50, "Diff Level")])]
    (folder / "positive_samples.json").write_text(json.dumps(positives))
    (folder / "negative_samples.json").write_text(json.dumps(negatives))
    return folder


def half_right(instance: Instance) -> Review:
    """On the first pull request six comments: a match, its duplicate, a rejected one, one without a place,
    one at a reference's place that says something else, one elsewhere. Nothing on the second.
    """
    if len(instance.checks) < 3:
        return Review((), "says")
    place = {"path": "shop.py", "side": "right"}
    said = [
        ReviewComment("a", "The price is wrong.", lines=(10, 10), **place),
        ReviewComment("b", "The  price is wrong.", lines=(11, 11), **place),
        ReviewComment("c", "Use tabs.", lines=(40, 41), **place),
        ReviewComment("d", "The tax is wrong.", **place),
        ReviewComment("e", "The tax is fine.", lines=(21, 22), **place),
        ReviewComment("f", "Rename this.", lines=(70, 70), **place),
    ]
    return Review(tuple(said), "says")


def test_every_number_of_a_half_right_reviewer(small: Path, tmp_path: Path) -> None:
    results = offline(tmp_path, Says(half_right), dataset=[f"aacr:{small}"])
    found = results.summary().own.agreement
    assert found is not None
    tally = found.tally
    assert (tally.comments, tally.references, tally.matched, tally.found) == (6, 4, 1, 1)
    assert (tally.duplicates, tally.rejected, tally.rejected_of, tally.placeless) == (1, 1, 2, 1)
    assert tally.unlabelled == 2
    assert found.precision.value == Fraction(1, 6)
    assert found.highest_precision == Fraction(1 + 2, 6)
    assert found.recall.value == Fraction(1, 4)
    assert found.f1.value == Fraction(2 * 1, 6 + 4)
    # By place alone: the price and the tax, by one comment each.
    assert found.line_precision.value == Fraction(2, 6)
    assert found.line_recall.value == Fraction(2, 4)
    assert found.line_f1.value == Fraction(2 * 2, 6 + 4)
    # Pull request 1: precision 1/6, recall 1/3, F1 2/9; pull request 2: no comment, recall and F1 0.
    assert found.macro_precision.value == Fraction(1, 6)
    assert found.macro_recall.value == Fraction(1, 6)
    assert found.macro_f1.value == Fraction(1, 9)
    assert found.noise == (Fraction(3, 6), Fraction(5, 6))
    assert found.rejected == Fraction(1, 2)
    summary = results.summary()
    go, python = (summary.numbers["language", name].agreement for name in ("Go", "Python"))
    assert (go.precision.value, go.f1.value) == (None, 0)
    assert (python.precision.value, python.recall.value) == (Fraction(1, 6), Fraction(1, 3))
    for estimate in (found.precision, found.f1, found.line_f1, found.macro_f1):
        assert estimate.interval is not None
        assert estimate.value is not None
        assert estimate.interval.low <= float(estimate.value) <= estimate.interval.high


@pytest.mark.parametrize(
    ("threshold", "outcome"),
    [
        ("f1:0.2", "met"),
        ("f1:0.21", "not-met"),
        ("precision:0.16", "met"),
        ("precision:0.17", "not-met"),
        ("recall@context=Diff Level:0.5", "met"),
        ("recall@context=Repo Level:0.1", "not-met"),
        ("precision@language=Go:0.1", "undecided"),
        ("recall@context=No Level:0.1", "undecided"),
        ("0.25", "met"),
    ],
)
def test_thresholds(small: Path, tmp_path: Path, threshold: str, outcome: str) -> None:
    results = offline(tmp_path, Says(half_right), dataset=[f"aacr:{small}"])
    decision = decide(make_gate(fail_under=[threshold]), results.summary(), results)
    assert decision.outcome == outcome, decision.verdict


def test_noise_can_be_bounded(small: Path, tmp_path: Path) -> None:
    results = offline(tmp_path, Says(half_right), dataset=[f"aacr:{small}"])
    for bound, outcome in (("0.5", "met"), ("0.49", "not-met")):
        gate = make_gate(fail_over=[f"noise:{bound}"])
        assert decide(gate, results.summary(), results).outcome == outcome


def test_the_human_reviewer_is_perfect(small: Path, tmp_path: Path) -> None:
    found = offline(tmp_path, HumanReviewer(), dataset=[f"aacr:{small}"]).summary().own.agreement
    assert found is not None
    assert found.f1.value == 1


def test_the_published_recall_leaves_silence_out(small: Path, tmp_path: Path) -> None:
    found = offline(tmp_path, Says(half_right), dataset=[f"aacr:{small}"], aacr_legacy=True)
    agreement = found.summary().own.agreement
    assert agreement is not None
    assert agreement.published
    # Of the first pull request's three references, the price is found; the second has no comment.
    assert (agreement.tally.found, agreement.tally.spoken) == (1, 3)
    assert agreement.recall.value == Fraction(1, 4)
    assert agreement.published_recall == Fraction(1, 3)
    assert agreement.published_f1 == Fraction(2 * 1, 6 + 3)
