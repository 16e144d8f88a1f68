"""Runs made of verdicts, for the tests of scores, gates and comparisons."""

from __future__ import annotations

from typing import Any

from support.records import run_record

from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.statistics.results import Results

LETTERS = {
    "p": Status.PASSED,
    "m": Status.MISSED,
    "r": Status.REVIEWER_ERROR,
    "a": Status.AGENT_ERROR,
    "i": Status.INFRA_ERROR,
    "t": Status.TAMPERED,
    "v": Status.INVALID,
    # Of a reviewer that said itself that something else failed.
    "o": Status.INFRA_ERROR,
}


def verdict(
    instance: str, check: str = "c1", status: Status | str = "p", *, repeat: int = 1, **changes: Any
) -> Verdict:
    facets = {"kind": "behavioral", "category": "Robustness", **changes.pop("facets", {})}
    return Verdict(
        dataset="demo",
        instance=instance,
        check=check,
        repeat=repeat,
        arm=changes.pop("arm", "review"),
        status=LETTERS.get(str(status)) or Status(status),
        reason=changes.pop("reason", ""),
        facets=facets,
        cause=changes.pop("cause", "reviewer-outside" if status == "o" else ""),
        check_digest=changes.pop("check_digest", f"digest of {instance} {check}"),
        **changes,
    )


def run(statuses: str, **changes: Any) -> list[Verdict]:
    """One pull request with one check per letter."""
    return [verdict(f"pr-{place:03}", "c1", letter, **changes) for place, letter in enumerate(statuses)]


def results(
    verdicts: list[Verdict], *, missing: dict[Key, dict[str, str]] | None = None, **run: Any
) -> Results:
    parts = {
        "reviewer": {"name": "tool"},
        "agent": {"name": "suggestions", "fingerprint": {"version": "1"}},
        "sandbox": {"name": "local"},
    }
    planned = {v.key: v.facets for v in verdicts}
    return Results(
        run=run_record(**{**parts, **run}), verdicts=tuple(verdicts), planned={**planned, **(missing or {})}
    )
