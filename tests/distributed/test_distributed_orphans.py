"""Programs whose starter was killed are ended by whoever looks next; those of a living one go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from support.benchmarks import environment
from support.strays import processes, until

from pytest_crbench.host.processes import kill_orphans

STARTER = """
import os, sys
from pathlib import Path
from pytest_crbench.host.processes import run
naps = f"setsid sleep {sys.argv[1]} & sleep {sys.argv[1]}"
run(["sh", "-c", naps], cwd=Path("/"), env=dict(os.environ), timeout=600)
"""


def test_orphans_end_and_others_do_not() -> None:
    starters = [
        subprocess.Popen([sys.executable, "-c", STARTER, nap], env=environment())
        for nap in ("8765431", "8765432")
    ]
    dead, alive = starters
    try:
        until(lambda: len(processes("sleep 8765431")) >= 2 and len(processes("sleep 8765432")) >= 2)
        kill_orphans()
        assert len(processes("sleep 8765431")) >= 2
        dead.kill()
        # Not collected: a zombie is as gone as a process can be.
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        kill_orphans()
        until(lambda: not processes("sleep 8765431"), 5)
        assert len(processes("sleep 8765432")) >= 2
    finally:
        alive.send_signal(signal.SIGINT)
        for starter in starters:
            starter.wait(30)
    until(lambda: not processes("sleep 8765432"), 5)
