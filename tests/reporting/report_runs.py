"""A run like that of the design, for the tests of reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.records import review_record, run_record

from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.statistics.results import Results

#: Statuses of the checks of each pull request, p and m; one letter per check.
OUTCOMES = "p m mm pm m m p mpm p m m p m mm p m m mmm m p m m p mm m mp m m p pm"


def verdicts() -> list[Verdict]:
    """40 checks of 30 pull requests, 12 of them passed."""
    found = []
    for place, letters in enumerate(OUTCOMES.split()):
        for number, letter in enumerate(letters):
            found.append(_verdict(place, number, letter))
    return found


def _verdict(place: int, number: int, letter: str) -> Verdict:
    structural = (place + number) % 3 == 0
    return Verdict(
        dataset="releases",
        instance=f"package-{place:02}",
        check=f"check-{number}",
        status=Status.PASSED if letter == "p" else Status.MISSED,
        reason="" if letter == "p" else "AssertionError: still there",
        facets={
            "kind": "structural" if structural else "behavioral",
            "category": ("Robustness", "Compatibility", "Design")[place % 3],
            "language": "Python",
            "repo": f"package-{place:02}",
        },
        check_digest=f"{place:02}{number}" * 8,
        keys={"tests": "t" * 64},
        environment="e" * 64,
        sandbox="docker",
        durations={"tests": 1.9},
        review=review_record(
            "releases",
            f"package-{place:02}",
            reviewer="cmd:mytool",
            comments=7 + place % 2,
            outside_diff=int(place % 10 == 0),
            duplicates=int(place in (3, 4)),
            keys={"review": "r" * 64, "revision": "v" * 64},
            stop_reason="finished",
            durations={"review": 41.0 + place, "revision": 96.0},
            usage={
                "revision": {"prompt_tokens": 39_000, "completion_tokens": 1_000, "cost": 0.137, "calls": 9}
            },
        ),
        log=f"logs/releases/package-{place:02}.log",
    )


def broken(one: Verdict, status: Status, reason: str) -> Verdict:
    return replace(one, status=status, reason=reason)


def run_of(
    found: list[Verdict], *, planned: dict[Key, dict[str, str]] | None = None, **changes: Any
) -> Results:
    run = {
        "name": "2026-12-01T0931-a1b2",
        "started": "2026-12-01T09:31:00Z",
        "finished": "2026-12-01T09:58:00Z",
        "interrupted": False,
        "reviewer": {"name": "cmd:mytool", "fingerprint": {"command": ["mytool"]}},
        "agent": {"name": "llm", "fingerprint": {"model": "m", "prompts": "3f9a1c"}},
        "sandbox": {"name": "docker"},
        "datasets": [
            {
                "name": "releases",
                "title": "Releases",
                "notice": "differences between two releases, with comments in our own words.",
                "digest": "d" * 64,
                "instances": 30,
                "checks": 44,
            }
        ],
        "repeats": 1,
        "options": {"fail_under": ["0.25"]},
        "python": "3.11.2",
        "platform": {"system": "Linux"},
        **changes,
    }
    facets = {v.key: dict(v.facets) for v in found}
    return Results(run=run_record(**run), verdicts=tuple(found), planned={**facets, **(planned or {})})
