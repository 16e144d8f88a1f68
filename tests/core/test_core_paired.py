"""The paired test: exact, honest about repeats and noise, and about the differences that it can find."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_builders import results, verdict

from pytest_crbench.statistics.compare import compare
from pytest_crbench.statistics.gate import decide, make_gate
from pytest_crbench.statistics.paired import detectable, differs, worse
from pytest_crbench.statistics.results import Results
from pytest_crbench.statistics.score import summarise

#: Checks per pull request of the bundled dataset: 30 pull requests, 44 checks.
SIZES = [1] * 20 + [2] * 7 + [3] * 2 + [4]

differences = st.lists(st.builds(Fraction, st.integers(-6, 6), st.sampled_from([1, 2, 3, 5])), max_size=8)


@pytest.mark.parametrize(
    ("lost", "won", "expected"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (10, 2, 0.038574), (6, 6, 1.0)],
)
def test_one_check_per_pull_request_is_mcnemar(lost: int, won: int, expected: float) -> None:
    found = [Fraction(-1)] * lost + [Fraction(1)] * won + [Fraction(0)] * 7
    assert float(differs(found)) == pytest.approx(expected, abs=1e-6)
    assert differs([-one for one in found]) == differs(found)


@given(differences)
def test_exact(found: list[Fraction]) -> None:
    """Against all 2^n ways to choose signs."""
    ways = [
        sum(sign * one for sign, one in zip(signs, found, strict=True))
        for signs in itertools.product((1, -1), repeat=len(found))
    ]
    total = sum(found)
    assert worse(found) == Fraction(sum(way <= total for way in ways), len(ways))
    assert differs(found) == Fraction(sum(abs(way) >= abs(total) for way in ways), len(ways))


def test_hundreds_of_pull_requests() -> None:
    """Nobody could enumerate these; the normal approximation says what to expect."""
    assert float(worse([Fraction(-1)] * 110 + [Fraction(1)] * 90)) == pytest.approx(0.0895, abs=5e-4)
    assert float(worse([Fraction(-7, 3)] * 110 + [Fraction(7, 3)] * 90)) == pytest.approx(0.0895, abs=5e-4)


#: What one run made of each pull request's checks, in each repeat.
Outcomes = list[list[list[bool]]]


def _unchanged(chance: random.Random, repeats: int, flips: float | None) -> tuple[Outcomes, Outcomes]:
    """Two runs that differ by the noise of the agent alone, or by equally good deterministic reviews."""
    runs: tuple[Outcomes, Outcomes] = ([], [])
    for size in SIZES:
        for run in runs:
            run.append([])
        for _ in range(size):
            found = chance.random() < 0.3
            for run in runs:
                true = found if flips is not None else chance.random() < 0.3
                run[-1].append([true ^ (chance.random() < (flips or 0.0)) for _ in range(repeats)])
    return runs


def _results(outcomes: Outcomes) -> Results:
    verdicts = [
        verdict(f"pr-{i:03}", f"c{j}", "p" if passed else "m", repeat=k)
        for i, checks in enumerate(outcomes)
        for j, repeats in enumerate(checks)
        for k, passed in enumerate(repeats, 1)
    ]
    return results(verdicts)


def _changes(first: Outcomes, second: Outcomes) -> list[Fraction]:
    return [
        sum((Fraction(sum(b) - sum(a), len(a)) for a, b in zip(*checks, strict=True)), Fraction(0))
        for checks in zip(first, second, strict=True)
    ]


@pytest.mark.parametrize(("repeats", "flips"), [(3, None), (1, None), (1, 0.1), (3, 0.1)])
def test_false_alarms(repeats: int, flips: float | None) -> None:
    """Where nothing changed, at most 5 % of comparisons and of gates say otherwise.

    Seeded, so that it cannot fail by chance. Taken as independent, the verdicts of three repeats of a
    deterministic pipeline differ at .05 in 23 % of such rounds; any drop at all is there in 41 to 47 %.
    """
    chance = random.Random(20261201)
    found = [_changes(*_unchanged(chance, repeats, flips)) for _ in range(600)]
    assert sum(differs(changes) <= Fraction(5, 100) for changes in found) <= 0.05 * len(found)
    assert sum(worse(changes) <= Fraction(5, 100) for changes in found) <= 0.05 * len(found)
    assert sum(sum(changes) < 0 for changes in found) > 0.4 * len(found)


@pytest.mark.parametrize(("repeats", "flips"), [(1, 0.1), (3, 0.1), (3, None)])
def test_comparison_and_gate_use_the_test(repeats: int, flips: float | None) -> None:
    chance = random.Random(3)
    for _ in range(8):
        first, second = _unchanged(chance, repeats, flips)
        if chance.random() < 0.5:
            second = [[[r and chance.random() < 0.4 for r in check] for check in checks] for checks in second]
        changes = _changes(first, second)
        before, after = _results(first), _results(second)
        overall = compare(before, after).overall
        assert (overall.p, overall.p_worse) == (float(differs(changes)), float(worse(changes)))
        assert (overall.checks, overall.pairs) == (44, 44 * repeats)
        decision = decide(make_gate(baseline=before, fail_if_regressed=""), after.summary(), after)
        assert decision.outcome == ("not-met" if worse(changes) <= Fraction(5, 100) else "met")


def test_repeats_of_a_deterministic_pipeline_add_nothing() -> None:
    first, second = _unchanged(random.Random(5), 1, None)
    one = compare(_results(first), _results(second)).overall
    tripled = ([[check * 3 for check in checks] for checks in run] for run in (first, second))
    three = compare(*map(_results, tripled)).overall
    assert (three.p, three.p_worse, three.checks, three.lost) == (one.p, one.p_worse, one.checks, one.lost)


@pytest.mark.parametrize("checks", [8, 12, 20, 44])
def test_power_of_single_checks_at_the_detectable_difference(checks: int) -> None:
    chance = random.Random(20261201)
    apart = detectable(0.3, checks)
    assert apart is not None
    low = max(0.3 - apart / 2, 0.0)
    found = 0
    for _ in range(1000):
        pairs = [(chance.random() < low, chance.random() < low + apart) for _ in range(checks)]
        found += worse([Fraction(second - first) for second, first in pairs]) <= Fraction(5, 100)
    assert 0.76 <= found / 1000 <= 0.85


@pytest.mark.parametrize("rate", [0.2, 0.3, 0.5])
def test_power_at_the_detectable_difference(rate: float) -> None:
    """Two runs that far apart are told apart in about four of five cases."""
    chance = random.Random(20261201)
    apart = detectable(rate, 40.0)
    assert apart is not None
    found = 0
    for _ in range(400):
        changes = []
        for size in SIZES:
            before = sum(chance.random() < rate + apart / 2 for _ in range(size))
            changes.append(Fraction(sum(chance.random() < rate - apart / 2 for _ in range(size)) - before))
        found += worse(changes) <= Fraction(5, 100)
    assert 0.72 <= found / 400 <= 0.88


def test_detectable_differences() -> None:
    """Of 44 independent checks 20 to 25 points; fewer checks ask for more, repeats for no less."""
    for rate in (0.2, 0.25, 0.3):
        assert 0.2 <= (detectable(rate, 44) or 1) <= 0.26
    assert detectable(0.3, 2) is None
    assert detectable(0.0, 44) == pytest.approx(0.162, abs=0.01)

    def of(shape: Outcomes) -> float:
        found = _results(shape).summary().overall.detectable
        assert found is not None
        return found

    alone = of([[[n % 3 == 0]] for n in range(44)])
    assert 0.2 <= alone <= 0.28
    four = _results([[[True]], [[False]], [[True]], [[False]]])
    assert four.summary().overall.detectable is None
    assert of([[[n % 3 == 0]] * 4 for n in range(11)]) > 1.5 * alone
    assert of([[[n % 3 == 0] * 3] for n in range(44)]) == pytest.approx(alone, rel=0.02)
    assert summarise([]).overall.detectable is None
