"""Reading and writing below a folder that untrusted programs have written to, never through their links."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host.trees import Bounds, TooMuchError, open_up
from .archive import inside, too_large

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ..core.model import File

#: Failures that nothing in the folder brings about.
_OF_THE_HOST = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE})
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
        InfraError: ``too-large`` if it is longer than ``limit`` bytes; ``disk`` if the host fails.
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
        if error.errno in _OF_THE_HOST:
            raise InfraError(f"cannot read {path} in the sandbox: {error.strerror}", reason="disk") from error
        raise FileNotFoundError(f"{path}: {error.strerror or error}") from error
    if len(data) > limit:
        raise InfraError(f"{path} in the sandbox has more than {limit} bytes", reason="too-large")
    return data


def copy_tree(source: Path, destination: Path, limit: int, bounds: Bounds | None = None) -> None:
    """Copy a tree without a top-level ``.git``: links as links, special files skipped, executable bits kept.

    Nothing may be running that could change ``source`` meanwhile.

    Raises:
        InfraError: ``too-large`` if it has more than ``limit`` bytes or more than ``bounds``; ``disk``.
    """
    left, seen = limit, 0
    bounds = bounds or Bounds()
    # No recursion, and no folder that is skipped because it cannot be read: `os.walk` has both.
    pending = [PurePosixPath()]
    try:
        destination.mkdir(parents=True, exist_ok=True)
        while pending:
            folder = pending.pop()
            for name in sorted(os.listdir(source / folder)):  # noqa: PTH208  (names only)
                path, target = source / folder / name, destination / folder / name
                if path == source / ".git":
                    continue
                seen += 1
                bounds.check(seen, len(folder.parts))
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    target.symlink_to(path.readlink())
                elif stat.S_ISDIR(status.st_mode):
                    target.mkdir()
                    open_up(path, 0o700)
                    pending.append(folder / name)
                elif stat.S_ISREG(status.st_mode):
                    left -= status.st_size
                    if left < 0:
                        raise TooMuchError(f"more than {limit} bytes")
                    open_up(path, 0o400)
                    shutil.copyfile(path, target, follow_symlinks=False)
                    target.chmod(0o755 if status.st_mode & 0o100 else 0o644)
    except TooMuchError as error:
        raise too_large(error) from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise too_large(TooMuchError("a path too long for this system")) from error
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
