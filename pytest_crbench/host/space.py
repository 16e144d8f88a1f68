"""Room on disk: how much a folder has, whether it can be written to, and sizes as people read them."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

#: Fewer free inodes than that, and a run fails with "no space left" on a disk that looks empty.
_INODES = 2000
#: What to do about a full disk.
FULL = "The disk is full: free some space (crbench clean)"
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Room:
    """Free space at ``place``, the nearest folder that is there: bytes, and inodes (None: not counted)."""

    place: Path
    free: int
    inodes: int | None

    @property
    def out_of_inodes(self) -> bool:
        """Whether there may be bytes, but no files."""
        return self.inodes is not None and self.inodes < _INODES


def room(folder: Path) -> Room:
    """Look how much room there is where ``folder`` lies, or will lie.

    Raises:
        OSError: if that cannot be asked.
    """
    place = existing(folder)
    about = os.statvfs(place)
    counted = about.f_favail if about.f_files else None
    return Room(place, about.f_bavail * about.f_frsize, counted)


def existing(folder: Path) -> Path:
    """Return ``folder``, or the nearest folder above it that is there."""
    here = folder.absolute()
    while not os.path.lexists(here) and here != here.parent:
        here = here.parent
    return here


def why_unwritable(folder: Path) -> str:
    """Say why nothing can be written to a folder that may not be there yet; "" if something can.

    Leaves nothing behind, and makes no folder.
    """
    place = existing(folder)
    if not place.is_dir():
        return f"{place} is not a folder"
    if place != folder.absolute():
        return "" if os.access(place, os.W_OK | os.X_OK) else f"no folder can be made in {place}"
    try:
        next(folder.iterdir(), None)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{error.strerror}"


def check_room(folder: Path, least: int, option: str) -> None:
    """Refuse to start where a disk is all but full.

    Args:
        folder: where something is to be written.
        least: bytes that must be free; 0 lets everything pass.
        option: the option that names another folder.

    Raises:
        UsageError: saying how much is free, how much is wanted, and what to do.
    """
    if not least:
        return
    try:
        found = room(folder)
    except OSError:
        return  # whoever writes there says what is wrong with it
    if found.free < least:
        raise UsageError(
            f"{folder}: {size(found.free)} free, but a run wants at least {size(least)}. Free some space "
            f"(crbench clean), choose another folder ({option}), or lower --crbench-limit min-free"
        )
    if found.out_of_inodes:
        raise UsageError(
            f"{folder}: {found.inodes} files can still be made there (inodes), too few for a run. Remove "
            f"some files, or choose another folder ({option})"
        )


def is_full(said: str) -> bool:
    """Whether a program or an engine says that a disk is full."""
    return "no space left on device" in said.lower() or "disk quota exceeded" in said.lower()


def size(number: float) -> str:
    """Return bytes as people read them: ``512 B``, ``8.0 MB``, ``1.5 GB`` (of 1024 each)."""
    power = 0
    while number >= 1024 and power < len(_UNITS) - 1:
        number, power = number / 1024, power + 1
    return f"{number:.1f} {_UNITS[power]}" if power and number < 100 else f"{number:.0f} {_UNITS[power]}"
