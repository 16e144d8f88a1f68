"""Commits from trees on disk, byte for byte: no attribute, filter, ignore file or line end plays a part."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ..host.trees import Entry


@dataclass(frozen=True)
class Commit:
    """A commit to make on ``branch``: its message and all of its tree."""

    branch: str
    message: bytes
    entries: Mapping[str, Entry]


def commit(git_dir: Path, commits: Sequence[Commit]) -> None:
    """Make ``commits``, each the child of the one before, with fixed author and date.

    Raises:
        InfraError: if git or the disk fails.
        OSError: if a file cannot be read.
    """

    def feed(stream: BinaryIO) -> None:
        stream.write(b"feature done\n")
        for number, one in enumerate(commits, 1):
            _write(stream, one, number)
        stream.write(b"done\n")

    git.run(["fast-import", "--quiet"], git_dir=git_dir, feed=feed)


def _write(stream: BinaryIO, one: Commit, number: int) -> None:
    # A minute apart: commits of one second are listed in any order, a child before its parent or after.
    who = f"{git.IDENTITY} {git.DATE + 60 * (number - 1)} +0000"
    stream.write(f"commit refs/heads/{one.branch}\nmark :{number}\nauthor {who}\ncommitter {who}\n".encode())
    stream.write(b"data %d\n%s\n" % (len(one.message), one.message))
    if number > 1:
        stream.write(b"from :%d\n" % (number - 1))
    stream.write(b"deleteall\n")
    for path, entry in one.entries.items():
        content = entry.read()
        stream.write(b"M %s inline %s\n" % (entry.mode.encode(), quote(path)))
        stream.write(b"data %d\n" % len(content))
        stream.write(content)
        stream.write(b"\n")


def quote(path: str) -> bytes:
    """Quote a path for fast-import, in C style; bytes above ASCII stay as they are."""
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'
