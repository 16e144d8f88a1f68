"""Whose a sandbox or a program is: a token that tells, on the same machine, whether its owner still lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path

#: The kernel's PF_EXITING among a process's flags (field 9 of /proc/PID/stat).
_EXITING = 0x4


def own_token() -> str:
    """Return ``host:pid:start`` of this process; the start time guards against reused process ids."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{_started(pid)}"


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
    current = _started(pid)
    return start not in ("", "0") and current not in ("0", start)


def is_elsewhere(token: str) -> bool:
    """Whether the token names another machine's process, or nothing that can be looked up here."""
    return token.rpartition(":")[0].rpartition(":")[0] != _host()


def _host() -> str:
    return socket.gethostname().replace(":", "-")


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat), "0" if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "0"
    fields = stat.rpartition(b")")[2].split()
    # A zombie has ended, and nobody has collected it yet. One on its way out has closed its pipes before it
    # becomes a zombie: who learns of its end by them looks in between.
    return "ended" if fields[0] == b"Z" or int(fields[6]) & _EXITING else fields[19].decode()
