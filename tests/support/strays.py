"""What a run left behind: processes of this machine, containers of the engine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def processes(text: str) -> list[int]:
    """Ids of running processes whose command line or environment holds ``text``; never our own."""
    wanted, found = text.encode(), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
            data = (entry / "cmdline").read_bytes().replace(b"\0", b" ") + (entry / "environ").read_bytes()
        except OSError:
            continue
        if state != b"Z" and wanted in data:
            found.append(int(entry.name))
    return found


def containers(session: str) -> list[dict[str, Any]]:
    """Containers of one session, running or not."""
    import docker

    client = docker.APIClient(version="auto")
    try:
        return list(client.containers(all=True, filters={"label": f"crbench.session={session}"}))
    finally:
        client.close()


def until(condition: Callable[[], Any], seconds: float = 90.0, every: float = 0.1) -> Any:
    """Wait until ``condition()``, asked ``every`` so many seconds, is true; return what it gave."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"{condition} did not come true within {seconds} s"
        time.sleep(every)
