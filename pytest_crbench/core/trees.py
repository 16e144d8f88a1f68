"""Copies of trees. Those in the cache are read-only, files and folders; a copy is to be worked in."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
