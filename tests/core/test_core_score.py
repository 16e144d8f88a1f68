"""Rates, denominators, coverage and totals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_builders import LETTERS, run, verdict
from support.records import review_record

from pytest_crbench.core.model import Key
from pytest_crbench.core.status import Status
from pytest_crbench.statistics.intervals import wilson
from pytest_crbench.statistics.score import latest, summarise


def test_denominators() -> None:
    """Each status enters exactly the rates that it should."""
    overall = summarise(run("pppmmraitv")).overall
    assert (overall.selected, overall.passed, overall.missed) == (10, 3, 2)
    assert overall.measured.value == Fraction(3, 5)
    assert overall.strict.value == Fraction(3, 7)
    assert overall.coverage == Fraction(1, 2)
    assert overall.errors == dict.fromkeys(
        [Status.REVIEWER_ERROR, Status.AGENT_ERROR, Status.INFRA_ERROR, Status.TAMPERED, Status.INVALID], 1
    )


def test_planned_without_verdict_is_selected_and_not_run() -> None:
    planned = {Key("demo", f"pr-{n:03}", "c1"): {"kind": "structural"} for n in range(4)}
    summary = summarise(run("pm", facets={"kind": "structural"}), planned)
    assert (summary.overall.selected, summary.overall.not_run) == (4, 2)
    assert summary.overall.coverage == Fraction(1, 2)
    assert [key.instance for key in summary.not_run] == ["pr-002", "pr-003"]
    group = summary.group("kind", "structural")
    assert group is not None
    assert (group.selected, group.not_run, group.coverage) == (4, 2, Fraction(1, 2))


def test_nothing_at_all_has_no_rate() -> None:
    overall = summarise([]).overall
    assert overall.strict.value is None
    assert overall.coverage is None
    assert overall.strict.interval is None
    assert overall.macro is None


def test_only_errors_is_no_rate_but_zero_coverage() -> None:
    overall = summarise(run("iii")).overall
    assert overall.strict.value is None
    assert overall.coverage == 0


def test_facets_in_fixed_order() -> None:
    verdicts = [
        verdict("b", facets={"zebra": "1", "language": "Go", "kind": "structural"}),
        verdict("a", facets={"apple": "2", "repo": "x"}),
    ]
    names = [(group.facet, group.value) for group in summarise(verdicts).groups]
    assert names == [
        ("kind", "behavioral"),
        ("kind", "structural"),
        ("category", "Robustness"),
        ("dataset", "demo"),
        ("language", "Go"),
        ("repo", "x"),
        ("apple", "2"),
        ("zebra", "1"),
    ]


def test_micro_and_macro_differ_where_pull_requests_do() -> None:
    verdicts = [verdict("big", f"c{n}", "m") for n in range(4)] + [verdict("small", "c1", "p")]
    overall = summarise(verdicts).overall
    assert overall.strict.value == Fraction(1, 5)
    assert overall.macro == Fraction(1, 2)


def test_repeats_count_verdicts_and_distinct_checks() -> None:
    verdicts = [
        verdict("pr", check, letter, repeat=repeat)
        for check, letters in (("c1", "ppp"), ("c2", "pmm"), ("c3", "mmm"), ("c4", "pip"))
        for repeat, letter in enumerate(letters, start=1)
    ]
    summary = summarise(verdicts)
    overall = summary.overall
    assert (summary.repeats, overall.selected, overall.checks, overall.instances) == (3, 12, 4, 1)
    assert overall.strict.value == Fraction(6, 11)
    assert (overall.passed_ever, overall.passed_always) == (3, 2)
    # One pull request: whatever its number of verdicts, it says as much as one check.
    assert overall.strict.interval == wilson(6 / 11, 1)


def test_a_measurement_beats_a_crash() -> None:
    """A check shown both failed and passed after a worker's crash (pytest-xdist#932)."""
    for order in ("pi", "ip"):
        found = list(latest([verdict("pr", "c1", letter) for letter in order]).values())
        assert [one.status for one in found] == [Status.PASSED]
    assert [v.status for v in latest([verdict("pr", status=s) for s in "pm"]).values()] == [Status.MISSED]
    assert [v.status for v in latest([verdict("pr", status=s) for s in "ai"]).values()] == [
        Status.INFRA_ERROR
    ]


def test_other_arms_and_scorings_stay_out() -> None:
    verdicts = [*run("pp"), *run("mmmm", arm="none")]
    assert summarise(verdicts).overall.strict.value == 1
    assert summarise(verdicts, arm="none").overall.strict.value == 0
    assert summarise(verdicts, scoring="matching").overall.selected == 0


def test_totals_count_each_evaluation_once() -> None:
    """Comments, tokens and seconds of a review count once, those of its checks for each."""
    review = review_record(
        instance="a",
        comments=5,
        outside_diff=1,
        duplicates=2,
        usage={
            "revision": {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5},
            "matching": {"cost": 9},
        },
        durations={"review": 4.0, "revision": 8.0, "matching": 9.0},
    )
    verdicts = [verdict("a", f"c{n}", "p", review=review, durations={"tests": 1.5}) for n in range(3)]
    verdicts.append(verdict("b", status="r"))
    totals = summarise(verdicts).overall.totals
    assert (totals.evaluations, totals.reviews, totals.comments, totals.outside_diff) == (2, 1, 5, 1)
    assert totals.comments_per_pr == 5
    assert (totals.tokens, totals.cost) == (110, 0.5)
    assert totals.seconds == {"review": 4.0, "revision": 8.0, "tests": 4.5}
    matched = [replace(one, scoring="matching", durations={}) for one in verdicts]
    totals = summarise(matched, scoring="matching").overall.totals
    assert (totals.comments, totals.tokens, totals.cost) == (5, 0, 9)
    assert totals.seconds == {"review": 4.0, "matching": 9.0}, "no agent has a part in it"


def test_no_review_known_is_no_comment_rate() -> None:
    totals = summarise(run("ri")).overall.totals
    assert totals.comments_per_pr is None
    assert totals.cost is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4), st.sampled_from("pmraitv")), max_size=60))
def test_groups_add_up(spec: list[tuple[int, int, str]]) -> None:
    verdicts = [
        verdict(f"pr{i}", f"c{c}", s, facets={"kind": "behavioral" if c % 2 else "structural"})
        for i, c, s in spec
    ]
    summary = summarise(verdicts)
    for facet, groups in summary.facets().items():
        assert sum(group.selected for group in groups) == summary.overall.selected, facet
        assert sum(group.passed for group in groups) == summary.overall.passed
    overall = summary.overall
    assert overall.selected == overall.passed + overall.missed + sum(overall.errors.values())
    assert len(summary.unmeasured) == sum(overall.errors.values())
    if overall.strict.value is not None and overall.measured.value is not None:
        assert overall.strict.value <= overall.measured.value


@pytest.mark.parametrize("letter", list(LETTERS))
def test_order_of_arrival_does_not_matter(letter: str) -> None:
    verdicts = run("pm" + letter)
    assert summarise(verdicts) == summarise(reversed(verdicts))
