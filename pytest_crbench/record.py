"""The record of how a run is made: the ``run`` object of its result file."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from typing import TYPE_CHECKING, Any

from . import __version__
from .core import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .agents.protocol import Agent
    from .core.model import Dataset, Verdict
    from .reviewers.protocol import Reviewer
    from .settings import Settings


def run_record(
    settings: Settings,
    datasets: Iterable[Dataset],
    reviewer: Reviewer,
    agent: Agent,
    sandbox: Mapping[str, Any],
) -> dict[str, Any]:
    """Return all that a reader must know to trust or repeat a run, as plain JSON (docs/results-format.md)."""
    return {
        "started": now(),
        "crbench": __version__,
        "reviewer": {
            "name": reviewer.name,
            "spec": settings.reviewer,
            "version": settings.reviewer_version,
            "fingerprint": dict(reviewer.fingerprint),
        },
        "agent": {"name": agent.name, "fingerprint": dict(agent.fingerprint)},
        "sandbox": dict(sandbox),
        "datasets": [_dataset(dataset) for dataset in datasets],
        "repeats": settings.repeats,
        "options": settings.recorded(),
        "python": platform.python_version(),
        "platform": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
        "git": _git(),
    }


def _dataset(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "title": dataset.title,
        "notice": dataset.notice,
        "digest": dataset.digest,
        "instances": len(dataset.instances),
        "checks": sum(len(instance.checks) for instance in dataset.instances),
    }


def _git() -> dict[str, Any] | None:
    """Revision of the repository that the run was started in, and whether it is changed; None if none."""

    def ask(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=10, check=True, errors="replace"
        )
        return done.stdout.strip()

    try:
        return {"revision": ask("rev-parse", "HEAD"), "dirty": bool(ask("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def reviewed_by(recorded: Mapping[str, Any], verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Return the recorded reviewer, or the one that the reviews name where a vendor's fixture replaced it.

    The controller of a distributed run never sees the fixture; the reviews say who made them.
    """
    names = {str(v.review["reviewer"]) for v in verdicts if v.review.get("reviewer")}
    if len(names) != 1 or recorded["name"] in names:
        return dict(recorded)
    return {**recorded, "name": names.pop(), "fingerprint": {"kind": "fixture"}}


def revised_by(recorded: Mapping[str, Any], verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """Return the recorded agent, or what is known of the one that a vendor's fixture put in its place.

    The verdicts hold the digest of the fingerprint of the agent that really worked: runs of different agents
    must not look alike to a comparison.
    """
    digests = {v.keys["agent"] for v in verdicts if v.keys.get("agent")}
    if not digests or digests == {digest.of(recorded["fingerprint"])}:
        return dict(recorded)
    return {"name": "crbench_agent fixture", "fingerprint": {"kind": "fixture", "digests": sorted(digests)}}


def agent_label(agent: Mapping[str, Any]) -> str:
    """Return an agent's name for a line of text, with model and prompts where it has them."""
    fingerprint = agent.get("fingerprint") or {}
    details = [str(fingerprint["model"])] if fingerprint.get("model") else []
    if fingerprint.get("prompts"):
        details.append(f"prompts {str(fingerprint['prompts'])[:6]}")
    return f"{agent['name']} ({', '.join(details)})" if details else str(agent["name"])


def now() -> str:
    """The time in UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
