"""The ``docker`` backend: one fresh container per sandbox, on any engine that ``DOCKER_HOST`` names."""

from __future__ import annotations

import math
import uuid
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, InvalidInstanceError
from ..core.sandbox import EnvironmentRef
from ..host import digest
from ..host.eviction import with_room
from . import archive, build, disk, image, install
from .container import DockerSandbox
from .engine import connect, engine_errors
from .pins import resolve
from .uv import program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from docker import APIClient

    from ..core.model import Environment, Tree
    from ..core.sandbox import Limits, SandboxSettings


class DockerBackend:
    """Makes environment images and sandbox containers; knows per process which images are there."""

    name = "docker"

    def __init__(self, client: APIClient, settings: SandboxSettings) -> None:
        self.client = client
        self._settings = settings
        self.environments: dict[Environment, EnvironmentRef] = {}
        self.trees: dict[tuple[image.Built, str], str] = {}
        self._version: dict[str, Any] | None = None
        self._in_doubt = False

    def describe(self) -> dict[str, Any]:
        """Return engine, base image and isolation, as plain JSON."""
        if self._version is None:
            with engine_errors("asking the engine's version"):
                self._version = dict(self.client.version())
        version = self._version
        return {
            "name": self.name,
            "engine": str(version.get("Version", "")),
            "api": str(self.client.api_version),
            "platform": f"{version.get('Os', '')}/{version.get('Arch', '')}",
            "base_image": self._settings.base_image,
            "isolation": "container",
            "limits": ["time", "memory", "cpus", "processes", "output", "network"],
            "not_isolated": ["the kernel is shared with the engine's host", "disk use is not limited"],
        }

    def prepare(self, pythons: Sequence[str]) -> None:
        """Have a base image, pulling it if it is not here.

        Raises:
            InfraError: if there is none for any of ``pythons``, or uv is missing.
        """
        program("resolve environments")
        disk.keep_to_budget(self.client, self._settings, warn=True)
        tried: dict[str, InfraError] = {}
        for python in pythons:
            try:
                name = image.base_name(self._settings, python)
                if name not in tried:
                    image.have_base(self.client, self._settings, name)
                    return
            except InvalidInstanceError:
                continue  # told when that instance's turn comes
            except InfraError as error:
                tried[name] = error
        if tried:
            raise next(iter(tried.values()))

    def environment(self, wanted: Environment) -> EnvironmentRef:
        """Build or reuse the environment image.

        Raises:
            InfraError: naming what failed (base image, resolution, installation, engine) and what to do.
        """
        known = self.environments.get(wanted)
        if known is not None:
            return known
        base = image.find_base(self.client, self._settings, wanted.python)
        pins = resolve(wanted, base.interpreter, self._settings)
        name = digest.of(
            {"pins": pins, "python": base.interpreter.version, "base": base.id, "recipe": image.RECIPE}
        )
        built = image.build_environment(self.client, self._settings, base, pins, name)
        if wanted.install == "editable":
            name = digest.of([name, "editable", install.EDITABLE_RECIPE, wanted.version])
            built = replace(built, editable=True, version=wanted.version)
        ref = EnvironmentRef(name, base.interpreter.version, pins, built, base.name, base.id)
        self.environments[wanted] = ref
        return ref

    def foundation(self, specifier: str) -> tuple[str, str] | None:
        """Return the base image's name and id, if the engine has it."""
        name = image.base_name(self._settings, specifier)
        found = image.find_image(self.client, name)
        return None if found is None else (name, str(found["Id"]))

    @contextmanager
    def open(
        self,
        environment: EnvironmentRef,
        tree: Tree,
        *,
        limits: Limits,
        network: bool = False,
        git: Path | None = None,
    ) -> Iterator[DockerSandbox]:
        """Start a fresh container that holds ``tree`` (and ``git`` as its ``.git``).

        Raises:
            InfraError: if the engine or its disk fails.
        """
        with self._doubting():
            built: image.Built = environment.handle
            container = with_room(
                lambda: self._create(environment, tree, limits, network),
                lambda: disk.image_items(self.client, self._settings),
                self._settings.log,
            )
            sandbox = DockerSandbox(self.client, container, built, limits, self._settings)
            try:
                with engine_errors("starting a sandbox"):
                    self.client.start(container)
                if git is not None:
                    self._put_git(container, built, git)
                yield sandbox
            finally:
                sandbox.close()

    @contextmanager
    def _doubting(self) -> Iterator[None]:
        """Once an engine has failed, ask briefly whether it answers: not every check waits for a hung one.

        Raises:
            InfraError: if it does not.
        """
        if self._in_doubt:
            connect().close()
            self._in_doubt = False
        try:
            yield
        except InfraError as error:
            self._in_doubt = error.reason == "engine"
            raise

    def reap(self, session: str | None = None) -> int:
        """Remove containers of ``session`` (None: of every owner that has ended); how many.

        Raises:
            InfraError: if the engine fails.
        """
        return build.reap(self.client, session, self._settings.log)

    def _create(self, environment: EnvironmentRef, tree: Tree, limits: Limits, network: bool) -> str:
        from docker.errors import ImageNotFound

        built: image.Built = environment.handle
        key = (built, tree.digest)
        tag = self.trees.get(key) or self._tree_image(environment, tree)
        disk.use(self._settings, built.tag, tag)
        with engine_errors("creating a sandbox"):
            try:
                made = self._new_container(tag, built, limits, network)
            except ImageNotFound:
                # Somebody cleaned up between two sandboxes of ours.
                tag = self._tree_image(environment, tree)
                made = self._new_container(tag, built, limits, network)
        self.trees[key] = tag
        return made

    def _tree_image(self, environment: EnvironmentRef, tree: Tree) -> str:
        """Build the tree's image, and first the environment's again if that was evicted or cleaned away.

        Raises:
            InfraError: if either cannot be built.
        """
        build_tree = partial(image.build_tree, self.client, self._settings, tree=tree)
        try:
            return build_tree(environment=environment.handle)
        except image.EnvironmentLostError as lost:
            known = [w for w, ref in self.environments.items() if ref.handle == environment.handle]
            if not known:
                raise
            del self.environments[known[0]]
            self._settings.log(f"{lost}. Building it again")
            try:
                again = self.environment(known[0])
            except InfraError as error:
                raise InfraError(f"{lost}. Building it again failed: {error}", reason=error.reason) from error
            return build_tree(environment=again.handle)

    def _new_container(self, tag: str, built: image.Built, limits: Limits, network: bool) -> str:
        host = self.client.create_host_config(
            init=True,
            # Not auto_remove: a busy engine that restarts a container may take the stop for the end and
            # remove it, with the files in it (2 % of the restarts on two cores with much to do).
            auto_remove=False,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            network_mode=None if network else "none",
            mem_limit=limits.memory,
            memswap_limit=limits.memory,
            nano_cpus=int(limits.cpus * 1e9),
            pids_limit=limits.pids,
        )
        made = self.client.create_container(
            tag,
            ["sleep", str(math.ceil(limits.lifetime))],
            entrypoint=[],
            # Of the first process only: what runs in the sandbox must not be able to end it, or a revision
            # could turn its miss into a fault of the infrastructure.
            user="0:0",
            working_dir="/",
            hostname="sandbox",
            name=f"c{uuid.uuid4().hex[:16]}",
            labels=build.labels(self._settings),
            host_config=host,
        )
        return str(made["Id"])

    def _put_git(self, container: str, built: image.Built, git: Path) -> None:
        data = archive.pack_folder(git, f"{build.WORKDIR}/.git", built.uid, keep=[build.WORKDIR])
        with engine_errors("copying the repository into the sandbox"):
            self.client.put_archive(container, "/", data)
