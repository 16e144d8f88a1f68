"""The ``docker`` backend: one fresh container per sandbox, on any engine that ``DOCKER_HOST`` names."""

from __future__ import annotations

import math
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core import digest
from ..core.errors import InfraError, InvalidInstanceError
from . import archive, image
from .engine import engine_errors, run
from .owner import is_gone
from .pins import resolve
from .protocol import EnvironmentRef, ExecResult, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from docker import APIClient

    from ..core.model import Environment, Tree
    from .engine import Ran
    from .protocol import File
    from .settings import SandboxSettings

#: Bits of Go's file mode that the engine reports: folder, link, device, pipe, socket, irregular.
_GO_SPECIAL = 1 << 31 | 1 << 27 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19
_GRACE = 2
#: Seconds after the inner time-out at which the container itself is ended.
_OUTER = 10.0
_VARIABLES = {
    "PATH": f"{image.VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": f"{image.SCRATCH}/home",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
}
#: Stands in for ``timeout -k`` in images without coreutils: argv[1] is seconds, the rest the command.
_PYTHON_TIMEOUT = """\
import os, signal, subprocess, sys
child = subprocess.Popen(sys.argv[2:], start_new_session=True)
try:
    code = child.wait(float(sys.argv[1]))
except subprocess.TimeoutExpired:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    code = 124
sys.exit(128 - code if code < 0 else code)
"""


class DockerBackend:
    """Makes environment images and sandbox containers; knows per process which images are there."""

    name = "docker"

    def __init__(self, client: APIClient, settings: SandboxSettings) -> None:
        self._client = client
        self._settings = settings
        self._environments: dict[Environment, EnvironmentRef] = {}
        self._trees: dict[tuple[str, str], str] = {}
        self._version: dict[str, Any] | None = None

    def describe(self) -> dict[str, Any]:
        """Return engine, base image and isolation, as plain JSON."""
        if self._version is None:
            with engine_errors("asking the engine's version"):
                self._version = dict(self._client.version())
        version = self._version
        return {
            "name": self.name,
            "engine": str(version.get("Version", "")),
            "api": str(self._client.api_version),
            "platform": f"{version.get('Os', '')}/{version.get('Arch', '')}",
            "base_image": self._settings.base_image,
            "isolation": "container",
            "limits": ["time", "memory", "cpus", "processes", "output", "network"],
            "not_isolated": ["the kernel is shared with the engine's host", "disk use is not limited"],
        }

    def environment(self, wanted: Environment) -> EnvironmentRef:
        """Build or reuse the environment image.

        Raises:
            InfraError: naming what failed (base image, resolution, installation, engine) and what to do.
            InvalidInstanceError: for ``install = "editable"``.
        """
        known = self._environments.get(wanted)
        if known is not None:
            return known
        if wanted.install != "none":
            raise InvalidInstanceError(
                f'environment.install = "{wanted.install}" is not supported by the docker sandbox yet; use "none" '
                "and name the import roots",
                reason="install",
            )
        base = image.find_base(self._client, self._settings, wanted.python)
        pins = resolve(wanted, base.interpreter, self._settings)
        name = digest.of(
            {"pins": pins, "python": base.interpreter.version, "base": base.id, "recipe": image.RECIPE}
        )
        built = image.build_environment(self._client, self._settings, base, pins, name)
        ref = EnvironmentRef(name, base.interpreter.version, pins, built)
        self._environments[wanted] = ref
        return ref

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
        built: image.Built = environment.handle
        container = self._create(built, tree, limits, network)
        sandbox = DockerSandbox(self._client, container, built, limits, self._settings)
        try:
            with engine_errors("starting a sandbox"):
                self._client.start(container)
            if git is not None:
                self._put_git(container, built, git)
            yield sandbox
        finally:
            sandbox.close()

    def reap(self, session: str | None = None) -> int:
        """Remove containers of ``session`` (None: of every owner that has ended); how many.

        Raises:
            InfraError: if the engine fails.
        """
        wanted = [f"{image.LABEL}=1"] + ([f"crbench.session={session}"] if session else [])
        with engine_errors("listing sandboxes"):
            found = self._client.containers(all=True, filters={"label": wanted})
        removed = 0
        for container in found:
            if session or is_gone((container.get("Labels") or {}).get("crbench.owner", "")):
                image.remove(self._client, container["Id"], self._settings.log)
                removed += 1
        return removed

    def _create(self, built: image.Built, tree: Tree, limits: Limits, network: bool) -> str:
        from docker.errors import ImageNotFound

        key = (built.tag, tree.digest)
        tag = self._trees.get(key) or image.build_tree(self._client, self._settings, built, tree)
        with engine_errors("creating a sandbox"):
            try:
                made = self._new_container(tag, built, limits, network)
            except ImageNotFound:
                # Somebody cleaned up between two sandboxes of ours.
                tag = image.build_tree(self._client, self._settings, built, tree)
                made = self._new_container(tag, built, limits, network)
        self._trees[key] = tag
        return made

    def _new_container(self, tag: str, built: image.Built, limits: Limits, network: bool) -> str:
        host = self._client.create_host_config(
            init=True,
            auto_remove=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            network_mode=None if network else "none",
            mem_limit=limits.memory,
            memswap_limit=limits.memory,
            nano_cpus=int(limits.cpus * 1e9),
            pids_limit=limits.pids,
        )
        made = self._client.create_container(
            tag,
            ["sleep", str(math.ceil(limits.lifetime))],
            entrypoint=[],
            user=f"{built.uid}:{built.uid}",
            working_dir="/",
            hostname="sandbox",
            name=f"c{uuid.uuid4().hex[:16]}",
            labels=image.labels(self._settings),
            host_config=host,
        )
        return str(made["Id"])

    def _put_git(self, container: str, built: image.Built, git: Path) -> None:
        data = archive.pack_folder(git, f"{image.WORKDIR}/.git", built.uid, keep=[image.WORKDIR])
        with engine_errors("copying the repository into the sandbox"):
            self._client.put_archive(container, "/", data)


class DockerSandbox:
    """One container holding a writable copy of a tree."""

    workdir = image.WORKDIR
    scratch = image.SCRATCH
    python = image.PYTHON

    def __init__(
        self,
        client: APIClient,
        container: str,
        built: image.Built,
        limits: Limits,
        settings: SandboxSettings,
    ) -> None:
        self._client = client
        self._container = container
        self._built = built
        self._limits = limits
        self._settings = settings
        self._memory_kills = 0
        self._exported = False
        self._closed = False

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a command; ``timeout`` ends it from inside, a later deadline ends the whole container.

        After a time-out the container is restarted: all that ran is dead, the files stay.

        Raises:
            InfraError: if the sandbox is gone.
        """
        self._must_be_open()
        variables = [f"{name}={value}" for name, value in {**_VARIABLES, **(env or {})}.items()]
        whole = ["env", "-i", *variables, *self._bounded(timeout), *argv]
        ran = self._run(whole, timeout + _GRACE + _OUTER, cwd or self.workdir)
        timed_out = ran.late or (ran.returncode in (124, 137) and ran.duration >= timeout)
        if timed_out:
            self._restart()
        oom = not timed_out and ran.returncode not in (0, None) and self._explain(ran.returncode or 0)
        return ExecResult(
            returncode=None if timed_out or oom else ran.returncode,
            stdout=ran.stdout,
            stderr=ran.stderr,
            timed_out=timed_out,
            oom_killed=oom,
            truncated=ran.truncated,
            duration=ran.duration,
        )

    def put(self, files: Iterable[File], destination: str) -> None:
        """Write files below ``destination``, in one archive.

        Raises:
            InfraError: if the sandbox is gone or its disk is full.
            ValueError: if a path leaves ``destination``.
        """
        self._must_be_open()
        data = archive.pack(files, destination, self._built.uid, keep=[self.workdir, self.scratch, "/tmp"])
        with engine_errors(f"writing files to {destination}"):
            self._client.put_archive(self._container, "/", data)

    def get(self, path: str, limit: int = 16 * 1024**2) -> bytes:
        """Read one regular file.

        Raises:
            FileNotFoundError: if there is none; a link, folder or special file does not count.
            InfraError: if it is longer than ``limit`` bytes, or the sandbox is gone.
        """
        from docker.errors import APIError

        self._must_be_open()
        with engine_errors(f"reading {path}"):
            try:
                chunks, said = self._client.get_archive(self._container, path)
            except APIError as error:
                # The engine says 404 for a missing file and for a missing container alike.
                if error.status_code == 404 and "no such container" not in str(error.explanation).lower():
                    raise FileNotFoundError(path) from None
                raise
            try:
                if said["mode"] & _GO_SPECIAL:
                    raise FileNotFoundError(f"{path} is not a regular file")
                if said["size"] > limit:
                    raise InfraError(
                        f"{path} in the sandbox has {said['size']} bytes, more than {limit}",
                        reason="too-large",
                    )
                return archive.only_file(archive.read_stream(iter(chunks), limit + 1024**2), path)
            finally:
                chunks.close()

    def export(self, destination: Path, limit: int = 1024**3) -> None:
        """Stop everything that runs, then copy the tree to the host.

        Raises:
            InfraError: if the tree is larger than ``limit`` bytes, or the sandbox is gone.
        """
        self._must_be_open()
        self._exported = True
        self._restart()
        # Not part of the result; what cannot be removed is skipped while unpacking.
        self._run(["rm", "-rf", f"{self.workdir}/.git"], _OUTER * 6, "/")
        with engine_errors("copying the tree out of the sandbox"):
            chunks, _said = self._client.get_archive(self._container, self.workdir)
            try:
                archive.unpack(archive.read_stream(iter(chunks), 4 * limit + 1024**2), destination, limit)
            finally:
                chunks.close()

    def close(self) -> None:
        """Remove the container; may be called twice."""
        if not self._closed:
            self._closed = True
            image.remove(self._client, self._container, self._settings.log)

    def _bounded(self, timeout: float) -> list[str]:
        if self._built.has_timeout:
            return ["timeout", "-k", str(_GRACE), f"{max(timeout, 0.001):.3f}"]
        return [self.python, "-I", "-c", _PYTHON_TIMEOUT, f"{timeout:.3f}"]

    def _run(self, argv: list[str], deadline: float, cwd: str) -> Ran:
        return run(
            self._client,
            self._container,
            argv,
            deadline=deadline,
            output=self._limits.output,
            user=f"{self._built.uid}:{self._built.uid}",
            cwd=cwd,
        )

    def _restart(self) -> None:
        # Never kill by process id from inside: a child with its own session is not found that way.
        with engine_errors("ending what runs in the sandbox"):
            self._client.restart(self._container, timeout=0)
        self._memory_kills = 0

    def _explain(self, returncode: int) -> bool:
        """Whether the memory limit killed the command; a container that died meanwhile is an error.

        Raises:
            InfraError: if the container does not run any more.
        """
        with engine_errors("looking at the sandbox"):
            state = self._client.inspect_container(self._container)["State"]
        if not state["Running"]:
            raise InfraError(
                "the sandbox's container ended while a command ran; it was killed from outside. Run it again",
                reason="sandbox-gone",
            )
        if returncode != 137:
            return False
        kills = self._count_memory_kills()
        before, self._memory_kills = self._memory_kills, kills
        return kills > before

    def _count_memory_kills(self) -> int:
        """Read the kernel's counter of this container: cgroup v2, then v1. The engine itself may not notice."""
        files = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"]
        said = self._run(["cat", *files], _OUTER, "/").stdout
        counts = [line.split()[1] for line in said.splitlines() if line.startswith(b"oom_kill ")]
        return int(counts[0]) if counts else 0

    def _must_be_open(self) -> None:
        if self._closed or self._exported:
            raise InfraError("this sandbox has ended; open a new one", reason="sandbox-gone")
