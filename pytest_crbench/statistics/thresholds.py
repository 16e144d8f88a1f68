"""The thresholds of a gate as the user writes them: ``[METRIC][@FACET=VALUE]:RATE``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ..core.errors import UsageError
from ..core.scoring import METRICS, metrics_of_scorings, owner_of, scoring_of
from ..text.printable import printable
from .agreement import PULL_REQUEST_FACETS
from .paired import FALSE_ALARMS

Direction = Literal["under", "over"]

_NUMBER = re.compile(r"(\d{1,9}(?:\.\d{0,60})?|\.\d{1,60})(\s*%)?", re.ASCII)


@dataclass(frozen=True)
class Threshold:
    """The gate fails if ``metric`` of a facet's value ("" for all checks) is under, or over, ``bound``."""

    metric: str
    facet: str
    value: str
    bound: Fraction
    direction: Direction
    #: The bound as the user wrote it, for messages.
    text: str

    @property
    def label(self) -> str:
        """Short name in the verdict line: ``overall``, ``category=Security``, ``macro kind=structural``."""
        place = f"{self.facet}={self.value}" if self.facet else ""
        if self.metric == "pass_rate":
            return place or "overall"
        return f"{self.metric} {place}".rstrip()

    def holds(self, value: Fraction) -> bool:
        """Whether ``value`` satisfies the threshold; exact, and equal is good enough."""
        return value >= self.bound if self.direction == "under" else value <= self.bound


@dataclass(frozen=True)
class Tolerance:
    """When a run counts as regressed: by the paired test at a rate of false alarms, or by a drop alone."""

    #: The most often that a run which is no worse may fail; None: ``drop`` decides.
    false_alarms: Fraction | None
    #: The drop of the pass rate that is still tolerated.
    drop: Fraction = Fraction(0)


def parse_tolerance(text: str, option: str) -> Tolerance:
    """Read "" (the paired test at 5 %), ``p:0.01`` (the same at 1 %) or a tolerated drop such as ``0.1``.

    Raises:
        UsageError: neither; or a rate of false alarms at which the test never fails, or means nothing.
    """
    found = text.strip()
    if not found:
        return Tolerance(FALSE_ALARMS)
    if not found.startswith("p:"):
        return Tolerance(None, parse_share(found, option))
    alarms = parse_share(found[2:], option)
    if not 0 < alarms < Fraction(1, 2):
        raise UsageError(
            f"{printable(option, 200)}: expected a rate of false alarms above 0 and below 0.5, as in p:0.05"
        )
    return Tolerance(alarms)


def parse_threshold(text: str, direction: Direction = "under", prefix: str = "--crbench-") -> Threshold:
    """Read ``0.30``, ``30%``, ``@category=Security:0.5``, ``macro@kind=structural:0.1``.

    Split at the last colon, so that a facet's value may hold one. ``prefix`` is that of the option, for
    messages.

    Raises:
        UsageError: unknown metric, a facet without a value, or a number that cannot be met.
    """
    option = f"{prefix}fail-{direction}={printable(text, 120)}"
    left, colon, right = text.rpartition(":")
    if not colon and ("@" in text or text.strip() in _known()):
        raise UsageError(f"{option}: no threshold; write {printable(text, 120)}:NUMBER")
    name, at, place = left.partition("@")
    metric = name.strip() or "pass_rate"
    if metric not in _known():
        known = "; ".join(f"{key} ({what})" for key, what in (_known()).items())
        raise UsageError(f"{option}: unknown metric {printable(metric, 60)!r}. Known: {known}.")
    facet, equals, value = (part.strip() for part in place.partition("="))
    if at and not (facet and equals and value):
        raise UsageError(
            f"{option}: {printable(place, 60)!r} names no facet value; write METRIC@FACET=VALUE:NUMBER, "
            "as in @category=Security:0.5"
        )
    owner = owner_of(metric)
    if facet and owner and metric != scoring_of(owner).rate and facet not in PULL_REQUEST_FACETS:
        raise UsageError(
            f"{option}: a comment without a match has no {printable(facet, 40)}, so there is no {metric} by "
            f"it; there is by {', '.join(PULL_REQUEST_FACETS)}, and there is recall@{printable(facet, 40)}=…"
        )
    rate = metric != "comments_per_pr"
    bound = parse_share(right, option) if rate else _number(right, option)
    return Threshold(metric, facet, value, bound, direction, right.strip())


def parse_share(text: str, option: str) -> Fraction:
    """Read a share from 0 to 1, or a percentage, exactly.

    Raises:
        UsageError: not a number, or outside [0, 1].
    """
    option = printable(option, 200)
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{option}: expected a share such as 0.3 or 30%, found {printable(text, 60)!r}")
    share = Fraction(found[1].rstrip(".")) / (100 if found[2] else 1)
    if share > 1:
        raise UsageError(
            f"{option}: {printable(text, 60)} is more than 1, which no rate can reach; "
            f"for per cent write {found[1]}%"
        )
    return share


def _number(text: str, option: str) -> Fraction:
    option = printable(option, 200)
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2]:
        raise UsageError(f"{option}: expected a number of comments such as 20, found {printable(text, 60)!r}")
    return Fraction(found[1].rstrip("."))


def _known() -> dict[str, str]:
    """Every metric that a threshold can name."""
    return {**METRICS, **{k: v for k, v in metrics_of_scorings().items() if k not in METRICS}}
