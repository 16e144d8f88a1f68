"""The decisions of a gate: a table, the exactness at the boundary, and what it says."""

# ruff: noqa: E501  (the rows of a table of decisions stay whole)

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_builders import results, run, verdict
from support.records import review_record

from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.statistics.gate import Gate, decide, make_gate, shown
from pytest_crbench.statistics.score import summarise
from pytest_crbench.statistics.thresholds import parse_share, parse_threshold


def decision(statuses: str, *fail_under: str, **options: Any) -> Any:
    return decide(make_gate(fail_under=fail_under, **options), summarise(run(statuses)))


@pytest.mark.parametrize(
    ("statuses", "fail_under", "outcome", "status", "said"),
    [
        ("pppm", ["0.7"], "met", 0, "PASSED, overall 0.750 >= 0.7, coverage 1.000 >= 0.95"),
        ("pppm", ["75%"], "met", 0, "PASSED, overall 0.750 >= 75%, coverage 1.000 >= 0.95"),
        ("pppm", ["0.76"], "not-met", 1, "FAILED, overall 0.750 < 0.76, coverage 1.000 >= 0.95"),
        ("mmmm", ["0"], "met", 0, "PASSED, overall 0.000 >= 0, coverage 1.000 >= 0.95"),
        ("pppi", ["0.5"], "undecided", 10, "UNDECIDED, coverage 0.750 < 0.95 (1 infra_error), overall 1.000 >= 0.5"),
        # Coverage comes first: a rate over what happened to be measured decides nothing, either way.
        ("mmmi", ["0.5"], "undecided", 10, "UNDECIDED, coverage 0.750 < 0.95 (1 infra_error), overall 0.000 < 0.5"),
        ("p" * 19 + "i", ["0.9"], "met", 0, "PASSED, overall 1.000 >= 0.9, coverage 0.950 >= 0.95 (1 infra_error)"),
        ("p" * 19 + "r", ["0.96"], "not-met", 1, "FAILED, overall 0.950 < 0.96, coverage 0.950 >= 0.95 (1 reviewer_error), measured 1.000 (19 of 19)"),
        ("p" * 19 + "r", ["measured:0.96"], "met", 0, "PASSED, measured 1.000 >= 0.96, coverage 0.950 >= 0.95 (1 reviewer_error)"),
        # What a program says of itself counts as missed, and is no measurement either.
        ("p" * 19 + "o", ["0.96"], "not-met", 1, "FAILED, overall 0.950 < 0.96, coverage 0.950 >= 0.95 (1 infra_error), 1.000 without 1 self-reported"),
        ("p" * 19 + "o", ["macro:0.96"], "not-met", 1, "FAILED, macro 0.950 < 0.96, coverage 0.950 >= 0.95 (1 infra_error), 1.000 without 1 self-reported"),
        ("p" * 19 + "o", ["@kind=behavioral:0.95"], "met", 0, "PASSED, kind=behavioral 0.950 >= 0.95, coverage 0.950 >= 0.95 (1 infra_error), 1.000 without 1 self-reported"),
        ("pppo", ["0.5"], "undecided", 10, "UNDECIDED, coverage 0.750 < 0.95 (1 infra_error), overall 0.750 >= 0.5, 1.000 without 1 self-reported"),
        ("oo", ["0.5"], "undecided", 10, "UNDECIDED, coverage 0.000 < 0.95 (2 infra_error), overall 0.000 < 0.5, nothing measured without 2 self-reported"),
        ("pppo", [], "none", None, "overall 1.000, 0.750 with 1 self-reported outside failures as missed, coverage 0.750 (1 infra_error) (no gate asked for)"),
        ("iiii", ["0.5"], "undecided", 10, "UNDECIDED, coverage 0.000 < 0.95 (4 infra_error), overall: nothing measured"),
        ("", ["0.5"], "undecided", 10, "UNDECIDED, no check selected, overall: no check selected"),
        ("ppmm", ["0.5", "macro:0.6"], "not-met", 1, "FAILED, macro 0.500 < 0.6, overall 0.500 >= 0.5, coverage 1.000 >= 0.95"),
        ("pm", ["@category=Robustness:0.5"], "met", 0, "PASSED, category=Robustness 0.500 >= 0.5, coverage 1.000 >= 0.95"),
        ("pppm", [], "none", None, "overall 0.750, coverage 1.000 (no gate asked for)"),
        ("", [], "none", None, "nothing measured (no gate asked for)"),
        ("ii", [], "none", None, "nothing measured (2 infra_error) (no gate asked for)"),
    ],
)  # fmt: skip
def test_decisions(statuses: str, fail_under: list[str], outcome: str, status: int | None, said: str) -> None:
    found = decision(statuses, *fail_under)
    assert (found.outcome, found.exit_status, found.verdict) == (outcome, status, said)


@settings(deadline=None)
@given(st.integers(1, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_exact_at_the_boundary(counts: tuple[int, int]) -> None:
    """A bound that is the rate itself is met; one that is a hair above is not, whatever a float says."""
    passed, of = counts
    summary = summarise(run("p" * passed + "m" * (of - passed)))
    rate = Fraction(passed, of)
    digits = 30
    below = rate.numerator * 10**digits // rate.denominator
    for number, holds in ((below, True), (below + 1, below + 1 <= rate * 10**digits)):
        if number > 10**digits:
            continue
        text = f"{number // 10**digits}.{number % 10**digits:0{digits}d}"
        found = decide(make_gate(fail_under=[text]), summary)
        assert (found.outcome == "met") is holds, (counts, text)


def test_three_tenths_is_three_tenths() -> None:
    """0.1 + 0.2 is more than 0.3 for floats."""
    assert decision("ppp" + "m" * 7, "0.3").outcome == "met"
    assert decision("ppp" + "m" * 7, "0.30000000000000001").outcome == "not-met"
    assert decision("p" * 29 + "m" * 71, "29%").outcome == "met"


@given(
    st.fractions(0, 1, max_denominator=10**6),
    st.decimals(0, 1, places=4).map(lambda number: Fraction(str(number))),
)
def test_what_is_printed_never_contradicts_the_decision(value: Fraction, bound: Fraction) -> None:
    printed = Fraction(shown(value, bound))
    assert (printed >= bound) is (value >= bound)
    assert (printed <= bound) is (value <= bound)


def test_a_rate_just_below_does_not_look_equal() -> None:
    found = decision("p" * 2999 + "m" * 7001, "0.3")
    assert found.verdict.startswith("FAILED, overall 0.2999 < 0.3")


@pytest.mark.parametrize(
    ("text", "metric", "facet", "value", "bound"),
    [
        ("0.30", "pass_rate", "", "", Fraction(3, 10)),
        (":0.30", "pass_rate", "", "", Fraction(3, 10)),
        ("30 %", "pass_rate", "", "", Fraction(3, 10)),
        ("@category=Security:0.5", "pass_rate", "category", "Security", Fraction(1, 2)),
        ("macro:.2", "macro", "", "", Fraction(1, 5)),
        ("measured@context=Repo Level:1.", "measured", "context", "Repo Level", Fraction(1)),
        ("@repo=git://x:y=z:0", "pass_rate", "repo", "git://x:y=z", Fraction(0)),
        ("pass_rate@a=b@c:0.1", "pass_rate", "a", "b@c", Fraction(1, 10)),
    ],
)
def test_thresholds(text: str, metric: str, facet: str, value: str, bound: Fraction) -> None:
    found = parse_threshold(text)
    assert (found.metric, found.facet, found.value, found.bound) == (metric, facet, value, bound)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nan", "expected a share"),
        ("inf", "expected a share"),
        ("-0.1", "expected a share"),
        ("1e-3", "expected a share"),
        ("1/3", "expected a share"),
        ("", "expected a share"),
        ("٣%", "expected a share"),
        ("30", "for per cent write 30%"),
        ("1.01", "more than 1"),
        ("101%", "more than 1"),
        ("f2:0.15", "Known: pass_rate"),
        ("f1@context=Repo Level:0.1", "has no context"),
        ("@category:0.5", "names no facet value"),
        ("@category=:0.5", "names no facet value"),
        ("@:0.5", "names no facet value"),
        ("@category=Security", "no threshold"),
        ("macro", "no threshold"),
        ("@category=Security:", "expected a share"),
        ("comments_per_pr:nan", "expected a number"),
        ("comments_per_pr:20%", "expected a number"),
    ],
)
def test_thresholds_that_mean_nothing(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_threshold(text)
    assert said in str(caught.value)
    assert f"--crbench-fail-under={text}" in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_a_threshold_or_a_usage_error(text: str) -> None:
    try:
        found = parse_threshold(text, "over")
    except UsageError:
        return
    assert found.bound >= 0


def test_min_coverage_alone_is_a_gate() -> None:
    """Whoever asks for coverage and for no rate still wants to be told, by the exit status too."""
    assert decision("pppi").outcome == "none"
    found = decision("pppi", min_coverage="0.8")
    assert (found.exit_status, found.verdict) == (10, "UNDECIDED, coverage 0.750 < 0.8 (1 infra_error)")
    assert decision("pppi", min_coverage="0.7").verdict == "PASSED, coverage 0.750 >= 0.7 (1 infra_error)"
    assert decision("", min_coverage="0").exit_status == 10, "an empty run covers nothing"


def test_min_coverage_is_a_share() -> None:
    assert decision("pppi", "0.5", min_coverage="75%").outcome == "met"
    assert decision("pppi", "0.5", min_coverage="0.7500001").outcome == "undecided"
    with pytest.raises(UsageError, match="min-coverage"):
        make_gate(min_coverage="lots")
    assert parse_share("100%", "x") == 1


def test_a_facet_needs_its_own_coverage() -> None:
    """A mean gated over a shrinking sample: 30 measured checks must not cover for one facet's errors."""
    security = {"facets": {"category": "Security"}}
    verdicts = [*run("p" * 60), verdict("s1", status="p", **security), verdict("s2", status="i", **security)]
    summary = summarise(verdicts)
    found = decide(make_gate(fail_under=["@category=Security:0.5"]), summary)
    assert (found.outcome, found.exit_status) == ("undecided", 10)
    assert "category=Security 1.000 >= 0.5, but its coverage 0.500 < 0.95 (1 infra_error)" in found.verdict
    # What is decided on enough measurements and fails is not saved by what is undecided.
    both = decide(make_gate(fail_under=["@category=Security:0.5", "@category=Robustness:1"]), summary)
    assert both.outcome == "undecided"
    fails = decide(make_gate(fail_under=["@category=Security:0.5"], fail_over=["0.2"]), summary)
    assert (fails.outcome, fails.exit_status) == ("not-met", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@category=Secruity:0.5", "no check selected (values of category: Robustness)"),
        ("@colour=red:0.5", "no check selected (no facet 'colour'; there are kind, category, dataset)"),
    ],
)
def test_unknown_facets_are_undecided_and_named(text: str, said: str) -> None:
    found = decision("pppp", text)
    assert (found.outcome, found.exit_status) == ("undecided", 10)
    assert said in found.verdict


def said(instance: str, comments: int) -> Verdict:
    return verdict(instance, review=review_record(instance=instance, comments=comments))


def test_five_hundred_vague_comments_must_not_win() -> None:
    noisy = [said(f"pr{n}", 21 if n else 20) for n in range(3)]
    gate = make_gate(fail_under=["0.5"], fail_over=["comments_per_pr:20"])
    found = decide(gate, summarise(noisy))
    assert (found.outcome, found.exit_status) == ("not-met", 1)
    assert found.verdict.startswith("FAILED, comments_per_pr 20.667 > 20, overall 1.000 >= 0.5")
    quiet = [said(f"pr{n}", 20) for n in range(3)]
    assert decide(gate, summarise(quiet)).outcome == "met"


def test_comments_of_unknown_reviews_are_undecided() -> None:
    verdicts = [said("a", 1), verdict("b"), said("c", 3)]
    found = decide(make_gate(fail_over=["comments_per_pr:20"]), summarise(verdicts))
    assert found.outcome == "undecided"
    assert "only 2 of 3 reviews are known" in found.verdict
    assert decision("ppp", fail_over=["comments_per_pr:20"]).outcome == "undecided"


def test_not_run_is_not_coverage() -> None:
    planned = {Key("demo", f"pr-{n:03}", "c1"): {"kind": "behavioral"} for n in range(10)}
    found = decide(make_gate(fail_under=["0.1"]), summarise(run("ppppp"), planned))
    assert found.outcome == "undecided"
    assert "coverage 0.500 < 0.95 (5 not run)" in found.verdict


@pytest.mark.parametrize(
    ("before", "after", "tolerated", "outcome", "said"),
    [
        ("pppm", "pppm", "0", "met", "not regressed: 0.750 against 0.750 of the baseline on 4 common checks"),
        ("ppmm", "pppm", "0", "met", "not regressed: 0.750 against 0.500"),
        ("pppm", "ppmm", "0", "not-met", "regressed: 0.500 against 0.750 of the baseline on 4 common checks, 1 lost and 0 won (one-sided p = 0.5): lost pr-002::c1"),
        ("pppm", "ppmm", "0.25", "met", "not regressed"),
        ("pppm", "ppmm", "24%", "not-met", "regressed"),
        # One lost and one won is no drop; who lost what is for `crbench compare`.
        ("pm", "mp", "0", "met", "not regressed: 0.500 against 0.500"),
        ("pmp", "pmp", "0", "met", "not regressed: 0.667 against 0.667"),
        # A crash of the reviewer is a loss; what failed for outside reasons is no measurement.
        ("pp" * 10, "pp" * 9 + "pr", "0", "not-met", "regressed"),
        # Without a share the paired test decides: four of four lost may be chance, five are 1 of 32.
        ("p" * 20, "p" * 16 + "m" * 4, "", "met", "4 lost and 0 won (one-sided p = 0.062 > 0.05)"),
        ("p" * 20, "p" * 15 + "m" * 5, "", "not-met", "5 lost and 0 won (one-sided p = 0.031 <= 0.05): lost pr-015::c1,"),
        ("p" * 20, "p" * 15 + "m" * 5, "p:0.01", "met", "(one-sided p = 0.031 > 0.01)"),
        ("p" * 20, "p" * 13 + "m" * 7, "p:1%", "not-met", "and 2 more"),
        ("mm" + "p" * 18, "pp" + "m" * 5 + "p" * 13, "", "met", "5 lost and 2 won (one-sided p = 0.23 > 0.05)"),
        # A gate that could never fail must not say that it passed.
        ("pppp" + "m" * 16, "mmmm" + "m" * 16, "", "undecided", "too few pull requests for the test to fail, even if all were lost (p = 0.062)"),
        ("m" * 20, "m" * 20, "", "met", "not regressed"),
        ("pp" * 10, "pp" * 9 + "pi", "", "met", "on 19 common checks"),
        ("ppii", "pppp", "", "undecided", "but only 0.500 of them measured in both"),
        ("iiii", "pppp", "", "undecided", "no check in common"),
    ],
)  # fmt: skip
def test_regression(before: str, after: str, tolerated: str, outcome: str, said: str) -> None:
    current = results(run(after))
    gate = make_gate(baseline=results(run(before)), fail_if_regressed=tolerated)
    found = decide(gate, current.summary(), current)
    assert found.outcome == outcome, found.verdict
    assert said in found.verdict


def test_changed_checks_are_left_out_and_named() -> None:
    """A check whose test changed says nothing about the reviewer."""
    baseline = results([*run("ppp"), verdict("changed", "pin", "p", check_digest="old")])
    current = results([*run("ppp"), verdict("changed", "pin", "m", check_digest="new")])
    found = decide(make_gate(baseline=baseline, fail_if_regressed="0"), current.summary(), current)
    assert found.outcome == "met"
    assert "on 3 common checks (left out, changed since: changed::pin)" in found.verdict


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agent": {"name": "llm"}}, "the coding agents differ (suggestions and llm)"),
        (
            {"agent": {"name": "suggestions", "fingerprint": {"version": "2"}}},
            "the coding agents differ (suggestions, with another version)",
        ),
        ({"sandbox": {"name": "docker"}}, "the sandboxes differ (local and docker)"),
    ],
)
def test_unlike_baselines_are_undecided(change: dict[str, Any], said: str) -> None:
    current = results(run("pppp"), **change)
    found = decide(make_gate(baseline=results(run("pppp")), fail_if_regressed=""), current.summary(), current)
    assert (found.outcome, found.exit_status) == ("undecided", 10)
    assert said in found.verdict


def test_another_environment_is_undecided() -> None:
    current = results(run("pppp", environment="e2"))
    baseline = results(run("pppp", environment="e1"))
    found = decide(make_gate(baseline=baseline, fail_if_regressed=""), current.summary(), current)
    assert found.outcome == "undecided"
    assert "the environments of demo::pr-000 and 3 more differ (e1 and e2)" in found.verdict


def test_regression_without_a_baseline_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="baseline"):
        make_gate(fail_if_regressed="")
    for text in ("much", "p:", "p:0", "p:0.5", "p:2", "p<0.05"):
        with pytest.raises(UsageError, match=f"fail-if-regressed={text}"):
            make_gate(fail_if_regressed=text, baseline=results([]))


def test_a_baseline_alone_asks_for_nothing() -> None:
    assert not Gate(baseline=results(run("p"))).asked


def test_json_is_plain() -> None:
    found = decision("pppm", "0.9").to_json()
    assert found == {
        "outcome": "not-met",
        "exit_status": 1,
        "verdict": "FAILED, overall 0.750 < 0.9, coverage 1.000 >= 0.95",
        "conditions": [
            {"label": "overall", "outcome": "not-met", "text": "overall 0.750 < 0.9", "lost": []},
            {"label": "coverage", "outcome": "met", "text": "coverage 1.000 >= 0.95", "lost": []},
        ],
    }


def test_a_self_reported_failure_is_a_loss_against_the_baseline() -> None:
    baseline, current = results(run("p" * 20)), results(run("p" * 19 + "o"))
    for tolerated, outcome in (("0", "not-met"), ("0.05", "met")):
        gate = make_gate(baseline=baseline, fail_if_regressed=tolerated)
        assert decide(gate, current.summary(), current).outcome == outcome


def test_a_self_reported_failure_lowers_recall() -> None:
    """In matching, too, whatever the review of the pull request would have been."""
    found = [replace(v, scoring="matching") for v in run("p" * 19 + "o")]
    summary = summarise(found, scoring="matching")
    for metric in ("recall", "macro_recall"):
        said = decide(make_gate(fail_under=[f"{metric}:0.96"]), summary).conditions[0]
        assert said.text.startswith(f"{metric} 0.950 < 0.96"), said.text


def test_repeats_of_one_loss_are_one_loss() -> None:
    """Four checks lost in each of three repeats are not twelve losses."""
    before, after = "p" * 20, "p" * 16 + "m" * 4
    baseline = results([v for n in (1, 2, 3) for v in run(before, repeat=n)])
    current = results([v for n in (1, 2, 3) for v in run(after, repeat=n)])
    found = decide(make_gate(baseline=baseline, fail_if_regressed=""), current.summary(), current)
    assert found.outcome == "met"
    assert "on 20 common checks, 4 lost and 0 won (one-sided p = 0.062 > 0.05)" in found.verdict
