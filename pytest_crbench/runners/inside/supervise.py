"""Runs in the sandbox as ``python -I supervise.py``: applies the revision, runs the test process, records.

It never imports the code under test. The test process reports through a pipe of its own; its standard
output is only kept for people to read.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time


def main() -> None:
    """Run the plan that lies beside this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "plan.json"), encoding="utf-8") as stream:
        plan = json.load(stream)
    for path in plan["deleted"]:
        remove(plan["workdir"], path)
    with tarfile.open(os.path.join(here, "changes.tar")) as changes:
        for member in changes:
            write(plan["workdir"], member, changes)
    read_end, write_end = os.pipe()
    drop_bytecode(plan["workdir"])
    argv = [sys.executable, "-s", "-B", plan["launcher"], str(write_end)]
    began = time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=plan["workdir"],
        env=plan["env"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(write_end,),
        start_new_session=True,
    )
    os.close(write_end)
    assert process.stdout is not None
    records = Drain(read_end, plan["record_limit"])
    output = Drain(process.stdout.fileno(), plan["output_limit"])
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
    result = {
        "returncode": process.returncode,
        "timed_out": timed_out,
        "records": records.text(),
        "output": output.text(),
        "seconds": round(time.monotonic() - began, 3),
    }
    with open(plan["result"], "w", encoding="ascii") as stream:
        json.dump(result, stream)


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
    """Remove the tree's bytecode: stale or planted, it would run in place of the source beside it."""
    for folder, _names, files in os.walk(workdir):
        if os.path.basename(folder) == "__pycache__":
            for name in files:
                os.unlink(os.path.join(folder, name))


class Drain:
    """Reads a descriptor to its end in a thread, keeping head and tail within a limit."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self.half = limit // 2
        self.head = b""
        self.tail = b""
        self.dropped = 0
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
            room = self.half - len(self.head)
            if room > 0:
                self.head += chunk[:room]
                chunk = chunk[room:]
            self.tail += chunk
            if len(self.tail) > 2 * self.half:
                self.dropped += len(self.tail) - self.half
                self.tail = self.tail[-self.half :]

    def finish(self) -> None:
        """Wait for the end, but not for ever."""
        # A child that left the process group may hold the pipe open for ever: it gets one more second.
        self.thread.join(1.0)

    def text(self) -> str:
        """What was kept."""
        gap = b"\n[... %d bytes left out ...]\n" % self.dropped if self.dropped else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


if __name__ == "__main__":
    main()
