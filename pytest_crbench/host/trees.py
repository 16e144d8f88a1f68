"""Trees on disk: what is in one, a copy to work in, its removal, temporary folders. Never follows a link.

Trees in the cache are read-only, files and folders.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from . import trees
from .processes import is_gone, own_token

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Deeper folders are lifted before a tree is removed: `shutil.rmtree` calls itself for each level.
_LIFTED = 100


@dataclass(frozen=True)
class Bounds:
    """How much an edited tree may hold: files and folders together, and folders within one another."""

    entries: int = 200_000
    depth: int = 200

    def check(self, entries: int, depth: int) -> None:
        """Compare what was found so far.

        Raises:
            TooMuchError: beyond one of the two.
        """
        if entries > self.entries:
            raise TooMuchError(f"more than {self.entries} files and folders")
        if depth > self.depth:
            raise TooMuchError(f"folders within one another more than {self.depth} deep")


class TooMuchError(Exception):
    """A tree that nobody wrote by hand; the message says what there is too much of."""


@dataclass(frozen=True)
class Entry:
    """One file or link: git mode (``100644``, ``100755``, ``120000``), place on disk, size in bytes."""

    mode: str
    place: Path
    size: int

    def read(self) -> bytes:
        """Return the content; of a link, its target.

        Raises:
            OSError: if it cannot be read, or became something else since it was listed.
        """
        if self.mode == "120000":
            return os.readlink(os.fsencode(self.place))  # noqa: PTH115  (bytes)
        descriptor = os.open(self.place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()


def scan(root: Path, bounds: Bounds | None = None) -> dict[str, Entry]:
    """List files and links below ``root`` by POSIX path, sorted by its bytes.

    Folders and special files do not count; a top-level ``.git`` is left out.

    Raises:
        OSError: if a folder cannot be read; an unreadable folder must not look like an empty one.
        TooMuchError: if there is more than ``bounds``, as soon as that is seen.
    """
    found: dict[str, Entry] = {}
    pending = [""]
    seen = 0
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if path == ".git":
                    continue
                seen += 1
                if bounds is not None:
                    bounds.check(seen, path.count("/"))
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(path)
                elif mode := git_mode(status.st_mode):
                    found[path] = Entry(mode, Path(entry.path), status.st_size)
    return dict(sorted(found.items(), key=lambda item: os.fsencode(item[0])))


def git_mode(mode: int) -> str:
    """Return git's mode for ``st_mode``; "" for what git has none for."""
    if stat.S_ISLNK(mode):
        return "120000"
    if stat.S_ISREG(mode):
        return "100755" if mode & stat.S_IXUSR else "100644"
    return ""


def writable_copy(source: Path, destination: Path) -> None:
    """Copy a tree to a new folder, links as links, so that its owner may change everything in it.

    Raises:
        OSError, shutil.Error: if something cannot be read or written.
    """
    shutil.copytree(source, destination, symlinks=True)
    for folder, _names, files in os.walk(destination):
        for path in (folder, *(os.path.join(folder, name) for name in files)):  # noqa: PTH118 (many files)
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode) and not mode & stat.S_IWUSR:
                os.chmod(path, stat.S_IMODE(mode) | stat.S_IWUSR)  # noqa: PTH101


def remove(path: Path) -> bool:
    """Remove a file, or a folder whatever the modes of what it holds; whether it is gone."""
    if path.is_symlink() or not path.is_dir():
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return not os.path.lexists(path)
    _within_reach(path)
    shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)


def _within_reach(root: Path) -> None:
    """Open all folders up, and lift those that lie too deep to be walked or named (PATH_MAX) to the top."""
    pending = [(root, 0)]
    while pending:
        folder, depth = pending.pop()
        open_up(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            for name in [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]:
                place = folder / name
                if depth < _LIFTED:
                    pending.append((place, depth + 1))
                    continue
                lifted = root / f".{uuid.uuid4().hex}"
                open_up(place)
                with suppress(OSError):
                    place.rename(lifted)
                    pending.append((lifted, 1))


def stamp(root: Path) -> str:
    """Digest of every path with its kind, permissions, size and times: cheap, and any edit changes it.

    The time of the last change of status is among them, which no program can set.

    Raises:
        OSError: if something cannot be read.
    """
    lines: list[bytes] = []
    pending = [os.fsencode(root)]
    while pending:
        here = pending.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                about = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    lines.append(b"%s\0%o" % (entry.path, about.st_mode))
                else:
                    facts = (about.st_mode, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
                    lines.append(b"%s\0%o %d %d %d" % (entry.path, *facts))
    prefix = len(os.fsencode(root))
    return hashlib.sha256(b"\0\0".join(sorted(line[prefix:] for line in lines))).hexdigest()


def discard(path: Path) -> None:
    """`remove` what must go; absent is fine.

    Raises:
        OSError: if it is still there (it belongs to somebody else, say).
    """
    if remove(path):
        return
    # Once more, to learn what stands in the way.
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def open_up(path: Path, bits: int = stat.S_IRWXU) -> None:
    """Give the owner the permissions ``bits``, where that can be done; links are left alone."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & bits != bits:
            path.chmod(stat.S_IMODE(mode) | bits)


_PREFIX = "w-"
#: The only file in a new folder; says which process it belongs to.
OWNER = ".owner"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder, empty but for `OWNER`; remove it with all that is left there.

    Raises:
        InfraError: if it cannot be made.
    """
    try:
        made = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        (made / OWNER).write_text(own_token(), "ascii", "replace")
    except OSError as error:
        raise InfraError(
            f"cannot make a temporary folder: {error.strerror}. Free some space, or set TMPDIR to a folder "
            "that has some and can be written to.",
            reason="disk",
        ) from error
    try:
        yield made
    finally:
        # What belongs to another user stays, outside of any result.
        trees.remove(made)


def reap_temporary() -> int:
    """Remove the folders of processes of ours that have ended (SIGKILL, a crash); how many."""
    removed = 0
    try:
        found = sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{OWNER}"))
    except OSError:
        return 0  # no temporary folder at all: `temporary_folder` says so when one is needed
    for mark in found:
        with suppress(OSError, UnicodeDecodeError):
            if mark.lstat().st_uid == os.geteuid() and is_gone(mark.read_text("ascii")):
                removed += trees.remove(mark.parent)
    return removed
