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


#: Failures for reasons outside the tool under test: ``--crbench-rerun-errors`` repeats these.
OUTSIDE_FAILURES = frozenset({Status.INFRA_ERROR, Status.AGENT_ERROR})
