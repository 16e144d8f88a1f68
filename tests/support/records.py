"""Records of runs that are complete."""

from __future__ import annotations

from typing import Any

from pytest_crbench.core.model import ReviewRecord
from pytest_crbench.core.run_record import Inputs, RunRecord


def review_record(dataset: str = "demo", instance: str = "pr", repeat: int = 1, **parts: Any) -> ReviewRecord:
    """What is known of a review."""
    name = f"{dataset}/{instance}/review-{repeat}"
    return ReviewRecord(id=name, dataset=dataset, instance=instance, repeat=repeat, **parts)


def run_record(**parts: Any) -> RunRecord:
    """The record of a run with these parts, as plain JSON."""
    known = {"name": "r", "started": "2026-01-01T00:00:00Z", "reviewer": {"name": "x"}}
    return RunRecord(**{**known, **parts})


def inputs(**sections: Any) -> Inputs:
    """What a run of nothing is made of, with these sections, as plain JSON."""
    program = {"name": "x", "digest": "0", "fingerprint": {}}
    tables = ("instances", "fixtures", "options", "environments", "python", "platform", "engine")
    known: dict[str, Any] = {name: {} for name in (*tables, "libraries", "tools")}
    known |= {"package": {"version": "1", "source": "0"}, "prompts": "0", "git": None}
    known |= {"reviewer": program, "agent": program, "sandbox": {"name": "local"}}
    known |= {"limits": {"memory": 1, "cpus": 1.0, "pids": 1, "test_timeout": 1.0}}
    return Inputs(**{**known, **sections})
