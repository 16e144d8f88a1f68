"""The closed enumeration of what a verdict can be."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What became of one check. Only ``passed`` and ``missed`` are measurements."""

    PASSED = "passed"
    MISSED = "missed"
    REVIEWER_ERROR = "reviewer_error"
    AGENT_ERROR = "agent_error"
    INFRA_ERROR = "infra_error"
    TAMPERED = "tampered"
    INVALID = "invalid"

    @property
    def measured(self) -> bool:
        """Whether the check was measured, so that it enters the measured rate."""
        return self in (Status.PASSED, Status.MISSED)

    @property
    def in_strict(self) -> bool:
        """Whether the check is in the denominator of the strict rate (the reviewer's side)."""
        return self.measured or self in (Status.REVIEWER_ERROR, Status.TAMPERED)


#: Failures for reasons outside the tool under test.
OUTSIDE_FAILURES = frozenset({Status.INFRA_ERROR, Status.AGENT_ERROR})
#: What ``--crbench-rerun-errors`` repeats, by its value.
RERUN = {"outside": OUTSIDE_FAILURES, "all": OUTSIDE_FAILURES | {Status.REVIEWER_ERROR}}

#: Exit status of a program that says that it failed for outside reasons (EX_TEMPFAIL of sysexits.h).
OUTSIDE_EXIT = 75
#: Causes of failures that only the program under test vouches for. They are nobody's score, but the gate
#: counts them as missed: what a program says of itself must not raise its rate.
SELF_REPORTED = frozenset({"reviewer-outside", "agent-outside", "agent-endpoint"})
