"""The paired test of two runs, and the smallest difference that it could find.

The exact permutation test of Fisher (1935, The Design of Experiments, section 21) on the differences of
matched pairs. The pair is the pull request, not the check: were both runs of one reviewer, each pull
request's results could as well have come the other way round, whatever its checks have in common. With one
check per pull request this is McNemar's exact test. docs/statistics.md has the simulations.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Written into every comparison.
METHOD = "exact sign-flip test over pull requests, two-sided; repeats averaged within each check"
#: How often a gate may fail though nothing changed, unless the user says otherwise.
FALSE_ALARMS = Fraction(5, 100)
POWER = 0.8
#: Parts of a check that differences are counted in: exact for 1 to 6 repeats, also where some are missing.
_PARTS = 60


def worse(differences: Sequence[Fraction]) -> Fraction:
    """Return the one-sided p value that the second run is worse, exactly.

    Args:
        differences: per pull request the sum of second - first over its checks, each the mean of its repeats.
    """
    units = _units(differences)
    return _at_least(units, -sum(units))


def differs(differences: Sequence[Fraction]) -> Fraction:
    """Return the two-sided p value that the runs differ; ``differences`` as in `worse`."""
    units = _units(differences)
    total = abs(sum(units))
    return min(Fraction(1), 2 * _at_least(units, total)) if total else Fraction(1)


def detectable(rate: float, size: float, *, alarms: float = float(FALSE_ALARMS)) -> float | None:
    """Return the smallest difference of two rates that the paired test finds four times in five.

    By the sample size formula for McNemar's test (Miettinen 1968, Biometrics 24:339; Connor 1987, Biometrics
    43:207), one-sided. Assumes two runs with ``rate`` halfway between theirs, which pass a check
    independently of one another. Runs that mostly pass the same checks show smaller differences.

    Args:
        rate: pass rate of the run at hand.
        size: its number of checks, as many as would say the same if they were independent.
        alarms: the share of false alarms of the test.

    Returns:
        A difference in [0, 1]; None if even that between all and nothing would be missed too often.
    """
    if size <= 0:
        return None
    # Neither 0 of n nor n of n says that there is no variance.
    rate = (rate * size + 1) / (size + 2)
    low, high = 0.0, 1.0
    if not _found(high, rate, size, alarms):
        return None
    while high - low > 1e-6:
        middle = (low + high) / 2
        if _found(middle, rate, size, alarms):
            high = middle
        else:
            low = middle
    return high


def _found(difference: float, rate: float, size: float, alarms: float) -> bool:
    """Whether the test has the power for a difference, in the normal approximation."""
    middle = min(max(rate, difference / 2), 1 - difference / 2)
    better, lesser = middle + difference / 2, middle - difference / 2
    discordant = better * (1 - lesser) + lesser * (1 - better)
    quantile = NormalDist().inv_cdf
    need = quantile(1 - alarms) * math.sqrt(discordant) + quantile(POWER) * math.sqrt(
        max(discordant - difference**2, 0.0)
    )
    # Continuity: an exact test takes whole steps. Simulated, 8 to 44 checks had 62 to 75 % power without this
    # and have 79 to 82 % with it.
    return difference > 0 and difference * math.sqrt(max(size - 1 / difference, 0.0)) >= need


def _units(differences: Sequence[Fraction]) -> list[int]:
    """Differences as whole numbers. Rounded alike in both directions, so that the test stays exact."""
    units = [one for difference in differences if (one := round(difference * _PARTS))]
    common = math.gcd(*units) or 1
    return [one // common for one in units]


def _at_least(units: Sequence[int], total: int) -> Fraction:
    """Return the share of all ways to choose signs with a sum of at least ``total``.

    Counts them by the polynomial whose factors are 1 + x^abs(unit), its coefficients being fields of bits in
    one large number.
    """
    spread = sum(map(abs, units))
    field = len(units) + 2
    ways = 1
    for unit in units:
        ways += ways << (abs(unit) * field)
    # Where the units with a positive sign add up to s, all of them add up to 2 s - spread.
    least = max(-(-(total + spread) // 2), 0)
    # What remains of a division by 2^field - 1 is the sum of the fields, as casting out nines is of digits.
    return Fraction((ways >> (least * field)) % ((1 << field) - 1), 1 << len(units))
