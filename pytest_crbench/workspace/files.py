"""Which files of a tree git and a revision leave out, and single files of one. Never follows a link."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from ..host.trees import Bounds, Entry, git_mode

if TYPE_CHECKING:
    from pathlib import Path

#: What test runs, type checkers and linters leave behind: never part of a revision.
_NOISE_FOLDERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})

#: What coding agents write into the tree that they work on, by its first name: histories, caches, settings.
_AGENT_FILES = re.compile(r"\.aider.*|\.(?:claude|codex|crush|cursor|gemini|goose|opencode|qwen)")

_NAME_MAX = 255

#: Patterns of `is_generated` for ``.git/info/exclude``.
GENERATED_PATTERNS = b"/PKG-INFO\n*.egg-info\n"


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
    mode = git_mode(status.st_mode)
    return Entry(mode, place, status.st_size) if mode else None


def is_generated(path: str) -> bool:
    """Whether packaging wrote it: top-level PKG-INFO, anything in or named ``*.egg-info``."""
    parts = path.split("/")
    return parts[0] == "PKG-INFO" or any(part.endswith(".egg-info") for part in parts)


def is_noise(path: str) -> bool:
    """Whether running things wrote it: byte code and the caches of pytest, mypy and ruff."""
    parts = path.split("/")
    return any(part.endswith(".pyc") for part in parts) or not _NOISE_FOLDERS.isdisjoint(parts[:-1])


def is_agents(path: str) -> bool:
    """Whether coding agents write such a file for themselves."""
    return _AGENT_FILES.fullmatch(path.partition("/")[0]) is not None


def is_gits(path: str, mode: str = "100644") -> bool:
    """Whether git itself refuses it: a ``.git`` anywhere in the path, or a link named ``.gitmodules``."""
    parts = path.lower().split("/")
    return ".git" in parts or (mode == "120000" and parts[-1] == ".gitmodules")


def is_unsafe(path: str) -> bool:
    """Whether a path may not be written below a tree.

    So it is if it is absolute, holds ``.`` or ``..``, is git's own, too deep, or has too long a name.
    """
    parts = path.split("/")
    odd = any(part in ("", ".", "..") or len(os.fsencode(part)) > _NAME_MAX for part in parts)
    return odd or len(parts) > Bounds.depth or "\0" in path or is_gits(path)


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
