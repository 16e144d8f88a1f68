"""The conditions of a gate, and the one against a baseline: whether a paired test calls the run worse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from .compare import differing, pair_up
from .score import lowered

if TYPE_CHECKING:
    from .compare import Comparison
    from .results import Results
    from .thresholds import Tolerance

Outcome = Literal["met", "not-met", "undecided", "none"]


@dataclass(frozen=True)
class Condition:
    """One condition of the gate and what became of it; ``text`` reads in the verdict line.

    ``lost`` are the checks (dataset, instance, id) that the baseline passed and this run did not.
    """

    label: str
    outcome: Outcome
    text: str
    lost: tuple[tuple[str, str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The condition as plain JSON."""
        lost = [dict(zip(("dataset", "instance", "check"), name, strict=True)) for name in self.lost]
        return {"label": self.label, "outcome": self.outcome, "text": self.text, "lost": lost}


def shown(value: Fraction, bound: Fraction | None = None) -> str:
    """Three decimals, or as many as it takes not to look like the other side of ``bound``."""
    for digits in range(3, 16):
        text = f"{float(value):.{digits}f}"
        if bound is None or _order(Fraction(text), bound) == _order(value, bound):
            return text
    # Equal to a bound that no decimals give, as a rate may be to a baseline's.
    return f"{float(value):.3f}" if value == bound else str(value)


def _order(a: Fraction, b: Fraction) -> int:
    return (a > b) - (a < b)


def regression(
    baseline: Results, tolerated: Tolerance, min_coverage: Fraction, current: Results
) -> Condition:
    """Return whether the reviewer got worse on the checks that both runs decided.

    Args:
        baseline: the run to compare with.
        tolerated: the false alarms, or the drop, that are taken.
        min_coverage: the least share of the common checks that both must have measured.
        current: the run that is decided about.
    """
    label = "regression"
    unlike = differing(baseline, current)
    if unlike:
        return Condition(label, "undecided", f"baseline not comparable: {'; '.join(unlike)}")
    found = pair_up(baseline, replace(current, verdicts=lowered(current.verdicts)))
    overall = found.overall
    before, after, change = overall.first, overall.second, overall.change
    if before is None or after is None or change is None or found.coverage is None:
        return Condition(label, "undecided", f"baseline has no check in common{_excluded(found)}")
    text = (
        f"{shown(after, before)} against {shown(before)} of the baseline "
        f"on {overall.checks} common checks{_excluded(found)}{_of_baseline(found)}"
    )
    lost = tuple(overall.lost)
    if found.coverage < min_coverage:
        share = shown(found.coverage, min_coverage)
        return Condition(label, "undecided", f"{text}, but only {share} of them measured in both")
    alarms = tolerated.false_alarms
    sign = "" if alarms is None else f" {'<=' if overall.p_worse <= alarms else '>'} {float(alarms):g}"
    moved = f"{len(overall.lost)} lost and {len(overall.won)} won"
    text += f", {moved} (one-sided p = {overall.p_worse:.2g}{sign})"
    if alarms is not None and before > 0 and overall.p_least > alarms:
        return Condition(
            label,
            "undecided",
            f"{text}: the baseline passed checks in too few pull requests for the test to fail, even if all "
            f"were lost (p = {overall.p_least:.2g}); name a drop, as in fail-if-regressed=0.1",
        )
    regressed = -change > tolerated.drop if alarms is None else overall.p_worse <= alarms
    if not regressed:
        return Condition(label, "met", f"not regressed: {text}", lost)
    return Condition(label, "not-met", f"regressed: {text}{_lost(found)}", lost)


def _lost(found: Comparison, listed: int = 5) -> str:
    names = [f"{instance}::{check}" for _, instance, check in found.overall.lost]
    more = f" and {len(names) - listed} more" if len(names) > listed else ""
    return f": lost {', '.join(names[:listed])}{more}" if names else ""


def _of_baseline(found: Comparison) -> str:
    """How many checks the baseline has, where not all of them were compared."""
    keys = {*found.first.planned, *(verdict.key for verdict in found.first.verdicts)}
    total = len({(k.dataset, k.instance, k.check) for k in keys if k.scoring == found.scoring})
    return f" of its {total}" if total > found.overall.checks else ""


def _excluded(found: Comparison) -> str:
    if not found.changed:
        return ""
    names = [f"{key.instance}::{key.check}" for key in found.changed]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" (left out, changed since: {', '.join(names[:3])}{more})"
