"""Trees on disk: what is in one, a copy to be worked in, and its removal. Never follows a link.

Trees in the cache are read-only, files and folders.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


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


def scan(root: Path) -> dict[str, Entry]:
    """List files and links below ``root`` by POSIX path, sorted by its bytes.

    Folders and special files do not count; a top-level ``.git`` is left out.

    Raises:
        OSError: if a folder cannot be read; an unreadable folder must not look like an empty one.
    """
    found: dict[str, Entry] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if path == ".git":
                    continue
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
    open_up(path)
    for here, names, _files in os.walk(path):
        for name in names:
            open_up(Path(here, name))
    shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)


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


def stamp(root: Path) -> str:
    """Digest of every path with its kind, permissions, size and time: cheap, and any edit changes it.

    Raises:
        OSError: if a folder cannot be read.
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
                    lines.append(
                        b"%s\0%o %d %d" % (entry.path, about.st_mode, about.st_size, about.st_mtime_ns)
                    )
    prefix = len(os.fsencode(root))
    return hashlib.sha256(b"\0\0".join(sorted(line[prefix:] for line in lines))).hexdigest()
