"""The doors through which files are written, and locks between processes."""

from __future__ import annotations

import errno
import json
import os
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ..core.errors import InfraError
from ..text.printable import clean
from ..text.secrets import scrubbed, scrubbed_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data``, without credentials, so that a reader sees the old content or the new, never half.

    This is the door through which files are written, and `append_line` that of those that grow.

    Raises:
        InfraError: if the disk is full or the folder cannot be written to.
    """
    write_bytes(path, scrubbed(data))


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` as it is: only what has a digest, and was looked through before that was taken.

    Raises:
        InfraError: if the disk is full or the folder cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        advice = "Free some space or choose" if error.errno in _FULL else "Choose"
        raise InfraError(
            f"cannot write {path}: {error.strerror}. {advice} another place "
            "(--crbench-run-dir, --crbench-cache); what was measured before is kept.",
            reason="disk",
        ) from error


def append_line(path: Path, line: str) -> None:
    """Append one line to a log, without credentials; any process may.

    Raises:
        OSError: if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", errors="replace") as stream:
        stream.write(scrubbed(line) + "\n")


def write_json(path: Path, value: Any) -> None:
    """Write a plain value as indented UTF-8 JSON, atomically and without credentials.

    Raises:
        InfraError: if the file cannot be written.
    """
    # In the values: a credential of digits could stand in a number.
    write_bytes(path, (json_text(scrubbed_value(value)) + "\n").encode())


def json_text(value: Any) -> str:
    """Return a plain value as JSON that any reader takes, indented by one."""
    return clean(json.dumps(value, indent=1, ensure_ascii=False))


@contextmanager
def locked(path: Path, *, log: Callable[[str], None], what: str) -> Iterator[None]:
    """Hold a lock between processes; the system frees it when its holder dies. Logs when it had to wait.

    Raises:
        InfraError: if the lock file cannot be made.
    """
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log(f"{what}: waiting for another worker")
            began = time.monotonic()
            lock.acquire()
            log(f"{what}: waited {time.monotonic() - began:.1f} s for another worker")
    except OSError as error:
        advice = "Remove it: a lock is a file" if path.is_dir() else "Make its folder writable, or free space"
        raise InfraError(f"cannot lock {path}: {error.strerror}. {advice}.", reason="disk") from error
    try:
        yield
    finally:
        lock.release()
