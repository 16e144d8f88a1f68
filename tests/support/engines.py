"""A Docker engine of a test's own, to be stopped, killed, filled and restarted; the shared one is left alone.

It needs root. It has a network namespace of its own and its containers have no network: an engine without a
bridge takes the bridge of any other engine that it sees away. Images come from the shared engine with
`Engine.copy`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from support.strays import processes

from pytest_crbench.host.processes import is_gone, own_token

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "crbench-engine-"


class Engine:
    """One ``dockerd`` with its own socket and storage; ``url`` is what DOCKER_HOST takes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = f"unix://{root}/sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        # It ends with whoever started it, whatever became of that one.
        argv = ["setpriv", "--pdeathsig=TERM", "unshare", "--net"]
        argv += ["dockerd", f"--data-root={self.root}/data", f"--exec-root={self.root}/exec"]
        argv += [f"--pidfile={self.root}/pid", f"--host={self.url}"]
        argv += ["--bridge=none", "--iptables=false", "--ip-masq=false"]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                argv,
                # Where its containerd writes what it was doing, when it was stopped for long.
                env={**os.environ, "TMPDIR": str(self.root)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(300):
            if self.process.poll() is not None:
                break
            if self.docker("version", check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("the engine did not start: " + (self.root / "log").read_text()[-2000:])

    def stop(self, *, kill: bool = False) -> None:
        """End it as a service manager does, or as a crash does; running containers end with it or not."""
        if self.process is None:
            return
        if kill:
            self.process.kill()
            # Its containerd would live on, and the next engine could not start its own.
            pid = self.root / "exec/containerd/containerd.pid"
            with suppress(OSError, ValueError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
            # Where nobody reaps orphans it stays as a zombie, which the next engine would take for alive.
            pid.unlink(missing_ok=True)
        else:
            self.process.terminate()
        self.process.wait(60)
        self.process = None
        (self.root / "pid").unlink(missing_ok=True)

    def restart(self, *, kill: bool = False) -> None:
        """Stop and start it."""
        self.stop(kill=kill)
        self.start()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Stop its processes where they are: connections are taken, nothing is answered."""
        assert self.process is not None
        containerd = int((self.root / "exec/containerd/containerd.pid").read_text())
        stopped = [self.process.pid, containerd]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    def docker(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the docker command against this engine."""
        argv = ["docker", "-H", self.url, *args]
        return subprocess.run(argv, check=check, capture_output=True, text=True, timeout=300)

    def copy(self, *images: str) -> None:
        """Copy images of the shared engine (``DOCKER_HOST``) into this one, with their ids."""
        with subprocess.Popen(["docker", "save", *images], stdout=subprocess.PIPE) as saved:
            subprocess.run(
                ["docker", "-H", self.url, "load"], stdin=saved.stdout, check=True, capture_output=True
            )


@contextmanager
def engine(*, size: str = "4G") -> Iterator[Engine]:
    """Run an engine in a folder with a short path.

    Its storage is a file system in memory, which takes what is used of ``size``: quick, gone in one step, and
    if small (such as ``400M``) it can be filled. What is left of engines whose starter was killed goes first.
    """
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if is_gone(_owner_of(place)):
            _remove(place)
    root = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (root / "owner").write_text(own_token())
    data = root / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(data)], check=True)
    own = Engine(root)
    try:
        own.start()
        yield own
    finally:
        try:
            # Containers outlive an engine that was killed: their runtime's processes are not its children.
            if own.process is None or own.process.poll() is not None:
                own.start()
            ids = own.docker("ps", "-aq", check=False).stdout.split()
            if ids:
                own.docker("rm", "-f", *ids, check=False)
            own.stop()
        finally:
            _remove(root)


def _owner_of(root: Path) -> str:
    try:
        return (root / "owner").read_text()
    except OSError:
        return ""


def _remove(root: Path) -> None:
    """End what still runs of an engine, and take away what it had mounted, and its folder."""
    for _ in range(100):
        found = processes(str(root))
        if not found:
            break
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    # The last mounted first: it may lie in another.
    for place in reversed([place for place in mounts if place.startswith(f"{root}/")]):
        # Gone with another one, if it was lazy.
        subprocess.run(["umount", "-l", place], check=False, capture_output=True)
    shutil.rmtree(root)
