"""Runs the suites as another package would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import Run, environment

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]


@pytest.fixture
def contract(folder: Path) -> Callable[..., Run]:
    """Runs the suite of one part in a vendor's folder, to its end."""

    def contract(part: str, *options: str, **variables: str) -> Run:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
        suites = ["--pyargs", "pytest_crbench.contracts", f"--crbench-contract={part}", "-rs"]
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [*command, *suites, *options],
            cwd=folder,
            env={**environment(), "PYTHONPATH": path, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=500,
            check=False,
        )
        return Run(done.returncode, done.stdout, folder)

    return contract
