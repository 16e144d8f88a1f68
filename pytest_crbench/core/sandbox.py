"""What a sandbox is: where commands run for one instance. Every backend passes one contract suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .model import File as File  # noqa: TC001  (offered here at run time too)
from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .model import Environment, Tree


@dataclass(frozen=True)
class Limits:
    """Bounds of one sandbox: bytes of memory, CPUs, processes and threads, bytes of kept output."""

    memory: int = 2 * 1024**3
    cpus: float = 2.0
    pids: int = 512
    output: int = 1024 * 1024
    #: Seconds after which the sandbox ends itself, whatever became of its owner.
    lifetime: float = 3600.0


@dataclass(frozen=True)
class ExecResult:
    """What a command did. ``returncode`` is None when it was killed by a limit of ours.

    Output beyond the limit keeps its head and tail; ``truncated`` says so. ``duration`` is in seconds.
    """

    returncode: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    oom_killed: bool = False
    truncated: bool = False
    duration: float = 0.0


@dataclass(frozen=True)
class EnvironmentRef:
    """A prepared environment. ``digest`` covers the pins, the interpreter and the base image.

    ``base_name`` and ``base_id`` say what it was built on: see `Backend.foundation`.
    """

    digest: str
    python: str
    pins: tuple[str, ...]
    handle: Any = field(compare=False)
    base_name: str = ""
    base_id: str = ""


class Sandbox(Protocol):
    """One running sandbox holding a writable copy of a tree."""

    #: Absolute path of the tree in the sandbox.
    workdir: str
    #: Absolute path of a writable folder outside the tree.
    scratch: str
    #: Absolute path of the environment's interpreter.
    python: str

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a command, without a shell, in ``cwd`` (default: the tree). A time-out kills all it started.

        The environment is a small fixed one plus ``env``; nothing of the host's leaks in.

        Raises:
            InfraError: if the sandbox is gone (engine lost, container killed from outside).
        """

    def put(self, files: Iterable[File], destination: str) -> None:
        """Write files below an absolute folder of the sandbox (made if absent), owned by its user.

        Raises:
            InfraError: if the sandbox is gone or its disk is full.
        """

    def get(self, path: str, limit: int = 16 * 1024**2) -> bytes:
        """Read one regular file; where it changes meanwhile, what runs in the sandbox may be ended first.

        Raises:
            FileNotFoundError: if there is none (a link, folder or special file does not count, nor does
                anything else that a program can put there to make reading fail).
            InfraError: ``too-large`` if it is longer than ``limit`` bytes; any other reason only if the
                sandbox, its engine or its disk failed.
        """

    def export(self, destination: Path, limit: int = 1024**3) -> None:
        """Stop everything that runs, then copy the tree (without a top-level ``.git``) to a host folder.

        Links are copied as links, special files are skipped; nothing is written outside ``destination``.
        After that the sandbox runs no further command.

        Raises:
            InfraError: if the tree is larger than ``limit`` bytes, or the sandbox is gone.
        """

    def close(self) -> None:
        """Destroy the sandbox and all that runs in it; bounded in time, and may be called twice."""


class Backend(Protocol):
    """Makes environments and sandboxes of one kind."""

    name: str

    def describe(self) -> dict[str, Any]:
        """What is recorded with the results, as plain JSON.

        ``name``; ``isolation``, "none" where commands run as the user; ``limits``, of "memory" (or "memory
        per process"), "processes", "network" and so on those that hold; ``not_isolated``, what is not
        separated from the host; and whatever else tells what it was (engine, versions).
        """

    def prepare(self, pythons: Sequence[str]) -> None:
        """Have what environments are built on: called once, before work starts.

        Args:
            pythons: the version specifiers of all instances. One that can be had is enough.

        Raises:
            InfraError: if no environment could be built at all, and what to do.
        """

    def environment(self, wanted: Environment) -> EnvironmentRef:
        """Build or reuse the environment; once per content, under a lock that holds between processes.

        Raises:
            InfraError: naming what failed (resolution, interpreter, download, engine) and what to do.
        """

    def foundation(self, specifier: str) -> tuple[str, str] | None:
        """Name and content of what environments for a Python specifier are built on now; None if not here.

        An image and its id, or an interpreter with version and platform. Builds, pulls and changes nothing.

        Raises:
            InfraError: if the engine fails.
        """

    def open(
        self,
        environment: EnvironmentRef,
        tree: Tree,
        *,
        limits: Limits,
        network: bool = False,
        git: Path | None = None,
    ) -> AbstractContextManager[Sandbox]:
        """Start a fresh sandbox that holds ``tree``; ``git`` is a ``.git`` folder to put beside it.

        Raises:
            InfraError: if the engine or the disk fails.
        """

    def reap(self, session: str | None = None) -> int:
        """Remove what a session left behind (None: every session whose processes are gone); how many."""


def _silent(_line: str) -> None:
    """Log nothing."""


@dataclass(frozen=True)
class SandboxSettings:
    """Where the sandboxes of one invocation keep their things and how environments are built.

    ``session`` is a random token of the invocation, put on every container and process. ``base_image`` may
    hold ``{python}``, the minor version that an environment asks for. ``ca_bundle``, ``index_url`` and
    ``extra_index_urls`` are used while environments are built and reach no image. ``build_timeout`` is in
    seconds, for one environment. ``disk_budget`` is in bytes, over the cache's entries and our images (None:
    no limit). ``hidden`` are folders that no sandbox may show, wherever they lie.
    """

    cache: Path
    session: str
    base_image: str = "python:3.11-slim"
    ca_bundle: Path | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    build_timeout: float = 1200.0
    disk_budget: int | None = None
    hidden: tuple[Path, ...] = ()
    log: Callable[[str], None] = _silent


class SandboxKind:
    """Makes the backend of one word of ``--crbench-sandbox``. A subclass has ``make``.

    Other packages register an instance in the group ``pytest_crbench.sandboxes`` of their entry points; its
    name there is the word, and the ``name`` of its backend.
    """

    def make(self, settings: SandboxSettings) -> Backend:
        """Return the backend; called in every process of a run.

        Raises:
            InfraError: if the engine does not answer.
        """
        raise NotImplementedError


SANDBOXES: Registry[SandboxKind] = Registry(
    "sandbox",
    SandboxKind,
    "pytest_crbench.sandboxes",
    {"docker": "sandbox.choose:DOCKER", "local": "sandbox.choose:LOCAL"},
)
