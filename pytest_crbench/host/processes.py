"""Running a host program within bounds (time, output, all that it started), and whose process something is.

Programs get their own session (process group). What they start carries a marker variable, so that a child
that left the group (``setsid``) is found and killed too, as far as the system shows environments (Linux).
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..core.enclosure import Completed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: The kernel's PF_EXITING among a process's flags (field 9 of /proc/PID/stat).
_EXITING = 0x4


def own_token() -> str:
    """Return ``host:pid:start`` of this process; the start time guards against reused process ids."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{started_at(pid)}"


def is_gone(token: str) -> bool:
    """Whether the process that ``token`` names is known to have ended.

    Another machine's process cannot be seen from here and counts as alive; so does a malformed token.
    """
    host, _, rest = token.rpartition(":")[0].rpartition(":")
    start = token.rpartition(":")[2]
    if host != _host() or not rest.isdigit():
        return False
    pid = int(rest)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    current = started_at(pid)
    return start not in ("", "0") and current not in ("0", start)


def is_elsewhere(token: str) -> bool:
    """Whether the token names another machine's process, or nothing that can be looked up here."""
    return token.rpartition(":")[0].rpartition(":")[0] != _host()


def _host() -> str:
    return socket.gethostname().replace(":", "-")


def started_at(pid: int) -> str:
    """Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat), "0" if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "0"
    fields = stat.rpartition(b")")[2].split()
    # A zombie has ended, and nobody has collected it yet. One on its way out has closed its pipes before it
    # becomes a zombie: who learns of its end by them looks in between.
    return "ended" if fields[0] == b"Z" or int(fields[6]) & _EXITING else fields[19].decode()


#: Every process that we start, and its children, carry this variable: the session's token, and our own.
#: Programs under test see them: their names say nothing of a benchmark.
SESSION_VARIABLE = "TASK_SESSION"
_RUN_VARIABLE = "TASK_PROCESS"
#: Which process of ours started it: when that one is gone, nobody waits for what it started.
_OWNER_VARIABLE = "TASK_OWNER"
_GRACE = 2.0
#: Bytes by which a captured tail may be too long before it is cut.
_SLACK = 1024 * 1024
#: How often we look for processes to kill, and how often without success where one is between two programs.
_ROUNDS, _PATIENT = 12, 4
#: Why a program did not start that says nothing of the program: machine or limits are exhausted.
EXHAUSTED = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE})


class _Capture:
    """Drains a pipe in a thread, keeping at most ``limit`` bytes: the head and the tail.

    Two buffers, not a list of what came: half a million small pieces would leave the heap in pieces as well.
    """

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.half = max(limit // 2, 1)
        self.head = bytearray()
        self.tail = bytearray()
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
            room = max(self.half - len(self.head), 0)
            self.head += chunk[:room]
            self.tail += chunk[room:]
            if len(self.tail) > self.half + _SLACK:
                self._trim()

    def _trim(self) -> None:
        gone = max(len(self.tail) - self.half, 0)
        del self.tail[:gone]
        self.dropped += gone

    def finish(self, patience: float) -> bytes:
        self.thread.join(patience)
        if not self.thread.is_alive():
            self.stream.close()
        self._trim()
        gap = b"\n[... %d bytes left out ...]\n" % self.dropped if self.dropped else b""
        return b"".join((self.head, gap, self.tail))


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
    killed = clean = 0
    others: set[int] = set()
    for _ in range(_ROUNDS):
        found, between = [], False
        for pid in _pids() - others:
            environment = _environment(pid)
            if environment and wanted(environment.split(b"\0")):
                found.append(pid)
            elif not environment and _is_between_programs(pid):
                between = True
            else:
                others.add(pid)
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        # Once more after nothing was found: a process may have forked behind our back, and ended.
        clean = 0 if found else clean + 1
        if clean > (_PATIENT if between else 1):
            break
        time.sleep(0.005)
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


def _pids() -> set[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208  (many, and often)
    except OSError:
        return set()
    return {int(name) for name in names if name.isdigit()} - {os.getpid()}


def _environment(pid: int) -> bytes:
    """Return a process's environment; empty for a zombie, a kernel thread, and one of another user."""
    try:
        descriptor = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, 1 << 17):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_between_programs(pid: int) -> bool:
    """Whether a process that runs has no environment: so it is while it starts another program (exec)."""
    try:
        # Kernel threads and zombies have no program, and those of other users do not show theirs.
        return pid != 1 and bool(os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115
    except OSError:
        return False
