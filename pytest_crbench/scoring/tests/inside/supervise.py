"""Runs in the sandbox as ``python -I supervise.py``: applies the revision, runs the test process, records.

It never imports the code under test. The test process reports through a pipe of its own; its standard
output is only kept for people to read. The product may run as the same user, so this process makes itself
opaque to others, keeps no file that tells its secrets, and seals its result.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from typing import Any

#: Exit status where the disk is full (``EX_IOERR``).
DISK_STATUS = 74
_PR_SET_DUMPABLE = 4
#: Where the kernel counts that a limit was reached, cgroup v2 and v1: the limit, the line's name, the file.
_COUNTERS = (
    ("memory", "oom_kill", "/sys/fs/cgroup/memory.events"),
    ("memory", "oom_kill", "/sys/fs/cgroup/memory/memory.oom_control"),
    ("processes", "max", "/sys/fs/cgroup/pids.events"),
    ("processes", "max", "/sys/fs/cgroup/pids/pids.events"),
)
#: A file system with less than this is full, whoever filled it.
_LEAST_SPACE = 1024 * 1024


def main() -> None:
    """Run the plan that lies beside this file, and write the sealed result."""
    here = os.path.dirname(os.path.abspath(__file__))
    # By its descriptor: the product may put a link to a small or full file system in the folder's place.
    folder = os.open(here, os.O_RDONLY | os.O_DIRECTORY)
    hide()
    with open(os.path.join(here, "plan.json"), encoding="utf-8") as stream:
        plan = json.load(stream)
    apply(plan, os.path.join(here, "changes.tar"))
    # The seal is in the one, the revision's files once more in the other: neither is for the product.
    os.unlink(os.path.join(here, "plan.json"))
    os.unlink(os.path.join(here, "changes.tar"))
    done = run(plan)
    result = json.dumps(done).encode()
    seal = hashlib.blake2b(result, key=bytes.fromhex(plan["seal"]), digest_size=32).hexdigest().encode()
    keep(folder, os.path.basename(plan["result"]), seal + b"\n" + result)
    if done["returncode"] == -signal.SIGKILL and not done["timed_out"]:
        # Whether it was for memory, the sandbox knows, and asks itself after such an end.
        sys.exit(128 + signal.SIGKILL)


def keep(folder: int, name: str, data: bytes) -> None:
    """Write a file of the folder that a descriptor names; ends with `DISK_STATUS` where its disk is full.

    The product may have put anything there, under any name, and filled any other disk.
    """
    part = name + ".part"
    try:
        try:
            os.unlink(part, dir_fd=folder)
        except FileNotFoundError:
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(part, flags, 0o644, dir_fd=folder), "wb") as stream:
            stream.write(data)
        os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as failure:
        space = os.fstatvfs(folder)
        full = space.f_bavail * space.f_frsize < _LEAST_SPACE
        print("the result cannot be written:", failure, file=sys.stderr)
        sys.exit(DISK_STATUS if full and failure.errno in (errno.ENOSPC, errno.EDQUOT) else 1)


def hide() -> None:
    """Keep memory, environment and descriptors of this process from others of the same user.

    No core dump, no ptrace, nothing below ``/proc/PID`` but for root. A program that is executed starts anew.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def apply(plan: dict[str, Any], changes: str) -> None:
    """Apply the revision to the tree: the deletions first, because a folder may have to go for a file."""
    for path in plan["deleted"]:
        remove(plan["workdir"], path)
    with tarfile.open(changes) as archive:
        for member in archive:
            write(plan["workdir"], member, archive)
    drop_bytecode(plan["workdir"])


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Run the test process to its end or its limit; what it recorded, said and took."""
    key = os.urandom(32)
    read_end, write_end = os.pipe()
    key_end, key_start = os.pipe()
    os.write(key_start, key)
    os.close(key_start)
    argv = [sys.executable, "-s", "-B", plan["launcher"], str(write_end), str(key_end)]
    before = counted()
    began = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=plan["workdir"],
        env=plan["env"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(write_end, key_end),
        start_new_session=True,
    )
    os.close(write_end)
    os.close(key_end)
    assert process.stdout is not None
    records = Records(read_end, key, plan["record_limit"])
    output = Output(process.stdout.fileno(), plan["output_limit"])
    timed_out = False
    try:
        process.wait(plan["timeout"])
    except subprocess.TimeoutExpired:
        timed_out = True
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    records.finish()
    output.finish()
    return {
        "returncode": process.returncode,
        "timed_out": timed_out,
        "records": records.kept,
        "forged": records.forged,
        "output": output.text(),
        "seconds": round(time.monotonic() - began, 3),
        "limits": reached(before, plan["workdir"]),
        "installed": installed(),
    }


def installed() -> list[str]:
    """Name the top-level modules of the packages that are installed beside the tree."""
    names = set()
    for folder in filter(os.path.isdir, (p for p in sys.path if os.path.basename(p) == "site-packages")):
        for entry in os.listdir(folder):
            name = entry.split(".")[0]
            if name.isidentifier() and (entry == name or entry.endswith((".py", ".so"))):
                names.add(name)
    return sorted(names - {"__pycache__"})


def counted() -> dict[str, int]:
    """How often each limit was reached, as far as the kernel tells in here."""
    found = {}
    for limit, name, path in _COUNTERS:
        try:
            with open(path, encoding="ascii") as stream:
                lines = [line.split() for line in stream]
        except OSError:
            continue
        for words in lines:
            if len(words) == 2 and words[0] == name:
                found[limit] = int(words[1])
    return found


def reached(before: dict[str, int], folder: str) -> list[str]:
    """Name the limits that were reached since ``before``, and ``disk`` if that of the folder is full."""
    limits = [limit for limit, count in counted().items() if count > before.get(limit, 0)]
    space = os.statvfs(folder)
    return [*limits, "disk"] if space.f_bavail * space.f_frsize < _LEAST_SPACE else limits


def remove(workdir: str, path: str) -> None:
    """Remove one file or link of the tree, and the folders that it leaves empty; follows no link."""
    full = os.path.join(workdir, path)
    if os.path.islink(full) or os.path.isfile(full):
        os.unlink(full)
    folder = os.path.dirname(full)
    while len(folder) > len(workdir):
        try:
            os.rmdir(folder)
        except OSError:
            break
        folder = os.path.dirname(folder)


def write(workdir: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    """Write one changed file or link; a link or file that stands where a folder must be is replaced."""
    parts = member.name.split("/")
    folder = workdir
    for part in parts[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder) or os.path.isfile(folder):
            os.unlink(folder)
        if not os.path.isdir(folder):
            os.mkdir(folder)
    full = os.path.join(folder, parts[-1])
    if os.path.islink(full) or os.path.isfile(full):
        os.unlink(full)
    if member.issym():
        os.symlink(member.linkname, full)
        return
    with open(full, "wb") as stream:
        content = archive.extractfile(member)
        stream.write(content.read() if content else b"")
    os.chmod(full, 0o755 if member.mode & 0o100 else 0o644)


def drop_bytecode(workdir: str) -> None:
    """Remove the tree's bytecode: stale or planted, it would run in place of the source, or without any."""
    for folder, _names, files in os.walk(workdir):
        for name in files:
            if name.endswith((".pyc", ".pyo")):
                os.unlink(os.path.join(folder, name))


class Drain:
    """Reads a descriptor to its end in a thread."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self.limit = limit
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        """Read until the other side is closed."""
        while True:
            try:
                chunk = os.read(self.descriptor, 65536)
            except OSError:
                return
            if not chunk:
                return
            self.feed(chunk)

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait for the end, but not for ever."""
        # A child that left the process group may hold the pipe open for ever: it gets one more second.
        self.thread.join(1.0)


class Output(Drain):
    """Keeps head and tail of what a process says."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.half = limit // 2
        self.head = b""
        self.tail = b""
        self.dropped = 0
        super().__init__(descriptor, limit)

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        room = self.half - len(self.head)
        if room > 0:
            self.head += chunk[:room]
            chunk = chunk[room:]
        self.tail += chunk
        if len(self.tail) > 2 * self.half:
            self.dropped += len(self.tail) - self.half
            self.tail = self.tail[-self.half :]

    def text(self) -> str:
        """What was kept."""
        gap = b"\n[... %d bytes left out ...]\n" % self.dropped if self.dropped else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


class Records(Drain):
    """Keeps the lines that the recorder wrote, in their order, and counts all others.

    ``kept`` are the records, ``forged`` the number of lines that are not the recorder's next one: of another
    writer, or repeated, or after one that never came.
    """

    def __init__(self, descriptor: int, key: bytes, limit: int) -> None:
        self.keyed = hashlib.blake2b(key=key, digest_size=16)
        self.rest = b""
        self.size = 0
        self.kept: list[dict[str, Any]] = []
        self.forged = 0
        super().__init__(descriptor, limit)

    def feed(self, chunk: bytes) -> None:
        """Take what was read; a last line without its end is of a process that was killed."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            self.take(line)
        if len(self.rest) > self.limit:
            self.rest = b""
            self.forged += 1

    def take(self, line: bytes) -> None:
        """Keep a line if it is the next one that the recorder wrote."""
        mac, _space, text = line.partition(b" ")
        own = self.keyed.copy()
        own.update(text)
        if mac != own.hexdigest().encode():
            self.forged += 1
            return
        try:
            number, record = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            self.forged += 1
            return
        self.size += len(text)
        if number != len(self.kept) or not isinstance(record, dict) or self.size > self.limit:
            self.forged += 1
            return
        self.kept.append(record)


if __name__ == "__main__":
    try:
        main()
    except OSError as failure:
        if failure.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.exit(DISK_STATUS)
