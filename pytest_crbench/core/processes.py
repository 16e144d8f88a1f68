"""Running a host program within bounds: time, output, and everything that it started.

Programs get their own session (process group). What they start carries a marker variable, so that a child
that left the group (``setsid``) is found and killed too, as far as the system shows environments (Linux).
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
import time
import uuid
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .owner import is_gone, own_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Every process that we start, and its children, carry this variable: the session's token, and our own.
#: Programs under test see them: their names say nothing of a benchmark.
SESSION_VARIABLE = "TASK_SESSION"
_RUN_VARIABLE = "TASK_PROCESS"
#: Which process of ours started it: when that one is gone, nobody waits for what it started.
_OWNER_VARIABLE = "TASK_OWNER"
_GRACE = 2.0
#: Why a program did not start that says nothing of the program: machine or limits are exhausted.
EXHAUSTED = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE})


@dataclass(frozen=True)
class Completed:
    """What a program did; ``returncode`` is None when we killed it. Output keeps its head and tail."""

    returncode: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    duration: float
    #: Processes that it had started and that still ran when it ended.
    left: int = 0


class _Capture:
    """Drains a pipe in a thread, keeping at most ``limit`` bytes: the head and the tail."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.half = max(limit // 2, 1)
        self.head = b""
        self.tail: deque[bytes] = deque()
        self.kept = 0
        self.dropped = 0
        self.stream = stream
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        descriptor = self.stream.fileno()
        while True:
            try:
                chunk = os.read(descriptor, 65536)
            except OSError:
                break
            if not chunk:
                break
            room = self.half - len(self.head)
            if room > 0:
                self.head += chunk[:room]
                chunk = chunk[room:]
            if chunk:
                self.tail.append(chunk)
                self.kept += len(chunk)
                while self.kept - len(self.tail[0]) >= self.half:
                    gone = self.tail.popleft()
                    self.kept -= len(gone)
                    self.dropped += len(gone)

    def finish(self, patience: float) -> bytes:
        self.thread.join(patience)
        if not self.thread.is_alive():
            self.stream.close()
        tail = b"".join(list(self.tail))
        dropped = self.dropped
        if len(tail) > self.half:
            dropped += len(tail) - self.half
            tail = tail[-self.half :]
        self.dropped = dropped
        gap = b"\n[... %d bytes left out ...]\n" % dropped if dropped else b""
        return self.head + gap + tail


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    output_limit: int = 1024 * 1024,
    input: bytes | None = None,
    descriptors: Sequence[int] = (),
) -> Completed:
    """Run ``argv`` in a session of its own; when it ends or its time is up, all it started is killed.

    Args:
        argv: program and arguments; no shell.
        cwd: working folder.
        env: the whole environment of the program.
        timeout: seconds.
        output_limit: bytes kept of each stream.
        input: bytes for standard input (default: none, an empty stream).
        descriptors: open files that the program inherits, under their numbers.

    Raises:
        OSError: if the program cannot be started.
    """
    marker = uuid.uuid4().hex
    began = time.monotonic()
    process = subprocess.Popen(
        list(argv),
        cwd=cwd,
        env={**env, _RUN_VARIABLE: marker, _OWNER_VARIABLE: own_token(), **_session()},
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=tuple(descriptors),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Capture(process.stdout, output_limit), _Capture(process.stderr, output_limit)
    if input is not None:
        assert process.stdin is not None
        threading.Thread(target=_feed, args=(process.stdin, input), daemon=True).start()
    timed_out = False
    try:
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            _signal_group(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
    finally:
        # Counted before the whole group is ended, with those in it that hide their environment.
        left = kill_marked(_RUN_VARIABLE, marker)
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
    # A grandchild that kept our pipe is dead by now; the wait only covers what the system still drains.
    stdout, stderr = out.finish(_GRACE), err.finish(_GRACE)
    return Completed(
        returncode=None if timed_out else process.returncode,
        stdout=stdout,
        stderr=stderr,
        timed_out=timed_out,
        truncated=bool(out.dropped or err.dropped),
        duration=time.monotonic() - began,
        left=left,
    )


def kill_marked(variable: str, value: str) -> int:
    """Kill every process of this machine whose environment holds ``variable=value``; how many.

    Does nothing where the system has no ``/proc``. Never kills the caller.
    """
    wanted = f"{variable}={value}".encode()
    return _kill(lambda environment: wanted in environment)


def kill_orphans() -> int:
    """Kill every program that `run` started in a process which has ended since (SIGKILL, a crash); how many.

    Does nothing where the system has no ``/proc``.
    """
    prefix = f"{_OWNER_VARIABLE}=".encode()
    return _kill(
        lambda environment: any(
            entry.startswith(prefix) and is_gone(os.fsdecode(entry[len(prefix) :])) for entry in environment
        )
    )


def _kill(wanted: Callable[[list[bytes]], bool]) -> int:
    killed = 0
    for _ in range(5):  # a process that forks while we look is found in the next round
        found = [pid for pid in _pids() if wanted(_environment(pid))]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        if not found:
            break
        time.sleep(0.01)
    return killed


def _session() -> dict[str, str]:
    token = os.environ.get(SESSION_VARIABLE)
    return {SESSION_VARIABLE: token} if token else {}


def _feed(stream: IO[bytes], data: bytes) -> None:
    with suppress(OSError):
        stream.write(data)
    with suppress(OSError):
        stream.close()


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _pids() -> list[int]:
    proc = Path("/proc")
    if not proc.is_dir():
        return []
    own = os.getpid()
    return [int(p.name) for p in proc.iterdir() if p.name.isdigit() and int(p.name) != own]


def _environment(pid: int) -> list[bytes]:
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1]
    except OSError:
        return []
    return [] if state == [b"Z"] else data.split(b"\0")
