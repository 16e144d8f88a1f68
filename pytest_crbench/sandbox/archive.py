"""Tar archives into and out of a sandbox: names as bytes, links as links, nothing outside its folder."""

from __future__ import annotations

import errno
import io
import os
import posixpath
import tarfile
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from ..core.errors import InfraError
from ..host import digest
from ..host.trees import Bounds, TooMuchError
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.model import File


#: Of every file that is put into a sandbox: fixed, and late enough for zip files (1980).
_MTIME = 1_000_000_000


def inside(path: str) -> PurePosixPath:
    """Return a relative POSIX path that stays below its root.

    Raises:
        ValueError: if it is empty, absolute, or climbs out.
    """
    parts = PurePosixPath(path)
    if not parts.parts or parts.is_absolute() or ".." in parts.parts or "\0" in path:
        raise ValueError(f"{path!r} is not a path below its folder")
    return parts


def pack(files: Iterable[File], prefix: str, owner: int, *, keep: Iterable[str] = ()) -> bytes:
    """Make one tar of ``files`` below ``prefix`` (an absolute folder of the sandbox), with their folders.

    Folders in ``keep`` are there already and are not named, so that their owner and mode stay.

    Raises:
        ValueError: if a file's path leaves the folder.
    """
    stream = io.BytesIO()
    known = {PurePosixPath(folder.strip("/")) for folder in keep} | {PurePosixPath(".")}
    root = PurePosixPath(prefix.strip("/"))
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add_folders(tar, root, known, owner)
        for file in files:
            path = root / inside(file.path)
            _add_folders(tar, path.parent, known, owner)
            tar.addfile(*_entry(path.as_posix(), file.mode, file.content, owner))
    return stream.getvalue()


def add_tree(
    tar: tarfile.TarFile, entries: Iterable[tuple[str, str, bytes]], prefix: str, owner: int
) -> None:
    """Add (path, git mode, content) entries below ``prefix``."""
    known = {PurePosixPath(".")}
    _add_folders(tar, PurePosixPath(prefix), known, owner)
    for path, mode, content in entries:
        whole = PurePosixPath(prefix) / path
        _add_folders(tar, whole.parent, known, owner)
        tar.addfile(*_entry(whole.as_posix(), mode, content, owner))


def _entry(name: str, mode: str, content: bytes, owner: int) -> tuple[tarfile.TarInfo, IO[bytes] | None]:
    info = tarfile.TarInfo(name)
    info.mtime = _MTIME
    info.uid = info.gid = owner
    if mode == "120000":
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.fsdecode(content), 0o777
        return info, None
    info.size = len(content)
    info.mode = 0o755 if mode == "100755" else 0o644
    return info, io.BytesIO(content)


def _add_folders(tar: tarfile.TarFile, folder: PurePosixPath, known: set[PurePosixPath], owner: int) -> None:
    for path in [*reversed(folder.parents), folder]:
        if path in known:
            continue
        known.add(path)
        info = tarfile.TarInfo(path.as_posix())
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        info.uid = info.gid = owner
        tar.addfile(info)


class _Chunks(io.RawIOBase):
    """A readable file over chunks that come one by one; bounds how many bytes may come."""

    def __init__(self, chunks: Iterator[bytes], limit: int) -> None:
        self._chunks = chunks
        self._rest = b""
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._chunks, b"")
            self._left -= len(self._rest)
            if self._left < 0:
                raise InfraError("the sandbox sends more than it may hold", reason="too-large")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def read_stream(chunks: Iterator[bytes], limit: int) -> tarfile.TarFile:
    """Open a tar that arrives in chunks, of at most ``limit`` bytes, for reading once from start to end.

    Raises:
        InfraError: if it does not begin as a tar does, or is too large.
    """
    raw = io.BufferedReader(_Chunks(chunks, limit), 256 * 1024)
    try:
        return tarfile.open(fileobj=raw, mode="r|", encoding="utf-8", errors="surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> InfraError:
    return InfraError(
        f"the sandbox sent an archive that cannot be used ({printable(str(error))}); run it again",
        reason="archive",
    )


def unpack(tar: tarfile.TarFile, destination: Path, limit: int, bounds: Bounds | None = None) -> None:
    """Write a tar of one folder to ``destination``, without that folder's own name and a top-level ``.git``.

    Files keep their executable bit; links are made last, so that nothing is ever written through one;
    devices, pipes, sockets and hard links to what is not exported are skipped.

    Raises:
        InfraError: ``too-large`` if it holds more than ``limit`` bytes or more than ``bounds``; ``archive``
            for a path that leaves the folder; ``disk``.
    """
    links: list[tuple[Path, str]] = []
    left, bounds = limit, bounds or Bounds()
    try:
        destination.mkdir(parents=True, exist_ok=True)
        for seen, member in enumerate(tar):
            bounds.check(seen, member.name.count("/"))
            path = _target(member.name, destination)
            if path is None:
                continue
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.issym():
                links.append((path, member.linkname))
            elif member.isreg() or member.islnk():
                left -= member.size
                if member.size < 0:
                    raise ValueError(f"a member of {member.size} bytes")
                if left < 0:
                    raise TooMuchError(f"more than {limit} bytes")
                _write(tar, member, path, destination)
        for path, target in links:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
    except TooMuchError as error:
        raise too_large(error) from error
    except (tarfile.TarError, ValueError) as error:
        raise _unusable(error) from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise too_large(TooMuchError("a path too long for this system")) from error
        raise InfraError(
            f"cannot write {printable(str(error.filename or destination))}: {error.strerror}", reason="disk"
        ) from error


def too_large(error: TooMuchError) -> InfraError:
    """What is said of a tree that is too much to be copied."""
    return InfraError(
        f"the tree in the sandbox is larger than may be copied: {error}. What worked there left data or "
        "build output in it",
        reason="too-large",
    )


def _target(name: str, destination: Path) -> Path | None:
    """Return where a member goes; None for the folder itself and for what is left out."""
    _top, _, rest = (
        posixpath.normpath(name).partition("/") if ".." not in name.split("/") else (name, "", name)
    )
    if not rest:
        return None
    parts = inside(rest)
    return None if parts.parts[0] == ".git" else destination / parts


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, destination: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.islnk():
        # A hard link names a file that came before; a copy of it is the same content.
        first = _target(member.linkname, destination)
        if first is None or first.is_symlink() or not first.is_file():
            return
        path.write_bytes(first.read_bytes())
    else:
        source = tar.extractfile(member)
        assert source is not None
        with path.open("wb") as target:
            while chunk := source.read(1024 * 1024):
                target.write(chunk)
    with suppress(OSError):
        path.chmod(0o755 if member.mode & 0o100 else 0o644)


def pack_folder(folder: Path, prefix: str, owner: int, *, keep: Iterable[str] = ()) -> bytes:
    """Make one tar of a folder of the host below ``prefix``, empty folders included.

    Raises:
        InfraError: if the folder cannot be read.
    """
    stream = io.BytesIO()
    write_folder(stream, folder, prefix, owner, keep=keep)
    return stream.getvalue()


def write_folder(
    stream: IO[bytes], folder: Path, prefix: str, owner: int, *, keep: Iterable[str] = ()
) -> None:
    """Write the tar of `pack_folder` to a stream, one file after the other.

    Raises:
        InfraError: if the folder cannot be read, or the stream cannot be written to.
    """
    known = {PurePosixPath(name.strip("/")) for name in keep} | {PurePosixPath(".")}
    root = PurePosixPath(prefix.strip("/"))
    try:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for here, _names, _files in os.walk(folder):
                _add_folders(tar, root / Path(here).relative_to(folder).as_posix(), known, owner)
            for path, mode, content in digest.walk(folder):
                tar.addfile(*_entry((root / path).as_posix(), mode, content, owner))
    except OSError as error:
        raise InfraError(
            f"cannot pack {error.filename or folder}: {error.strerror}. Is the disk of TMPDIR full?",
            reason="disk",
        ) from error


def only_file(tar: tarfile.TarFile) -> bytes | None:
    """Return the content of the one regular file in a tar; None if its member is something else.

    Raises:
        InfraError: if the archive cannot be read.
    """
    try:
        member = tar.next()
        # A sparse file is as long as it says, whatever is in the archive.
        regular = member is not None and member.isreg() and not member.issparse()
        source = tar.extractfile(member) if member is not None and regular else None
        return source.read() if source is not None else None
    except (tarfile.TarError, ValueError) as error:
        raise _unusable(error) from error
