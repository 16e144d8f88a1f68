"""What is in a tree on disk, and which of it git and a revision leave out. Never follows a link."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

#: What test runs, type checkers and linters leave behind: never part of a revision.
_NOISE_FOLDERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})

_NAME_MAX = 255

#: Patterns of `is_generated` for ``.git/info/exclude``.
GENERATED_PATTERNS = b"/PKG-INFO\n*.egg-info\n"


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
                elif mode := _git_mode(status.st_mode):
                    found[path] = Entry(mode, Path(entry.path), status.st_size)
    return dict(sorted(found.items(), key=lambda item: os.fsencode(item[0])))


def look(root: Path, path: str) -> Entry | None:
    """Return the entry at ``path`` below ``root``; None if there is none, or only through a link."""
    place = root
    parts = path.split("/")
    try:
        for part in parts[:-1]:
            place = place / part
            if not stat.S_ISDIR(place.lstat().st_mode):
                return None
        place = place / parts[-1]
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = _git_mode(status.st_mode)
    return Entry(mode, place, status.st_size) if mode else None


def is_generated(path: str) -> bool:
    """Whether packaging wrote it: top-level PKG-INFO, anything in or named ``*.egg-info``."""
    parts = path.split("/")
    return parts[0] == "PKG-INFO" or any(part.endswith(".egg-info") for part in parts)


def is_noise(path: str) -> bool:
    """Whether running things wrote it: byte code and the caches of pytest, mypy and ruff."""
    parts = path.split("/")
    return any(part.endswith(".pyc") for part in parts) or not _NOISE_FOLDERS.isdisjoint(parts[:-1])


def is_gits(path: str, mode: str = "100644") -> bool:
    """Whether git itself refuses it: a ``.git`` anywhere in the path, or a link named ``.gitmodules``."""
    parts = path.lower().split("/")
    return ".git" in parts or (mode == "120000" and parts[-1] == ".gitmodules")


def is_unsafe(path: str) -> bool:
    """Whether a path may not be written below a tree.

    So it is if it is absolute, holds ``.`` or ``..``, is git's own, or has a name too long for a file system.
    """
    parts = path.split("/")
    odd = any(part in ("", ".", "..") or len(os.fsencode(part)) > _NAME_MAX for part in parts)
    return odd or "\0" in path or is_gits(path)


def write(root: Path, path: str, content: bytes, mode: str) -> None:
    """Write one file or link below ``root``, which must hold nothing at ``path``.

    Raises:
        OSError: if something is in the way, a parent is a link, or the disk is full.
    """
    place = root
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink():
            raise NotADirectoryError(f"{place} is a link")
        place.mkdir(exist_ok=True)
    place = root / path
    if mode == "120000":
        os.symlink(content, os.fsencode(place))  # noqa: PTH211  (bytes)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(place, flags, 0o644), "wb") as stream:
        stream.write(content)
    place.chmod(0o755 if mode == "100755" else 0o644)


def _git_mode(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "120000"
    if stat.S_ISREG(mode):
        return "100755" if mode & stat.S_IXUSR else "100644"
    return ""
