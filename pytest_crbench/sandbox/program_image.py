"""An image of the user's with a program in it: what must be known of it before one is run."""

from __future__ import annotations

import posixpath
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import UsageError
from ..text.printable import decode
from . import transfer
from .build import labels, remove
from .engine import engine_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

    from ..core.sandbox import SandboxSettings

#: The folder in the container that holds what the program is given.
ROOT = "/pr"
#: The user of an image that names none, or names root.
OWN_USER = 1000
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OPTION = "--crbench-reviewer-image"
_PASSWD_LIMIT = 1024**2

T = TypeVar("T")


@dataclass(frozen=True)
class ProgramImage:
    """An image that programs can be run in.

    ``uid`` is never 0; ``user`` is what the engine is told. ``passwd`` is the account file to put in place,
    None where the image's own names the user. ``home`` is None where the image knows a home for it.
    """

    name: str
    id: str
    uid: int
    user: str
    passwd: bytes | None
    home: str | None
    search_path: tuple[str, ...]


def inspect(client: APIClient, settings: SandboxSettings, name: str, found: dict[str, Any]) -> ProgramImage:
    """Look into an image that is here, without running anything of it.

    Raises:
        UsageError: if it cannot hold a program's container: it has a ``/pr`` already, or no ``sleep``.
        InfraError: if the engine fails.
    """
    config = found.get("Config") or {}
    variables = dict(v.partition("=")[::2] for v in config.get("Env") or ())
    path = tuple(p for p in variables.get("PATH", _SYSTEM_PATH).split(":") if p.startswith("/"))

    def look(container: str) -> ProgramImage:
        if transfer.exists(client, container, ROOT):
            raise UsageError(
                f"{_OPTION}={name}: the image has a {ROOT} already, where the pull request is to go. Move it"
            )
        if not find_program(client, container, "sleep", path):
            raise UsageError(
                f"{_OPTION}={name}: the image has no `sleep`, which bounds a container's lifetime. Build it "
                "on one that has, such as debian or alpine"
            )
        accounts = transfer.head_of(client, container, "/etc/passwd", _PASSWD_LIMIT)
        passwd = accounts[0] if accounts is not None else b""
        return _with_user(name, str(found["Id"]), str(config.get("User") or ""), passwd, path)

    return looking(client, settings, str(found["Id"]), look)


def require(client: APIClient, settings: SandboxSettings, image: ProgramImage, program: str) -> None:
    """Look for a program in an image.

    Raises:
        UsageError: if it is not there.
        InfraError: if the engine fails.
    """

    def look(container: str) -> bool:
        return find_program(client, container, program, image.search_path)

    if not looking(client, settings, image.id, look):
        where = program if "/" in program else f"in its PATH, {':'.join(image.search_path)}"
        raise UsageError(
            f"{_OPTION}={image.name}: there is no program {program!r} in the image (looked {where}). "
            "Programs of the host are not in it, and its ENTRYPOINT is not used: name the program itself"
        )


def looking(client: APIClient, settings: SandboxSettings, image: str, look: Callable[[str], T]) -> T:
    """Call ``look`` with a container of ``image`` that is never started, and remove it."""
    with engine_errors(f"looking into {image}"):
        container = str(
            client.create_container(
                image,
                ["sleep", "0"],
                entrypoint=[],
                labels=labels(settings),
                name=f"c{uuid.uuid4().hex[:16]}",
                network_disabled=True,
            )["Id"]
        )
    try:
        return look(container)
    finally:
        remove(client, container, settings.log)


def find_program(client: APIClient, container: str, program: str, path: tuple[str, ...]) -> bool:
    """Whether a container holds a program, by name in its PATH or by path."""
    if "/" in program:
        places = [posixpath.join("/", program)]
    else:
        places = [posixpath.join(folder, program) for folder in path]
    return any(transfer.exists(client, container, place) for place in places)


def _with_user(name: str, image_id: str, wanted: str, passwd: bytes, path: tuple[str, ...]) -> ProgramImage:
    """Take the user that the image names if that is not root, else one of ours."""
    uids: dict[str, int] = {}
    for line in decode(passwd).splitlines():
        fields = line.split(":")
        if len(fields) >= 3 and fields[2].isdigit():
            uids.setdefault(fields[0], int(fields[2]))
    user = wanted.partition(":")[0]
    uid = int(user) if user.isdigit() else uids.get(user, 0)
    if uid:
        known = uid in uids.values()
        entry = None if known else _entry(passwd, uid)
        return ProgramImage(name, image_id, uid, wanted, entry, None if known else f"{ROOT}/home", path)
    entry = None if OWN_USER in uids.values() else _entry(passwd, OWN_USER)
    return ProgramImage(name, image_id, OWN_USER, f"{OWN_USER}:{OWN_USER}", entry, f"{ROOT}/home", path)


def _entry(passwd: bytes, uid: int) -> bytes:
    # Tools ask for the name of their user, and some end where there is none.
    whole = passwd if passwd.endswith(b"\n") or not passwd else passwd + b"\n"
    return whole + f"user:x:{uid}:{uid}::{ROOT}/home:/bin/sh\n".encode()
