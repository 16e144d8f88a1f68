"""Faults told by two runs: one in which they happen, and the same run resumed when they are gone.

A whole pytest run takes seconds, so that faults which do not disturb one another share one: each has a pull
request of its own, and a test that looks at it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.benchmarks import Run, environment, rows_of

if TYPE_CHECKING:
    from pathlib import Path

RESUME = ("--crbench-resume", "--crbench-rerun-errors")


@dataclass(frozen=True)
class Story:
    """What two runs in one folder left; ``which`` is "first" or "again", rows are of ``results.json``."""

    folder: Path

    @property
    def vendor(self) -> Path:
        """The folder that the runs were started in."""
        place = self.folder / "vendor"
        if not place.exists():
            place.mkdir()
            (place / "pytest.ini").write_text("[pytest]\n")
        return place

    def keep(self, which: str, done: Run, **more: Any) -> None:
        """Keep what a run ended with; the next one replaces its results."""
        story = {"status": done.status, "output": done.output, **more}
        if done.runs and (done.runs[-1] / "results.json").exists():
            story["results"] = done.results()
        (self.folder / f"{which}.json").write_text(json.dumps(story))

    def told(self, which: str) -> dict[str, Any]:
        """All that `keep` kept."""
        found: dict[str, Any] = json.loads((self.folder / f"{which}.json").read_text())
        return found

    def rows(self, which: str) -> dict[str, dict[str, Any]]:
        """Result rows by the instance's id."""
        told = self.told(which)
        assert "results" in told, told["output"]
        return {row["instance"]: row for row in rows_of(told["results"])}

    def statuses(self, which: str) -> dict[str, str]:
        """Statuses by the instance's id."""
        return {name: row["status"] for name, row in self.rows(which).items()}

    @property
    def run(self) -> Path:
        """The run directory; there is only one."""
        (found,) = (self.vendor / ".crbench" / "runs").iterdir()
        return found

    def log(self, instance: str) -> str:
        """The log of an instance, of both runs."""
        return (self.run / "logs" / "small" / f"{instance}.log").read_text()


def own_cache(place: Path, shared: Path) -> Path:
    """Make a cache whose environments are those of ``shared``; what else is in it can be broken."""
    place.mkdir()
    for name in ("environments", "pins", "locks"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        (place / name).symlink_to(shared / name)
    return place


def crbench_clean(cache: Path) -> str:
    """Run ``crbench clean`` without an engine; what it said. The environments that ``cache`` shares stay."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_crbench.cli", "clean", f"--cache={cache}"],
        env={**environment(), "DOCKER_HOST": "unix:///nonexistent/docker.sock"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout
