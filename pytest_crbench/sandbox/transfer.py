"""Reading files and folders out of a container, running or not."""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from . import archive
from .engine import engine_errors

if TYPE_CHECKING:
    from docker import APIClient

#: Bits of Go's file mode that the engine reports: folder, link, device, pipe, socket, irregular.
_GO_SPECIAL = 1 << 31 | 1 << 27 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19


def ask(client: APIClient, container: str, path: str) -> tuple[Any, dict[str, Any]] | None:
    """Ask for a file or folder as a tar that arrives in chunks, and what the engine says of it.

    None stands for the engine's "not found": there may be no such file, or no such container.

    Raises:
        InfraError: if the engine fails.
    """
    from docker.errors import NotFound

    with engine_errors(f"reading {path}"):
        try:
            # As bytes: the name need not be UTF-8.
            answer: tuple[Any, dict[str, Any]] = client.get_archive(container, os.fsencode(path))
            return answer
        except NotFound:
            return None


def is_special(said: dict[str, Any]) -> bool:
    """Whether what the engine describes is anything but a regular file."""
    return bool(said["mode"] & _GO_SPECIAL)


def exists(client: APIClient, container: str, path: str) -> bool:
    """Whether a container holds ``path``, of whatever kind.

    Raises:
        InfraError: if the engine fails.
    """
    found = ask(client, container, path)
    if found is not None:
        found[0].close()
    return found is not None


def head_of(client: APIClient, container: str, path: str, limit: int) -> tuple[bytes, bool] | None:
    """Return the first ``limit`` bytes of a file and whether it is a regular one; None if there is none.

    Raises:
        InfraError: if the engine fails, or sends what is no archive.
    """
    found = ask(client, container, path)
    if found is None:
        return None
    chunks, said = found
    try:
        if is_special(said):
            return b"", False
        with engine_errors(f"reading {path}"):
            tar = archive.read_stream(iter(chunks), limit + 1024**2)
            member = tar.next()
            source = tar.extractfile(member) if member is not None and member.isreg() else None
            return (source.read(limit), True) if source is not None else (b"", False)
    except tarfile.TarError as error:
        raise InfraError(
            f"an archive from the container cannot be read: {error}", reason="archive"
        ) from error
    finally:
        chunks.close()
