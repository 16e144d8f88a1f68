"""One Docker sandbox: a running container, and what is done in it through the engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..core.sandbox import ExecResult
from . import archive, transfer
from .build import PYTHON, SCRATCH, VENV, WORKDIR, remove
from .engine import ENDED, engine_errors, has_ended, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from docker import APIClient

    from ..core.model import File
    from ..core.sandbox import Limits, SandboxSettings
    from .engine import Ran
    from .image import Built

_GRACE = 2
#: Seconds after the inner time-out at which the container itself is ended.
OUTER = 10.0
_VARIABLES = {
    "PATH": f"{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": f"{SCRATCH}/home",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
}
#: Exit statuses of a command that something killed: by signal 9, lost by the engine, never told.
_KILLED = (137, 255, None)
#: The kernel's counters of a container, cgroup v2 and v1: the engine itself may not notice a kill.
MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
#: Stands in for ``timeout -k`` in images without coreutils: argv[1] is seconds, the rest the command.
_PYTHON_TIMEOUT = """\
import os, signal, subprocess, sys
child = subprocess.Popen(sys.argv[2:], start_new_session=True)
try:
    code = child.wait(float(sys.argv[1]))
except subprocess.TimeoutExpired:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    code = 124
sys.exit(128 - code if code < 0 else code)
"""


def memory_kills(counters: bytes) -> int:
    """Read how often the memory limit killed something from the text of `MEMORY_EVENTS`."""
    return next((int(n) for n in re.findall(rb"^oom_kill (\d+)$", counters, re.M)), 0)


class DockerSandbox:
    """One container holding a writable copy of a tree."""

    workdir = WORKDIR
    scratch = SCRATCH
    python = PYTHON

    def __init__(
        self,
        client: APIClient,
        container: str,
        built: Built,
        limits: Limits,
        settings: SandboxSettings,
    ) -> None:
        self.client = client
        self._container = container
        self._built = built
        self._limits = limits
        self._settings = settings
        self._memory_kills = 0
        self._exported = False
        self._closed = False

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a command; ``timeout`` ends it from inside, a later deadline ends the whole container.

        After a time-out the container is restarted: all that ran is dead, the files stay.

        Raises:
            InfraError: if the sandbox is gone.
        """
        self._must_be_open()
        variables = [f"{name}={value}" for name, value in {**_VARIABLES, **(env or {})}.items()]
        whole = ["env", "-i", *variables, *self._bounded(timeout), *argv]
        ran = self._run(whole, timeout + _GRACE + OUTER, cwd or self.workdir)
        timed_out = ran.late or (ran.returncode in (124, 137) and ran.duration >= timeout)
        if timed_out:
            self._restart()
        oom = not timed_out and ran.returncode != 0 and self._explain(ran.returncode)
        return ExecResult(
            returncode=None if timed_out or oom else ran.returncode,
            stdout=ran.stdout,
            stderr=ran.stderr,
            timed_out=timed_out,
            oom_killed=oom,
            truncated=ran.truncated,
            duration=ran.duration,
        )

    def put(self, files: Iterable[File], destination: str) -> None:
        """Write files below ``destination``, in one archive.

        Raises:
            InfraError: if the sandbox is gone or its disk is full.
            ValueError: if a path leaves ``destination``.
        """
        self._must_be_open()
        self._must_run()
        data = archive.pack(files, destination, self._built.uid, keep=[self.workdir, self.scratch, "/tmp"])
        with engine_errors(f"writing files to {destination}"):
            self.client.put_archive(self._container, "/", data)

    def get(self, path: str, limit: int = 16 * 1024**2) -> bytes:
        """Read one regular file (the engine finds it only if its name is UTF-8; `export` copies any).

        Raises:
            FileNotFoundError: if there is none; a link, folder or special file does not count, nor does
                anything else that makes a working engine fail at this path.
            InfraError: ``too-large`` if it is longer than ``limit`` bytes; if the sandbox is gone.
        """
        self._must_be_open()
        # The engine reads from an ended container, too; what a killed program left is no result.
        self._must_run()
        try:
            return self._read(path, limit)
        except InfraError as error:
            if error.reason == "too-large":
                raise
        # A program can put there what an engine answers with a 500 (a loop of links, a file for a folder),
        # or change the file while it is read. Once nothing runs, only the former is still there.
        self._restart()
        self._must_run()
        try:
            return self._read(path, limit)
        except InfraError as error:
            if error.reason != "engine" or not self._reads_elsewhere():
                raise
            raise FileNotFoundError(f"{path} cannot be read: {error}") from error

    def _reads_elsewhere(self) -> bool:
        """Whether the engine reads what no program in the sandbox can change."""
        answer = transfer.ask(self.client, self._container, "/")
        if answer is not None:
            answer[0].close()
        return answer is not None

    def _read(self, path: str, limit: int) -> bytes:
        chunks, said = self._stream(path)
        try:
            if transfer.is_special(said):
                raise FileNotFoundError(f"{path} is not a regular file")
            if said["size"] > limit:
                raise InfraError(
                    f"{path} in the sandbox has {said['size']} bytes, more than {limit}", reason="too-large"
                )
            with engine_errors(f"reading {path}"):
                data = archive.only_file(archive.read_stream(iter(chunks), limit + 1024**2))
        finally:
            chunks.close()
        if data is None:
            raise FileNotFoundError(f"{path} is not a regular file")
        return data

    def export(self, destination: Path, limit: int = 1024**3) -> None:
        """Stop everything that runs, then copy the tree to the host.

        Raises:
            InfraError: if the tree is larger than ``limit`` bytes, or the sandbox is gone.
        """
        self._must_be_open()
        self._must_run()
        self._exported = True
        self._restart()
        # Not part of the result; what cannot be removed is skipped while unpacking.
        self._run(["rm", "-rf", f"{self.workdir}/.git"], OUTER * 6, "/")
        try:
            chunks, _said = self._stream(self.workdir)
        except FileNotFoundError as error:
            raise InfraError(f"the sandbox has no {self.workdir} any more", reason="sandbox-gone") from error
        try:
            with engine_errors("copying the tree out of the sandbox"):
                archive.unpack(archive.read_stream(iter(chunks), 4 * limit + 1024**2), destination, limit)
        finally:
            chunks.close()

    def close(self) -> None:
        """Remove the container; may be called twice."""
        if not self._closed:
            self._closed = True
            remove(self.client, self._container, self._settings.log)

    def _stream(self, path: str) -> tuple[Any, dict[str, Any]]:
        """Ask for a file or folder as a tar that arrives in chunks, and what the engine says of it.

        Raises:
            FileNotFoundError: if there is none.
            InfraError: if the sandbox is gone.
        """
        answer = transfer.ask(self.client, self._container, path)
        if answer is None:
            # 404 is a missing file, a missing container, or one that is being removed.
            self._must_run()
            raise FileNotFoundError(path)
        return answer

    def _bounded(self, timeout: float) -> list[str]:
        if self._built.has_timeout:
            return ["timeout", "-k", str(_GRACE), f"{max(timeout, 0.001):.3f}"]
        return [self.python, "-I", "-c", _PYTHON_TIMEOUT, f"{timeout:.3f}"]

    def _run(self, argv: list[str], deadline: float, cwd: str) -> Ran:
        return run(
            self.client,
            self._container,
            argv,
            deadline=deadline,
            output=self._limits.output,
            user=f"{self._built.uid}:{self._built.uid}",
            cwd=cwd,
        )

    def _restart(self) -> None:
        # Never kill by process id from inside: a child with its own session is not found that way.
        with engine_errors("ending what runs in the sandbox"):
            self.client.restart(self._container, timeout=0)
        self._memory_kills = 0

    def _explain(self, returncode: int | None) -> bool:
        """Whether the memory limit killed the command; a container that died meanwhile is an error.

        Raises:
            InfraError: if the container does not run any more.
        """
        self._must_run()
        if returncode not in _KILLED:
            return False
        counted = self._run(["cat", *MEMORY_EVENTS], OUTER, "/")
        if counted.returncode not in (0, 1):  # 1: only one of the files is there
            if has_ended(self.client, self._container):
                raise InfraError(ENDED, reason="sandbox-gone")
            # The command has used up all processes, so that nothing else starts: its own doing.
            self._restart()
            return False
        if returncode is None:
            raise InfraError(ENDED, reason="sandbox-gone")
        kills = memory_kills(counted.stdout)
        before, self._memory_kills = self._memory_kills, kills
        return kills > before

    def _must_run(self) -> None:
        with engine_errors("looking at the sandbox"):
            state = self.client.inspect_container(self._container)["State"]
        if not state["Running"] or state.get("Dead"):
            raise InfraError(ENDED, reason="sandbox-gone")

    def _must_be_open(self) -> None:
        if self._closed or self._exported:
            raise InfraError("this sandbox has ended; open a new one", reason="sandbox-gone")
