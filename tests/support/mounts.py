"""Small file systems and read-only folders, made with mounts (by root, who writes through permissions)."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Have a file system of that size (such as ``4M``) at the folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        # Lazily: what a failed test left running there must not keep it.
        _run("umount", "-l", str(folder))


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the disk of a folder to the last byte."""
    filler = folder / "filler"
    try:
        with filler.open("wb") as stream:
            for size in (1024**2, 4096, 1):
                _fill(stream.fileno(), size)
        yield
    finally:
        filler.unlink()


def _fill(descriptor: int, size: int) -> None:
    try:
        while True:
            os.write(descriptor, b"x" * size)
    except OSError:
        return


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Have a folder or file that nobody can write to; who has a file open there already still can."""
    _run("mount", "--bind", str(place), str(place))
    try:
        _run("mount", "-o", "remount,bind,ro", str(place))
        yield
    finally:
        _run("umount", "-l", str(place))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
