"""Temporary folders that say whose they are: what a killed process left is found and removed.

Their names mean nothing, so that a program which is given one learns nothing from it.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from . import trees
from .processes import is_gone, own_token

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "w-"
#: The only file in a new folder; says which process it belongs to.
OWNER = ".owner"


@contextmanager
def folder() -> Iterator[Path]:
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


def reap() -> int:
    """Remove the folders of processes of ours that have ended (SIGKILL, a crash); how many."""
    removed = 0
    try:
        found = sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{OWNER}"))
    except OSError:
        return 0  # no temporary folder at all: `folder` says so when one is needed
    for mark in found:
        with suppress(OSError, UnicodeDecodeError):
            if mark.lstat().st_uid == os.geteuid() and is_gone(mark.read_text("ascii")):
                removed += trees.remove(mark.parent)
    return removed
