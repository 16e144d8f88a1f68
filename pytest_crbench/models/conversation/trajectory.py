"""The record of one conversation: a JSON file, rewritten after every step."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...host.files import write_json
from ...text.secrets import scrub_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..usage import Usage

_FORMAT = "crbench-trajectory-1"


@dataclass
class Trajectory:
    """Messages, usage, times and the reason for the stop; holds no credential (scrubbed by value)."""

    directory: Path
    agent: Mapping[str, Any]
    secrets: tuple[str, ...]
    messages: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.time)
    name: str = "trajectory.json"

    def step(self, *, usage: Usage, finish_reason: str, model: float, lost: float) -> None:
        """Note one answer of the model: its usage, seconds until it came, seconds lost to failures."""
        self.steps.append(
            {
                "usage": usage.as_dict(),
                "finish_reason": finish_reason,
                "seconds": {"model": round(model, 3), "lost": round(lost, 3)},
            }
        )

    def command(self, seconds: float) -> None:
        """Add the seconds of a command to the step that asked for it."""
        times = self.steps[-1]["seconds"]
        times["commands"] = round(times.get("commands", 0.0) + seconds, 3)

    def save(self, usage: Mapping[str, float], stop_reason: str | None, error: str | None = None) -> None:
        """Write the file atomically.

        Raises:
            InfraError: if the disk is full or the folder cannot be written to.
        """
        record = {
            "format": _FORMAT,
            "agent": dict(self.agent),
            "stop_reason": stop_reason,
            "error": error,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began)),
            "seconds": round(time.time() - self.began, 3),
            "usage": dict(usage),
            "steps": _plain(self.steps),
            "messages": _plain(self.messages),
        }
        write_json(self.directory / self.name, scrub_value(record, self.secrets))


def _plain(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(item) for item in items]
