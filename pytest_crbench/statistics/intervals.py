"""95 % intervals for rates whose checks come in clusters (pull requests), never degenerate.

A rate gets the score interval of Wilson (1927, J. Am. Stat. Assoc. 22:209) with an effective sample size
n / deff in place of n (Rao & Scott 1992, Biometrics 48:577; Korn & Graubard 1998, Surv. Methodol. 24:193;
compared in Dean & Pagano 2015, J. Surv. Stat. Methodol. 3:484). deff, the design effect, is the variance of
the ratio estimator over the clusters against that of independent checks. docs/statistics.md tells the whole
method, how far it was tested, and what it does not cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

LEVEL = 0.95
#: Written into every result file beside the level.
METHOD = "wilson-score, effective sample size from the clustering in pull requests"
PAIRED_METHOD = "bonett-price adjusted wald, effective sample size from the clustering in pull requests"


@dataclass(frozen=True)
class Interval:
    """A closed interval of rates in [0, 1], or of differences of rates in [-1, 1]."""

    low: float
    high: float


def wilson(rate: float, size: float, level: float = LEVEL) -> Interval:
    """Return Wilson's score interval of ``rate`` observed on ``size`` independent trials.

    Args:
        rate: the observed rate, in [0, 1].
        size: number of trials, above 0; need not be whole.
        level: confidence level.
    """
    z = _normal_quantile(level)
    shrink = 1 + z * z / size
    middle = (rate + z * z / (2 * size)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / size + z * z / (4 * size * size))
    # Rounding must not leave the estimate, or the limits of a rate, outside.
    return Interval(min(max(middle - half, 0.0), rate), max(min(middle + half, 1.0), rate))


def rate_interval(clusters: Sequence[tuple[int, int]], level: float = LEVEL) -> Interval | None:
    """Return the interval of the rate over all checks (micro).

    Args:
        clusters: (passed, of) per pull request; empty ones do not count.
        level: confidence level.

    Returns:
        None if there is nothing to count.
    """
    size = effective_size(clusters, level)
    if not size:
        return None
    passed, of = (sum(column) for column in zip(*clusters, strict=True))
    return wilson(passed / of, size, level)


def effective_size(clusters: Sequence[tuple[int, int]], level: float = LEVEL) -> float:
    """Return how many independent checks would tell as much as these, (passed, of) per pull request."""
    used = [(passed, of) for passed, of in clusters if of > 0]
    if not used:
        return 0.0
    size = sum(of for _, of in used)
    rate = sum(passed for passed, _ in used) / size
    variance = _ratio_variance([(passed - rate * of) / size for passed, of in used])
    worst = size * size / sum(of * of for _, of in used)
    return _effective_size(
        size, worst, variance, rate * (1 - rate) / size, _informative(used), len(used), level
    )


def macro_interval(clusters: Sequence[tuple[int, int]], level: float = LEVEL) -> Interval | None:
    """Return the interval of the mean of the pull requests' own rates (macro).

    Args:
        clusters: (passed, of) per pull request; empty ones do not count.
        level: confidence level.

    Returns:
        None if there is nothing to count.
    """
    used = [(passed, of) for passed, of in clusters if of > 0]
    if not used:
        return None
    count = len(used)
    rates = [passed / of for passed, of in used]
    rate = min(sum(rates) / count, 1.0)
    # The size that independent checks would have under weights 1/of, and the worst case: one check each.
    size = count * count / sum(1 / of for _, of in used)
    variance = _ratio_variance([(one - rate) / count for one in rates])
    effective = _effective_size(
        size, count, variance, rate * (1 - rate) / size, _informative(used), count, level
    )
    return wilson(rate, effective, level)


def difference_interval(clusters: Sequence[tuple[int, int, int]], level: float = LEVEL) -> Interval | None:
    """Return the interval of a difference of two rates on the same checks.

    That of Bonett & Price (2012, J. Educ. Behav. Stat. 37:479), one pseudo-pair added to each kind of
    disagreement, with an effective number of pairs.

    Args:
        clusters: (only the first passed, only the second passed, pairs) per pull request.
        level: confidence level.

    Returns:
        The interval of rate(first) - rate(second), or None without a pair.
    """
    used = [cluster for cluster in clusters if cluster[2] > 0]
    if not used:
        return None
    size = sum(pairs for _, _, pairs in used)
    first = sum(only for only, _, _ in used) / size
    second = sum(only for _, only, _ in used) / size
    difference = first - second
    variance = _ratio_variance([(a - b - difference * pairs) / size for a, b, pairs in used])
    worst = size * size / sum(pairs * pairs for _, _, pairs in used)
    informative = sum(1 for a, b, _ in used if a or b)
    independent = (first + second - difference * difference) / size
    effective = _effective_size(size, worst, variance, independent, informative, len(used), level)
    first = (first * effective + 1) / (effective + 2)
    second = (second * effective + 1) / (effective + 2)
    middle = first - second
    half = _normal_quantile(level) * math.sqrt((first + second - middle * middle) / (effective + 2))
    return Interval(
        min(max(middle - half, -1.0), difference),
        max(min(middle + half, 1.0), difference),
    )


def student_quantile(level: float, freedom: float) -> float:
    """Return t with P(abs(T) <= t) = ``level`` for Student's T with ``freedom`` (> 0) degrees of freedom."""
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    # Newton's method; the function is concave, so that from the left (the normal quantile) it only rises.
    t = _normal_quantile(level)
    for _ in range(200):
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (level - _student_central(t, freedom)) / (2 * density)
        t += step
        if abs(step) <= 1e-13 * t:
            break
    return t


def _effective_size(
    size: float,
    worst: float,
    variance: float,
    independent: float,
    informative: int,
    clusters: int,
    level: float,
) -> float:
    """Number of independent checks that say as much as the clustered ones; between ``worst`` and ``size``.

    ``worst`` is the size if all checks of a pull request always had one outcome. The estimate of deff is
    itself made from few pull requests, above all where few of them show the rarer outcome, and an
    underestimate makes intervals too short. So it is averaged with the worst case, which counts as one
    more pull request: with none informative (0 of n, n of n) the worst case remains.
    """
    if clusters < 2 or independent <= 0:
        return worst
    estimate = max(variance / independent, 1.0)
    deff = (informative * estimate + size / worst) / (informative + 1)
    freedom = 1.0
    if size > clusters:
        # Korn and Graubard's adjustment; 1 where each pull request has one check, so that this is Wilson's.
        freedom = (student_quantile(level, size - 1) / student_quantile(level, clusters - 1)) ** 2.0
    return min(max(size / deff * freedom, worst), size)


def _ratio_variance(residuals: Sequence[float]) -> float:
    """Linearised variance of a ratio from its residuals per cluster."""
    count = len(residuals)
    return count / (count - 1) * sum(one * one for one in residuals) if count > 1 else 0.0


def _informative(clusters: Sequence[tuple[int, int]]) -> int:
    """How many pull requests show the rarer outcome."""
    return min(sum(1 for p, _ in clusters if p > 0), sum(1 for p, of in clusters if p < of))


def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def _student_central(t: float, freedom: float) -> float:
    """P(|T| <= t)."""
    square = t * t
    return 1.0 - _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1) / (a + b + 2):
        return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b
    return front * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + term / c
            c = c if abs(c) > tiny else tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return result


def percent(value: Fraction | None) -> str:
    """A rate in per cent with one decimal, "-" if there is none."""
    return "-" if value is None else f"{100 * float(value):.1f}"


def span(interval: Interval | None) -> str:
    """An interval in per cent: " 3.1 - 38.9", limits aligned up to 99.9."""
    return "   -" if interval is None else f"{100 * interval.low:4.1f} - {100 * interval.high:4.1f}"
