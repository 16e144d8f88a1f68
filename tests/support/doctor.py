"""``crbench doctor`` as a user starts it, and what it printed."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from support.benchmarks import environment

#: What a run needs of a model is not what most of these are about.
NO_MODEL = ("--agent=suggestions",)


@dataclass(frozen=True)
class Said:
    """A finished examination: exit status, output, seconds."""

    status: int
    output: str
    seconds: float

    def line(self, name: str) -> str:
        """The one line of a check."""
        found = [line for line in self.output.splitlines() if line[9:].startswith(f"{name} ")]
        assert len(found) == 1, self.output
        return found[0]

    def level(self, name: str) -> str:
        """``ok``, ``warning`` or ``missing``."""
        return self.line(name).split()[0]


def doctor(folder: Path, *arguments: str, before: tuple[str, ...] = (), **env: str | None) -> Said:
    """Run it in ``folder``; ``before`` stands before the command, None unsets a variable."""
    values = {**environment(), **{k: v for k, v in env.items() if v is not None}}
    for name in (n for n, v in env.items() if v is None):
        values.pop(name, None)
    began = time.monotonic()
    done = subprocess.run(
        [*before, sys.executable, "-m", "pytest_crbench.cli", "doctor", *arguments],
        cwd=folder, env=values, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout, done.stdout
    return Said(done.returncode, done.stdout, time.monotonic() - began)
