"""Intervals: published values, properties, and coverage by simulation."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_crbench.statistics.intervals import (
    Interval,
    difference_interval,
    macro_interval,
    rate_interval,
    student_quantile,
    wilson,
)

clusters = st.lists(
    st.integers(1, 12).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))), min_size=1, max_size=40
)
pairs = st.lists(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n)).filter(
            lambda c: c[0] + c[1] <= n
        )
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize(
    ("passed", "low", "high"), [(75, 26.4, 38.3), (58, 19.7, 30.7), (54, 18.1, 28.9), (47, 15.5, 25.7)]
)
def test_one_check_per_pull_request_is_wilson(passed: int, low: float, high: float) -> None:
    """Wilson's intervals of c-CRAB's table 5, 234 tests; a design effect of 1 must give exactly these."""
    found = rate_interval([(int(i < passed), 1) for i in range(234)])
    assert found is not None
    assert (round(100 * found.low, 1), round(100 * found.high, 1)) == (low, high)
    assert found == wilson(passed / 234, 234)


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    # Abramowitz and Stegun, table 26.10, two-sided.
    [
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 5, 2.571),
        (0.95, 10, 2.228),
        (0.95, 29, 2.045),
        (0.99, 3, 5.841),
        (0.90, 120, 1.658),
        (0.95, 1e7, 1.960),
    ],
)
def test_student_quantile_tables(level: float, freedom: float, expected: float) -> None:
    assert student_quantile(level, freedom) == pytest.approx(expected, abs=6e-4)


def test_student_quantile_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (0.4, 1, 1.5, 2, 3, 7.3, 20, 183, 1504, 250_000):
        for level in (0.5, 0.9, 0.95, 0.999):
            expected = stats.t.ppf(0.5 + level / 2, freedom)
            assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-9), (level, freedom)


@settings(deadline=None)
@given(clusters)
def test_contains_the_estimate_and_is_never_degenerate(found: list[tuple[int, int]]) -> None:
    total = sum(of for _, of in found)
    micro = sum(passed for passed, _ in found) / total
    macro = sum(passed / of for passed, of in found) / len(found)
    for estimate, interval in ((micro, rate_interval(found)), (macro, macro_interval(found))):
        assert interval is not None
        assert 0.0 <= interval.low <= estimate + 1e-12
        assert estimate - 1e-12 <= interval.high <= 1.0
        assert interval.high - interval.low > 1e-3
        if 1e-9 < estimate < 1 - 1e-9:
            assert 0.0 < interval.low < estimate < interval.high < 1.0


@settings(deadline=None)
@given(clusters)
def test_clustering_never_shortens(found: list[tuple[int, int]]) -> None:
    """An interval over pull requests is at least as long as one that takes all checks as independent."""
    total, passed = sum(of for _, of in found), sum(p for p, _ in found)
    interval, plain = rate_interval(found), wilson(passed / total, total)
    assert interval is not None
    assert interval.high - interval.low >= plain.high - plain.low - 1e-12


@settings(deadline=None)
@given(clusters, st.integers(2, 4))
def test_more_pull_requests_shorten(found: list[tuple[int, int]], times: int) -> None:
    once, more = rate_interval(found), rate_interval(found * times)
    assert once is not None
    assert more is not None
    assert more.high - more.low < once.high - once.low


@settings(deadline=None)
@given(clusters)
def test_mirror_image(found: list[tuple[int, int]]) -> None:
    interval, mirrored = rate_interval(found), rate_interval([(of - p, of) for p, of in found])
    assert interval is not None
    assert mirrored is not None
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize("of", [1, 5, 44])
def test_nothing_and_all_of_n(of: int) -> None:
    none, every = rate_interval([(0, 1)] * of), rate_interval([(1, 1)] * of)
    assert none == Interval(0.0, wilson(0, of).high)
    assert every == Interval(wilson(1, of).low, 1.0)


def test_one_pull_request_says_as_much_as_one_check() -> None:
    assert rate_interval([(10, 20)]) == wilson(0.5, 1)


def test_repeats_of_one_outcome_add_nothing() -> None:
    """A reviewer that is the same each time is not known better for being asked ten times."""
    once = rate_interval([(1, 1)] * 12 + [(0, 1)] * 18)
    ten = rate_interval([(10, 10)] * 12 + [(0, 10)] * 18)
    assert once is not None
    assert ten is not None
    assert ten.low == pytest.approx(once.low, abs=1e-9)
    assert ten.high == pytest.approx(once.high, abs=1e-9)


def test_empty_clusters_do_not_count() -> None:
    assert rate_interval([]) is None
    assert macro_interval([(0, 0)]) is None
    assert difference_interval([(0, 0, 0)]) is None
    assert rate_interval([(1, 2), (0, 0)]) == rate_interval([(1, 2)])


@settings(deadline=None)
@given(pairs)
def test_differences_contain_the_estimate(found: list[tuple[int, int, int]]) -> None:
    total = sum(n for _, _, n in found)
    estimate = sum(a - b for a, b, _ in found) / total
    interval = difference_interval(found)
    mirrored = difference_interval([(b, a, n) for a, b, n in found])
    assert interval is not None
    assert mirrored is not None
    assert -1 <= interval.low <= estimate + 1e-12
    assert estimate - 1e-12 <= interval.high <= 1
    assert interval.high - interval.low > 1e-3
    assert interval.low == pytest.approx(-mirrored.high, abs=1e-9)


def test_difference_of_bonett_and_price() -> None:
    """With one check per pull request it is their closed form."""
    interval = difference_interval([(1, 0, 1)] * 12 + [(0, 1, 1)] * 4 + [(0, 0, 1)] * 34)
    first, second, n = 13 / 52, 5 / 52, 50
    middle = first - second
    half = 1.959964 * math.sqrt((first + second - middle**2) / (n + 2))
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((middle - half, middle + half), abs=1e-6)


def _sizes(name: str) -> list[int]:
    bundled = [1] * 20 + [2] * 7 + [3] * 2 + [4]
    return {
        "bundled": bundled,
        "bundled, 3 repeats": [3 * n for n in bundled],
        "bundled, 10 repeats": [10 * n for n in bundled],
        "eight pull requests": [1, 1, 1, 2, 2, 3, 4, 6],
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("correlation", [0.02, 0.2, 0.5, 0.9])
@pytest.mark.parametrize(
    "name", ["bundled", "bundled, 3 repeats", "bundled, 10 repeats", "eight pull requests"]
)
def test_coverage_by_simulation(name: str, correlation: float, rate: float) -> None:
    """Of 95 % intervals of beta-binomial pull requests, at least about 95 % hold the true rate.

    The bound is three standard errors of the simulation below 0.94. The same estimate of the design
    effect without the averaging with the worst case gets 0.86 in the worst of these settings.
    """
    random_ = random.Random(20261201)
    scale = (1 - correlation) / correlation
    rounds, inside = 500, 0
    for _ in range(rounds):
        found = []
        for of in _sizes(name):
            own = random_.betavariate(rate * scale, (1 - rate) * scale)
            found.append((sum(random_.random() < own for _ in range(of)), of))
        interval = rate_interval(found)
        assert interval is not None
        inside += interval.low <= rate <= interval.high
    assert inside / rounds >= 0.94 - 3 * math.sqrt(0.94 * 0.06 / rounds)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_coverage_of_differences_by_simulation(shift: float, repeats: int) -> None:
    random_ = random.Random(7)
    rounds, inside = 800, 0
    for _ in range(rounds):
        found = []
        for of in _sizes("bundled"):
            own = random_.betavariate(0.6, 1.4)
            # Two reviewers on one pull request; the second sees `shift` of what is left beside.
            better = own + shift * (1 - own)
            a = [random_.random() < better for _ in range(of * repeats)]
            b = [random_.random() < own for _ in range(of * repeats)]
            both = list(zip(a, b, strict=True))
            found.append((both.count((True, False)), both.count((False, True)), of * repeats))
        interval = difference_interval(found)
        assert interval is not None
        inside += interval.low <= shift * 0.7 <= interval.high
    assert inside / rounds >= 0.94 - 3 * math.sqrt(0.94 * 0.06 / rounds)
