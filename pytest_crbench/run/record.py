"""The record of how a run is made: the ``run`` object of its result file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .. import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.agent import Agent
    from ..core.matching import Matcher
    from ..core.model import Dataset
    from ..core.reviewer import Reviewer
    from ..core.scoring import Decider
    from ..core.settings import Settings


def run_record(
    settings: Settings,
    datasets: Iterable[Dataset],
    reviewer: Reviewer,
    agent: Agent,
    sandbox: Mapping[str, Any],
    inputs: Mapping[str, Any],
    deciders: Iterable[Decider] = (),
) -> dict[str, Any]:
    """Return how a run is made, for readers, as plain JSON (docs/results-format.md).

    ``inputs`` is what its lock file holds: digests and versions are stated there, and compared there.
    """
    matcher = next((made.matcher for made in deciders if hasattr(made, "matcher")), None)
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
        **({} if matcher is None else {"matcher": _matcher(matcher)}),
        "datasets": [_dataset(dataset) for dataset in datasets],
        "repeats": settings.repeats,
        "options": settings.recorded(),
        "python": inputs["python"]["version"],
        "platform": inputs["platform"],
        "git": inputs["git"],
    }


def _matcher(matcher: Matcher) -> dict[str, Any]:
    fingerprint = dict(matcher.fingerprint)
    origin = getattr(matcher, "origin", None)
    threshold = {"threshold": dict(origin)} if origin else {}
    return {"name": matcher_label(fingerprint), "fingerprint": fingerprint, **threshold}


def matcher_label(fingerprint: Mapping[str, Any]) -> str:
    """Return how meanings are compared, in few words."""
    how = fingerprint.get("meaning")
    found: Mapping[str, Any] = how if isinstance(how, dict) else {}
    model = found.get("model") or found.get("embeddings")
    named = f"{found.get('meaning', '?')}"
    if isinstance(model, dict):
        details = [str(model.get("model", "?"))]
        details += [f"{found['votes']} votes"] if found.get("votes", 1) != 1 else []
        details += [f"from {found['threshold']:g}"] if "threshold" in found else []
        named += f" ({', '.join(details)})"
    return f"published AACR rules, {named}" if fingerprint.get("matcher") == "aacr-legacy" else named


def _dataset(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "title": dataset.title,
        "notice": dataset.notice,
        "digest": dataset.digest,
        "instances": len(dataset.instances),
        "checks": sum(len(instance.checks) for instance in dataset.instances),
    }


def made_by(recorded: Mapping[str, Any], lock: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``reviewer`` and ``agent`` that really worked: a vendor's fixture may have replaced them."""
    fixtures = lock.get("fixtures", {})
    return {
        part: {
            **recorded[part],
            "name": fixtures[part]["name"],
            "fingerprint": {**fixtures[part]["fingerprint"], "fixture": True},
        }
        if part in fixtures
        else dict(recorded[part])
        for part in ("reviewer", "agent")
    }


def image_of(reviewer: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``name``, ``id`` and ``network`` of the image that a reviewer runs in; empty: on the host."""
    image = (reviewer.get("fingerprint") or {}).get("image")
    return dict(image) if isinstance(image, dict) else {}


def reviewer_label(reviewer: Mapping[str, Any]) -> str:
    """Return a reviewer's name for a line of text, with its image or the model that it asks."""
    image = image_of(reviewer)
    if not image:
        return agent_label(reviewer)
    return f"{reviewer['name']} (in {image['name']}, network {'on' if image['network'] else 'off'})"


def agent_label(agent: Mapping[str, Any]) -> str:
    """Return an agent's name for a line of text, with model and prompts where it has them."""
    fingerprint = agent.get("fingerprint") or {}
    details = [str(fingerprint["model"])] if fingerprint.get("model") else []
    if fingerprint.get("program_version"):
        details.append(str(fingerprint["program_version"]))
    if fingerprint.get("prompts"):
        details.append(f"prompts {str(fingerprint['prompts'])[:6]}")
    return f"{agent['name']} ({', '.join(details)})" if details else str(agent["name"])


def now() -> str:
    """The time in UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
