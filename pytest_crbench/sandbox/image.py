"""Images by content: base, prepared base, environment, and environment with a tree on top.

Whatever needs the network runs in a build container whose index settings and CA bundle are given to single
commands; what is committed afterwards holds neither, in no layer and no history.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..host import digest
from ..host.files import locked, write_json
from ..text import plainjson
from ..text.printable import decode
from . import archive, disk, install
from .build import SCRATCH, VENV, WORKDIR, build_container, build_image, template
from .engine import connect, engine_errors
from .interpreters import PROBE, Interpreter, minor_for, parse_probe, satisfies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker import APIClient

    from ..core.model import Tree
    from ..core.sandbox import SandboxSettings

#: Raise when the templates or the steps below change what an image holds.
RECIPE = 1
_TIMEOUT_LABEL = "crbench.timeout"


class EnvironmentLostError(InfraError):
    """The image of an environment that was there is no more: it was evicted or cleaned away."""


@dataclass(frozen=True)
class Base:
    """A base image that is here: its name, content id and interpreter, and whether it has ``timeout -k``."""

    name: str
    id: str
    interpreter: Interpreter
    has_timeout: bool


@dataclass(frozen=True)
class Built:
    """An environment image: its tag, its user's id, and whether it has ``timeout -k``.

    ``editable``: trees on top of it are installed in it, as a link to where they lie, and as ``version``
    unless that is "".
    """

    tag: str
    uid: int
    has_timeout: bool
    editable: bool = False
    version: str = ""


def base_name(settings: SandboxSettings, specifier: str) -> str:
    """Return the name of the base image for a Python specifier; ``{python}`` becomes a minor version.

    Raises:
        InvalidInstanceError: if no version satisfies the specifier.
    """
    name = settings.base_image
    return name.replace("{python}", minor_for(specifier)) if "{python}" in name else name


def find_base(client: APIClient, settings: SandboxSettings, specifier: str) -> Base:
    """Return the base image for a Python specifier, pulling it if it is not here.

    Raises:
        InfraError: if it cannot be had, or its Python is not what the specifier asks for.
    """
    base = have_base(client, settings, base_name(settings, specifier))
    name = base.name
    if not satisfies(base.interpreter.version, specifier):
        raise InfraError(
            f"base image {name} has Python {base.interpreter.version}, but the environment asks for "
            f"{specifier}. "
            "Name another one with --crbench-base-image; {python} in its name becomes the minor version",
            reason="base-image-python",
        )
    return base


def have_base(client: APIClient, settings: SandboxSettings, name: str) -> Base:
    """Return a base image by name, pulling it if it is not here; its Python may be any.

    Raises:
        InfraError: if it cannot be had, or has no working python3.
    """
    return _probed(client, settings, name, find_or_pull(client, settings, name)["Id"])


def build_environment(
    client: APIClient, settings: SandboxSettings, base: Base, pins: tuple[str, ...], name: str
) -> Built:
    """Return the environment image ``crbench-env:<name>``, building it if nobody has.

    Raises:
        InfraError: with the tail of pip's output, if the pins cannot be installed.
    """
    tag = f"crbench-env:{name}"
    disk.use(settings, tag)
    if (found := find_image(client, tag)) is not None:
        return _built(tag, found)
    with locked(
        settings.cache / "locks" / f"{tag.replace(':', '-')}.lock", log=settings.log, what="environment image"
    ):
        if (found := find_image(client, tag)) is None:
            settings.log(f"building environment image {tag[:24]} on {base.name}: {', '.join(pins)}")
            said = {_TIMEOUT_LABEL: "yes" if base.has_timeout else "no"}

            def build() -> None:
                prepared = _prepare(client, settings, base)
                install.install_pins(client, settings, prepared, pins, tag, said)

            disk.build(client, settings, build)
            found = find_image(client, tag)
    if found is None:
        raise InfraError(f"the engine lost {tag} as soon as it was built; run again", reason="image")
    return _built(tag, found)


def build_tree(client: APIClient, settings: SandboxSettings, environment: Built, tree: Tree) -> str:
    """Return the tag of the image that holds ``tree`` on top of an environment, building it if nobody has.

    Raises:
        EnvironmentLostError: if somebody removed the environment image.
        InfraError: if the engine cannot build it, or an editable installation fails.
        InvalidInstanceError: if an editable installation is more than a link to the tree.
    """
    if environment.editable:
        plain = build_tree(client, settings, replace(environment, editable=False, version=""), tree)
        version = environment.version
        add = partial(install.install_editable, client, settings, plain, tree, environment.uid, version)
        return _once(client, settings, [plain, "editable", install.EDITABLE_RECIPE, version], add)

    def build(tag: str) -> None:
        entries = partial(
            archive.add_tree, entries=digest.verified(tree), prefix="tree", owner=environment.uid
        )
        disk.use(settings, environment.tag)
        _still_there(client, environment.tag)
        values = {"image": environment.tag, "uid": environment.uid, "workdir": WORKDIR}
        try:
            build_image(client, settings, "tree.Dockerfile.j2", values, tag, entries)
        except InfraError as error:
            if error.reason == "image":
                _still_there(client, environment.tag)
            raise

    return _once(client, settings, [environment.tag, tree.digest, RECIPE], build)


def _still_there(client: APIClient, tag: str) -> None:
    if find_image(client, tag) is None:
        raise EnvironmentLostError(
            f"image {tag[:24]}… was removed from the engine while a run used it", reason="image"
        )


def _once(client: APIClient, settings: SandboxSettings, content: Any, build: Callable[[str], None]) -> str:
    tag = f"crbench-tree:{digest.of(content)}"
    disk.use(settings, tag)
    if find_image(client, tag) is None:
        lock = settings.cache / "locks" / f"{tag.replace(':', '-')}.lock"
        with locked(lock, log=settings.log, what="tree image"):
            if find_image(client, tag) is None:
                disk.build(client, settings, partial(build, tag))
    return tag


def find_image(client: APIClient, name: str) -> dict[str, Any] | None:
    """Return what the engine says of an image, or None if it does not have it.

    Raises:
        InfraError: if the engine fails.
    """
    from docker.errors import ImageNotFound

    with engine_errors(f"looking for image {name}"):
        try:
            return dict(client.inspect_image(name))  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None


def _built(tag: str, found: dict[str, Any]) -> Built:
    said = found["Config"].get("Labels") or {}
    return Built(tag, int(said[install.USER_LABEL]), said[_TIMEOUT_LABEL] == "yes")


def find_or_pull(
    client: APIClient,
    settings: SandboxSettings,
    name: str,
    *,
    what: str = "base image",
    option: str = "base-image",
) -> dict[str, Any]:
    """Return what the engine says of an image of the user's, pulling it if it is not here.

    Args:
        client: the engine.
        settings: how long a pull may take.
        name: the image.
        what: what it is for, for messages.
        option: the option that names it, without ``--crbench-``; also the reason of the error.

    Raises:
        InfraError: if it cannot be had.
    """
    from docker.errors import APIError

    if (found := find_image(client, name)) is not None:
        return found
    settings.log(f"pulling {what} {name}")
    puller = connect(settings.build_timeout)
    hint = f"Pull or build it, or name another one with --crbench-{option}"
    with engine_errors(f"pulling {what} {name}"):
        try:
            puller.pull(name, tag=None if _has_tag(name) else "latest")
        except APIError as error:
            raise InfraError(
                f"{what} {name} is not here and cannot be pulled: {error.explanation or error}. {hint}",
                reason=option,
            ) from error
        finally:
            puller.close()
    if (found := find_image(client, name)) is None:
        raise InfraError(f"{what} {name} is not here after a pull. {hint}", reason=option)
    return found


def _has_tag(name: str) -> bool:
    return ":" in name.rpartition("/")[2] or "@" in name


def _probed(client: APIClient, settings: SandboxSettings, name: str, image_id: str) -> Base:
    """Ask the image once for its Python and its ``timeout``; the answer is kept by the image's id."""
    known = settings.cache / "images" / f"{image_id.replace(':', '-')}-{RECIPE}.json"
    try:
        record = plainjson.parse(known.read_bytes())
        return Base(name, image_id, Interpreter(**record["interpreter"]), record["has_timeout"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    with (
        _told_apart(client, name, image_id),
        build_container(client, settings, image_id, network=False) as execute,
    ):
        asked = execute(["python3", "-I", "-c", PROBE], 60.0)
        try:
            interpreter = parse_probe(decode(asked.stdout))
        except ValueError as error:
            raise InfraError(
                f"base image {name} has no working python3 on its PATH ({error}). "
                "Name another one with --crbench-base-image",
                reason="base-image-python",
            ) from error
        has_timeout = execute(["timeout", "-k", "2", "1.5", "true"], 60.0).returncode == 0
    write_json(known, {"interpreter": asdict(interpreter), "has_timeout": has_timeout, "name": name})
    return Base(name, image_id, interpreter, has_timeout)


def _prepare(client: APIClient, settings: SandboxSettings, base: Base) -> str:
    """Return the base image with a user, the folders and an empty virtual environment."""
    tag = f"crbench-user:{digest.of([base.id, RECIPE])}"
    disk.use(settings, tag)
    with locked(
        settings.cache / "locks" / f"{tag.replace(':', '-')}.lock", log=settings.log, what="prepared image"
    ):
        if find_image(client, tag) is None:
            script = template("prepare.py.j2").render(workdir=WORKDIR, scratch=SCRATCH, venv=VENV)
            command = json.dumps([base.interpreter.path, "-I", "-c", script])
            build_image(client, settings, "user.Dockerfile.j2", {"image": base.id, "command": command}, tag)
    return tag


@contextmanager
def _told_apart(client: APIClient, name: str, image_id: str) -> Iterator[None]:
    """Explain a failure to run anything of an image by its platform, if that is not the engine's.

    Only a failure: an engine with emulation runs other platforms, too.

    Raises:
        InfraError: what was raised, or one that names both platforms.
    """
    try:
        yield
    except InfraError as error:
        found, engine = find_image(client, image_id) or {}, client.version()
        own, theirs = str(engine.get("Arch")), str(found.get("Architecture"))
        if own == theirs:
            raise
        raise InfraError(
            f"base image {name} is for {found.get('Os')}/{theirs}, and this engine runs "
            f"{engine.get('Os')}/{own}: nothing of it can be run (exec format error). Pull or build it for "
            f"this platform (docker pull --platform {engine.get('Os')}/{own} {name}), or set up emulation",
            reason="base-image-platform",
        ) from error
