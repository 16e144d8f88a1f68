"""Reading and writing below a folder that untrusted programs have written to, never through their links."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..core.trees import open_up
from .archive import inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.model import File

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write(root: Path, folder: str, files: Iterable[File]) -> None:
    """Write files below ``root/folder``; a link or file in the way of a folder is replaced by the folder.

    Raises:
        ValueError: if a path leaves its folder.
        OSError: if the disk is full.
    """
    for file in files:
        parts = [*(inside(folder).parts if folder else ()), *inside(file.path).parts]
        with _opened(root, parts[:-1], make=True) as parent:
            _clear(parent, parts[-1])
            if file.mode == "120000":
                os.symlink(os.fsdecode(file.content), parts[-1], dir_fd=parent)
                continue
            mode = 0o755 if file.mode == "100755" else 0o644
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(parts[-1], flags, mode, dir_fd=parent), "wb") as stream:
                stream.write(file.content)
                os.fchmod(stream.fileno(), mode)


def read(root: Path, path: str, limit: int) -> bytes:
    """Read the regular file ``root/path``.

    Raises:
        FileNotFoundError: if there is none, or a link or special file is in the way.
        InfraError: if it is longer than ``limit`` bytes.
    """
    parts = inside(path).parts
    try:
        with _opened(root, parts[:-1], make=False) as parent:
            # Non-blocking: opening a pipe must not wait for somebody who writes to it.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(parts[-1], flags, dir_fd=parent), "rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise FileNotFoundError(f"{path} is not a regular file")
                data = stream.read(limit + 1)
    except OSError as error:
        raise FileNotFoundError(f"{path}: {error.strerror or error}") from error
    if len(data) > limit:
        raise InfraError(f"{path} in the sandbox has more than {limit} bytes", reason="too-large")
    return data


def copy_tree(source: Path, destination: Path, limit: int) -> None:
    """Copy a tree without a top-level ``.git``: links as links, special files skipped, executable bits kept.

    Nothing may be running that could change ``source`` meanwhile.

    Raises:
        InfraError: if it is larger than ``limit`` bytes, or cannot be copied.
    """
    left = limit
    try:
        destination.mkdir(parents=True, exist_ok=True)
        for folder, names, files in os.walk(source):
            here = Path(folder)
            target = destination / here.relative_to(source)
            for name in [*names, *files]:
                path = here / name
                if here == source and name == ".git":
                    continue
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    (target / name).symlink_to(path.readlink())
                elif stat.S_ISDIR(mode):
                    (target / name).mkdir()
                    open_up(path, 0o700)
                elif stat.S_ISREG(mode):
                    left -= path.lstat().st_size
                    if left < 0:
                        raise InfraError(
                            f"the tree in the sandbox is larger than {limit} bytes", reason="too-large"
                        )
                    open_up(path, 0o400)
                    shutil.copyfile(path, target / name, follow_symlinks=False)
                    (target / name).chmod(0o755 if mode & 0o100 else 0o644)
            if here == source and ".git" in names:
                names.remove(".git")
    except OSError as error:
        raise InfraError(f"cannot copy {error.filename}: {error.strerror}", reason="disk") from error


@contextmanager
def _opened(root: Path, parts: Iterable[str], *, make: bool) -> Iterator[int]:
    """Open the folder ``root/parts`` component by component, following no link."""
    current = os.open(root, _FOLDER)
    try:
        for part in parts:
            if make:
                with suppress(FileNotFoundError):
                    if not stat.S_ISDIR(os.stat(part, dir_fd=current, follow_symlinks=False).st_mode):
                        os.unlink(part, dir_fd=current)
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=current)
            following = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def _clear(parent: int, name: str) -> None:
    """Remove what stands where a file goes."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
