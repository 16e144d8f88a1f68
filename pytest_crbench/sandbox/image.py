"""Images by content: base, prepared base, environment, and environment with a tree on top.

Whatever needs the network runs in a build container whose index settings and CA bundle are given to single
commands; what is committed afterwards holds neither, in no layer and no history.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core import digest
from ..core.errors import InfraError
from ..core.model import File
from ..core.store import locked, write_json
from ..core.text import decode
from . import archive
from .build import build_container, build_image, template
from .engine import connect, engine_errors
from .indexes import pip_environment, redact
from .interpreters import PROBE, Interpreter, minor_for, parse_probe, satisfies

if TYPE_CHECKING:
    from docker import APIClient

    from ..core.model import Tree
    from .engine import Ran
    from .settings import SandboxSettings

#: Raise when the templates or the steps below change what an image holds.
RECIPE = 1
WORKDIR, SCRATCH, VENV = "/workspace", "/scratch", "/venv"
PYTHON = f"{VENV}/bin/python"
_USER_LABEL, _TIMEOUT_LABEL = "crbench.uid", "crbench.timeout"
_TAIL = 3000
_COMMIT_TIMEOUT = 600.0


@dataclass(frozen=True)
class Base:
    """A base image that is here: its name, content id and interpreter, and whether it has ``timeout -k``."""

    name: str
    id: str
    interpreter: Interpreter
    has_timeout: bool


@dataclass(frozen=True)
class Built:
    """An environment image: its tag, its user's id, and whether it has ``timeout -k``."""

    tag: str
    uid: int
    has_timeout: bool


def find_base(client: APIClient, settings: SandboxSettings, specifier: str) -> Base:
    """Return the base image for a Python specifier, pulling it if it is not here.

    Raises:
        InfraError: if it cannot be had, or its Python is not what the specifier asks for.
    """
    name = settings.base_image
    if "{python}" in name:
        name = name.replace("{python}", minor_for(specifier))
    image_id = _inspect_or_pull(client, settings, name)["Id"]
    base = _probed(client, settings, name, image_id)
    if not satisfies(base.interpreter.version, specifier):
        raise InfraError(
            f"base image {name} has Python {base.interpreter.version}, but the environment asks for "
            f"{specifier}. "
            "Name another one with --crbench-base-image; {python} in its name becomes the minor version",
            reason="base-image-python",
        )
    return base


def build_environment(
    client: APIClient, settings: SandboxSettings, base: Base, pins: tuple[str, ...], name: str
) -> Built:
    """Return the environment image ``crbench-env:<name>``, building it if nobody has.

    Raises:
        InfraError: with the tail of pip's output, if the pins cannot be installed.
    """
    tag = f"crbench-env:{name}"
    if (found := find_image(client, tag)) is not None:
        return _built(tag, found)
    with locked(
        settings.cache / "locks" / f"{tag.replace(':', '-')}.lock", log=settings.log, what="environment image"
    ):
        if (found := find_image(client, tag)) is None:
            settings.log(f"building environment image {tag[:24]} on {base.name}: {', '.join(pins)}")
            prepared = _prepare(client, settings, base)
            _install(client, settings, prepared, base, pins, tag)
            found = find_image(client, tag)
    if found is None:
        raise InfraError(f"the engine lost {tag} as soon as it was built; run again", reason="image")
    return _built(tag, found)


def build_tree(client: APIClient, settings: SandboxSettings, environment: Built, tree: Tree) -> str:
    """Return the tag of the image that holds ``tree`` on top of an environment, building it if nobody has.

    Raises:
        InfraError: if the engine cannot build it.
    """
    name = digest.of([environment.tag, tree.digest, RECIPE])
    tag = f"crbench-tree:{name}"
    if find_image(client, tag) is not None:
        return tag
    with locked(
        settings.cache / "locks" / f"{tag.replace(':', '-')}.lock", log=settings.log, what="tree image"
    ):
        if find_image(client, tag) is None:
            add = partial(
                archive.add_tree, entries=digest.walk(tree.path), prefix="tree", owner=environment.uid
            )
            values = {"image": environment.tag, "uid": environment.uid, "workdir": WORKDIR}
            build_image(client, settings, "tree.Dockerfile.j2", values, tag, add)
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
    return Built(tag, int(said[_USER_LABEL]), said[_TIMEOUT_LABEL] == "yes")


def _inspect_or_pull(client: APIClient, settings: SandboxSettings, name: str) -> dict[str, Any]:
    from docker.errors import APIError

    if (found := find_image(client, name)) is not None:
        return found
    settings.log(f"pulling base image {name}")
    puller = connect(settings.build_timeout)
    hint = "Pull or build it, or name another one with --crbench-base-image"
    with engine_errors(f"pulling base image {name}"):
        try:
            puller.pull(name, tag=None if _has_tag(name) else "latest")
        except APIError as error:
            raise InfraError(
                f"base image {name} is not here and cannot be pulled: {error.explanation or error}. {hint}",
                reason="base-image",
            ) from error
        finally:
            puller.close()
    if (found := find_image(client, name)) is None:
        raise InfraError(f"base image {name} is not here after a pull. {hint}", reason="base-image")
    return found


def _has_tag(name: str) -> bool:
    return ":" in name.rpartition("/")[2] or "@" in name


def _probed(client: APIClient, settings: SandboxSettings, name: str, image_id: str) -> Base:
    """Ask the image once for its Python and its ``timeout``; the answer is kept by the image's id."""
    known = settings.cache / "images" / f"{image_id.replace(':', '-')}-{RECIPE}.json"
    try:
        record = json.loads(known.read_bytes())
        return Base(name, image_id, Interpreter(**record["interpreter"]), record["has_timeout"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    with build_container(client, settings, image_id, network=False) as execute:
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
    with locked(
        settings.cache / "locks" / f"{tag.replace(':', '-')}.lock", log=settings.log, what="prepared image"
    ):
        if find_image(client, tag) is None:
            script = template("prepare.py.j2").render(workdir=WORKDIR, scratch=SCRATCH, venv=VENV)
            command = json.dumps([base.interpreter.path, "-I", "-c", script])
            build_image(client, settings, "user.Dockerfile.j2", {"image": base.id, "command": command}, tag)
    return tag


def _install(
    client: APIClient, settings: SandboxSettings, image: str, base: Base, pins: tuple[str, ...], tag: str
) -> None:
    """Install pins in a container that has the network, and commit it as ``tag``."""
    folder = f"/tmp/{uuid.uuid4().hex[:12]}"
    files = [File("pins.txt", ("\n".join(pins) + "\n").encode())]
    bundle = None
    if settings.ca_bundle is not None:
        bundle = f"{folder}/ca.pem"
        files.append(File("ca.pem", _read_bundle(settings)))
    with build_container(client, settings, image, network=True) as execute:
        with engine_errors("copying the pins to the build container"):
            client.put_archive(execute.container, "/", archive.pack(files, folder, 0, keep=["/tmp"]))
        command = [PYTHON, "-I", "-m", "pip", "install", "--no-deps", "-r", f"{folder}/pins.txt"]
        done = execute(command, settings.build_timeout, pip_environment(settings, bundle))
        if done.returncode != 0:
            raise InfraError(_pip_failed(done, pins, settings), reason="install")
        uid = decode(execute(["id", "-u", "user"], 60.0).stdout).strip()
        execute(["rm", "-rf", folder], 60.0)
        changes = [
            f"LABEL {_USER_LABEL}={uid} {_TIMEOUT_LABEL}={'yes' if base.has_timeout else 'no'}",
            'LABEL crbench.session="" crbench.owner=""',
            'CMD ["sleep", "3600"]',
        ]
        committer = connect(_COMMIT_TIMEOUT)
        repository, _, version = tag.partition(":")
        with engine_errors(f"committing {tag}"):
            committer.commit(execute.container, repository, version, changes=changes)
        committer.close()


def _pip_failed(done: Ran, pins: tuple[str, ...], settings: SandboxSettings) -> str:
    what = (
        f"did not end within {settings.build_timeout:.0f} s"
        if done.late
        else f"exit status {done.returncode}"
    )
    said = redact(decode(done.stdout + b"\n" + done.stderr), settings).strip()[-_TAIL:]
    return (
        f"pip install of {', '.join(pins)} in the environment image: {what}:\n{said}\n"
        "Check the network, the index settings and the CA bundle (PIP_INDEX_URL, PIP_CERT) of this machine"
    )


def _read_bundle(settings: SandboxSettings) -> bytes:
    assert settings.ca_bundle is not None
    try:
        return settings.ca_bundle.read_bytes()
    except OSError as error:
        raise InfraError(
            f"cannot read the CA bundle {settings.ca_bundle}: {error.strerror}", reason="ca-bundle"
        ) from error
