"""Whether an owner lives is told right from the moment in which others learn of its end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pytest_crbench.host.processes import is_elsewhere, is_gone, own_token


def _token(pid: int) -> str:
    """What the process itself would give."""
    host = own_token().rsplit(":", 2)[0]
    start = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    return f"{host}:{pid}:{start}"


def test_who_sees_a_pipe_close_sees_its_owner_gone() -> None:
    """A controller learns of a worker's end by its pipe, which closes before the worker is a zombie."""
    for _ in range(20):
        ours, theirs = os.pipe()
        child = subprocess.Popen(["sleep", "600"], pass_fds=[theirs])
        os.close(theirs)
        token = _token(child.pid)
        assert not is_gone(token)
        child.kill()
        assert os.read(ours, 1) == b""
        assert is_gone(token)
        os.close(ours)
        child.wait()
        assert is_gone(token)


def test_a_process_id_in_use_again_and_tokens_that_say_nothing() -> None:
    host, pid, start = own_token().rsplit(":", 2)
    assert not is_gone(own_token())
    assert is_gone(f"{host}:{pid}:{int(start) + 1}"), "a later process has the id"
    for unknown in ("", "x", f"{host}:x:1", f"elsewhere:{pid}:1"):
        assert not is_gone(unknown), unknown
    assert is_elsewhere("elsewhere:1:1")
    assert not is_elsewhere(own_token())
