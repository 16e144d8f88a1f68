"""Intervals of ratios of sums over pull requests, by drawing the pull requests again and again.

The percentile bootstrap (Efron & Tibshirani 1993, An Introduction to the Bootstrap, ch. 13), clustered: a
pull request is drawn with all that was counted in it. A fixed seed: the same counts give the same interval.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING

from .intervals import LEVEL, Interval, wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Written into result files.
METHOD = (
    "percentile bootstrap over pull requests, 2000 resamples; at 0 and 1 as for rates; where all resamples "
    "agree, as for a rate with one trial per pull request"
)
_RESAMPLES = 2000
#: Resamples that differ by no more than rounding are equal.
_SAME = 1e-9
#: Counts of one pull request: (part, of) once for a ratio, twice for the harmonic mean of two ratios.
Counts = tuple[int, ...]


def ratio_of(counts: Counts) -> Fraction | None:
    """Return the ratio, or the harmonic mean of two; None where the last divides by 0.

    The harmonic mean is 0 if either ratio is 0 or has nothing to divide by.
    """
    if len(counts) == 2:
        part, of = counts
        return Fraction(part, of) if of else None
    first, first_of, second, second_of = counts
    if not second_of:
        return None
    if not (first and second and first_of):
        return Fraction(0)
    return Fraction(2 * first * second, first * second_of + second * first_of)


def ratio_interval(clusters: Sequence[Counts]) -> Interval | None:
    """Return the interval of the ratio of the sums; None without a ratio."""
    totals = tuple(map(sum, zip(*clusters, strict=True)))
    at = ratio_of(totals)
    if at is None:
        return None
    chance = random.Random(0)
    drawn = []
    for _ in range(_RESAMPLES):
        sums = tuple(map(sum, zip(*chance.choices(clusters, k=len(clusters)), strict=True)))
        found = _quick(sums)
        if found is not None:
            drawn.append(found)
    return _percentiles(drawn, float(at), sum(1 for counts in clusters if any(counts[1::2])))


def mean_interval(values: Sequence[Fraction]) -> Interval:
    """Return the interval of the mean of the pull requests' own values (at least one), each in [0, 1]."""
    at = float(sum(values, Fraction(0)) / len(values))
    if len(values) < 2 or at in (0.0, 1.0):
        return wilson(at, len(values))
    floats = [float(value) for value in values]
    chance = random.Random(0)
    drawn = [sum(chance.choices(floats, k=len(floats))) / len(floats) for _ in range(_RESAMPLES)]
    return _percentiles(drawn, at, len(values))


def _quick(counts: Counts) -> float | None:
    """`ratio_of` in floating point: two thousand exact ones take a second."""
    if len(counts) == 2:
        return counts[0] / counts[1] if counts[1] else None
    first, first_of, second, second_of = counts
    if not second_of:
        return None
    if not (first and second and first_of):
        return 0.0
    return 2 * first * second / (first * second_of + second * first_of)


def _percentiles(drawn: list[float], at: float, size: int) -> Interval:
    """``size`` is the number of pull requests that say anything."""
    drawn.sort()
    if drawn[-1] - drawn[0] <= _SAME:
        # One pull request, or several alike: no spread to learn from, and no certainty either.
        return wilson(at, size)
    cut = (1 - LEVEL) / 2
    low, high = drawn[int(cut * len(drawn))], drawn[min(int((1 - cut) * len(drawn)), len(drawn) - 1)]
    return Interval(min(low, at), max(high, at))
