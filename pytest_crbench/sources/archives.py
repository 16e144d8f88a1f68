"""Unpacking sdists and wheels from anywhere: no entry is trusted, nothing is executed."""

from __future__ import annotations

import errno
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from .writer import TreeWriter

_CHUNK = 256 * 1024
#: A header of a tar archive that wants more than this in one piece is an attack on memory.
_ONE_READ = 16 * 1024**2


def unpack(archive: Path, writer: TreeWriter) -> None:
    """Write the content of a ``.tar.gz``, ``.zip`` or ``.whl`` file; an sdist's one top folder is stripped.

    Raises:
        InvalidInstanceError: if it is damaged, unsafe or too large, or an sdist has not one top folder.
        InfraError: if it cannot be read from the disk.
    """
    try:
        if archive.name.endswith(".tar.gz"):
            _untar(archive, writer)
        elif archive.name.endswith((".zip", ".whl")):
            _unzip(archive, writer, strip=archive.name.endswith(".zip"))
        else:
            raise _damaged(writer, "is neither .tar.gz nor .zip nor .whl")
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _damaged(writer, f"cannot be unpacked ({error})") from error
    except (NotImplementedError, UnicodeError, ValueError, RuntimeError, lzma.LZMAError) as error:
        # zipfile's words for unknown compression, bad names and broken fields
        raise _damaged(writer, f"cannot be unpacked ({error})") from error
    except OSError as error:
        # bz2's word for broken data, and the system's for a place before the file's beginning
        if error.errno in (None, errno.EINVAL):
            raise _damaged(writer, f"cannot be unpacked ({error})") from error
        raise InfraError(f"cannot read {archive}: {error.strerror or error}", reason="disk") from error


class _Stripper:
    """Takes the one top folder off the names of an sdist."""

    def __init__(self, writer: TreeWriter) -> None:
        self.writer = writer
        self.top: str | None = None

    def __call__(self, name: str) -> str | None:
        """Return the name below the top folder, or None for the folder itself."""
        top, _, rest = self.writer.path(name).partition("/")
        self.top = self.top or top
        if top != self.top:
            raise _damaged(self.writer, f"has more than one top folder ({self.top!r} and {top!r})")
        return rest or None


class _Bounded:
    """A reading end that refuses to deliver a huge piece at once (tarfile reads headers whole)."""

    def __init__(self, stream: gzip.GzipFile, writer: TreeWriter) -> None:
        self.stream = stream
        self.writer = writer
        self.tell = stream.tell
        self.seek = stream.seek

    def read(self, size: int) -> bytes:
        # A size below 0 would read all there is, and lead back to what was read before.
        if not 0 <= size <= _ONE_READ:
            raise _damaged(self.writer, f"has a header of {size} bytes")
        return self.stream.read(size)


def _untar(archive: Path, writer: TreeWriter) -> None:
    strip = _Stripper(writer)
    with gzip.open(archive) as plain, tarfile.open(fileobj=_Bounded(plain, writer), mode="r:") as tar:  # type: ignore[call-overload]
        for member in tar:
            if not 0 <= member.size <= writer.bounds.size:
                raise writer.unsafe(member.name, f"{member.size} bytes long")
            name = strip(member.name)
            executable = bool(member.mode & stat.S_IXUSR)
            if member.isdir():
                continue
            if name is None:
                raise _damaged(writer, "has no top folder")
            if member.issym():
                writer.link(name, member.linkname)
            elif member.islnk():
                writer.copy(name, strip(member.linkname) or "", executable=executable)
            elif member.isreg() and not member.issparse():
                content = tar.extractfile(member)
                assert content is not None
                writer.file(name, _chunks(content), executable=executable)
            else:
                raise writer.unsafe(member.name, "neither a file nor a folder nor a link")


def _unzip(archive: Path, writer: TreeWriter, *, strip: bool) -> None:
    stripper = _Stripper(writer)
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            name = stripper(member.filename) if strip else writer.path(member.filename)
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if name is None:
                raise _damaged(writer, "has no top folder")
            if stat.S_ISLNK(mode):
                with packed.open(member) as content:
                    writer.link(name, content.read(4096).decode("utf-8", "surrogateescape"))
            elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
                with packed.open(member) as content:
                    writer.file(name, _chunks(content), executable=bool(mode & stat.S_IXUSR))
            else:
                raise writer.unsafe(member.filename, "neither a file nor a folder nor a link")


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _damaged(writer: TreeWriter, what: str) -> InvalidInstanceError:
    return InvalidInstanceError(
        f"{writer.what} {what}. Its digest is the one that the instance names: correct the [source] of the "
        "instance.",
        reason="bad-archive",
    )
