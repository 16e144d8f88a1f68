"""The engines of the tests themselves leave nothing behind, whatever becomes of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.benchmarks import environment
from support.engines import engine
from support.small_image import small_image
from support.strays import processes

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="an engine of its own takes root"),
]
_STARTS = """
import time
from support.engines import engine

with engine() as own:
    own.copy({image!r})
    own.docker("run", "--detach", "--network=none", {image!r}, "sleep", "600")
    print(own.root, flush=True)
    time.sleep(600)
"""


def _left(root: str) -> list[str]:
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if root in line]
    return [*mounts, *map(str, processes(root)), *map(str, Path(root).parent.glob(Path(root).name))]


def test_a_killed_test_leaves_an_engine_that_the_next_one_removes() -> None:
    tests = str(Path(__file__).parent.parent)
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTS.format(image=small_image())],
        env={**environment(), "PYTHONPATH": tests},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    root = starter.stdout.readline().strip()
    assert processes(root), "an engine with a container runs"
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    assert _left(root), "nothing is left: the test shows nothing"
    with engine() as own:
        assert _left(root) == []
        assert processes(str(own.root))
    assert _left(str(own.root)) == []
