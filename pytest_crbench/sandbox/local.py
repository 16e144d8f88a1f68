"""The ``local`` backend: a virtual environment and a copy of the tree, in bubblewrap where that works."""

from __future__ import annotations

import os
import platform
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import File
from ..core.sandbox import EnvironmentRef
from ..host import digest, trees
from ..host.files import write_json
from ..host.processes import SESSION_VARIABLE, is_gone, kill_marked, own_token
from . import beneath, bubblewrap, disk, interpreters
from .folder import OWNER_FILE, FolderSandbox, Place, folders, owner_of
from .interpreters import Interpreter, find_local
from .pins import resolve
from .uv import find_uv, program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.model import Environment, Tree
    from ..core.sandbox import Limits, SandboxSettings

#: Raise when the way an environment is built changes what it holds.
RECIPE = 1
#: Every process of a sandbox carries this variable, with the sandbox's random name.
_MARK = "TASK_SANDBOX"
_ACCOUNTS = (
    File("passwd", b"root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/scratch/home:/bin/sh\n"),
    File("group", b"root:x:0:\nuser:x:1000:\n"),
    File("hosts", b"127.0.0.1 localhost sandbox\n::1 localhost\n"),
)


@dataclass(frozen=True)
class LocalEnvironment:
    """A virtual environment of the host and the interpreter below it."""

    venv: Path
    interpreter: Interpreter


def _named(interpreter: Interpreter) -> tuple[str, str]:
    return "python", f"{interpreter.version} {interpreter.platform}"


class LocalBackend:
    """Makes virtual environments and sandbox folders; bubblewrap is probed once.

    ``bubblewrap_program`` is the program to use; ``""`` means none, although there may be one. ``no_docker``
    says why Docker was not taken; "" where nobody asked for it.
    """

    name = "local"

    def __init__(
        self, settings: SandboxSettings, bubblewrap_program: str | None = None, no_docker: str = ""
    ) -> None:
        self._settings = settings
        self._no_docker = no_docker
        found = bubblewrap.find() if bubblewrap_program is None else bubblewrap_program
        self._bubblewrap = found or None
        self._environments: dict[Environment, EnvironmentRef] = {}

    @property
    def _hidden(self) -> Iterable[Path]:
        return (Path(__file__).parents[1], self._settings.cache, Path.cwd(), *self._settings.hidden)

    def describe(self) -> dict[str, Any]:
        """Return what isolates and what does not, as plain JSON."""
        said: dict[str, Any] = {
            "name": self.name,
            "platform": f"{platform.system().lower()}/{platform.machine()}",
            "kernel": platform.release(),
        }
        if self._bubblewrap:
            limits = ["time", "memory per process", "output", "network"]
            open_ends = [
                "the kernel is shared with the host",
                "/usr and the interpreter's folder can be read",
                "memory is limited per process, not in total",
                "CPU and disk use are not limited",
            ]
            if self._limits_processes:
                limits.append("processes")
            else:
                open_ends.append("the number of processes is not limited (as root, or before Linux 5.14)")
            version = bubblewrap.version(self._bubblewrap)
            said |= {"isolation": "bubblewrap", "bubblewrap": version}
        else:
            limits = ["time", "memory per process", "output"]
            open_ends = [
                "commands run as the user who started this, and can read and write what that user can",
                "the network can be reached",
                "memory is limited per process, not in total",
                "CPU, disk use and the number of processes are not limited",
            ]
            said |= {"isolation": "none"}
        if self._no_docker:
            said["no_docker"] = self._no_docker
        return {**said, "limits": limits, "not_isolated": open_ends}

    def prepare(self, pythons: Sequence[str]) -> None:
        """Look for uv, which builds environments; interpreters are looked for one by one, when wanted.

        Raises:
            InfraError: if it is missing.
        """
        program("build environments")
        disk.keep_to_budget(None, self._settings, warn=True)

    def environment(self, wanted: Environment) -> EnvironmentRef:
        """Build or reuse the virtual environment.

        Raises:
            InfraError: naming what failed (interpreter, resolution, installation) and what to do.
            InvalidInstanceError: for ``install = "editable"``.
        """
        known = self._environments.get(wanted)
        if known is not None:
            return known
        if wanted.install != "none":
            raise InvalidInstanceError(
                f'environment.install = "{wanted.install}" is not supported by the local sandbox yet; '
                'use "none" and name the import roots',
                reason="install",
            )
        interpreter = find_local(wanted.python, find_uv())
        pins = resolve(wanted, interpreter, self._settings)
        name = digest.of(
            {
                "pins": pins,
                "python": interpreter.version,
                "platform": interpreter.platform,
                "backend": self.name,
                "recipe": RECIPE,
            }
        )
        folder = interpreters.build_venv(self._settings, interpreter, pins, name)
        made = LocalEnvironment(folder, interpreter)
        ref = EnvironmentRef(name, interpreter.version, pins, made, *_named(interpreter))
        self._environments[wanted] = ref
        return ref

    def foundation(self, specifier: str) -> tuple[str, str] | None:
        """Return what interpreter would be taken, with its version and platform."""
        try:
            return _named(find_local(specifier, find_uv()))
        except InfraError:
            return None

    @contextmanager
    def open(
        self,
        environment: EnvironmentRef,
        tree: Tree,
        *,
        limits: Limits,
        network: bool = False,
        git: Path | None = None,
    ) -> Iterator[FolderSandbox]:
        """Copy ``tree`` (and ``git`` as its ``.git``) to a fresh folder and run commands there.

        Raises:
            InfraError: if the disk fails.
        """
        # Without links in it: where a module came from is told by its real path.
        root = (self._settings.cache / "sandboxes").resolve() / uuid.uuid4().hex[:16]
        try:
            sandbox = self._furnish(root, environment.handle, tree, limits, network, git)
            try:
                yield sandbox
            finally:
                sandbox.close()
        finally:
            if root.exists() and not trees.remove(root):
                self._settings.log(f"could not remove {root}; crbench clean does")

    def reap(self, session: str | None = None) -> int:
        """Remove folders and processes of ``session`` (None: of every owner that has ended); how many."""
        removed = 0
        for folder in folders(self._settings.cache):
            owner = owner_of(folder)
            wanted = owner["session"] == session if session else is_gone(owner["owner"])
            if wanted:
                kill_marked(_MARK, folder.name)
                removed += trees.remove(folder)
        return removed

    @property
    def _limits_processes(self) -> bool:
        # Since Linux 5.14 the limit counts within the user namespace; root is never subject to it.
        release = platform.release().split(".")
        numbers = tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in release[:2])
        return self._bubblewrap is not None and os.geteuid() != 0 and numbers >= (5, 14)

    def _furnish(
        self,
        root: Path,
        environment: LocalEnvironment,
        tree: Tree,
        limits: Limits,
        network: bool,
        git: Path | None,
    ) -> FolderSandbox:
        place = Place(root / "workspace", root / "scratch", root / "tmp")
        write_json(root / OWNER_FILE, {"session": self._settings.session, "owner": own_token()})
        try:
            for folder in (place.workdir, place.scratch / "home", place.temp, root / "accounts"):
                folder.mkdir(parents=True, mode=0o755)
            beneath.write(place.workdir, "", (File(p, c, m) for p, m, c in digest.verified(tree)))
            if git is not None:
                _copy_git(git, place.workdir / ".git")
            beneath.write(root / "accounts", "", _ACCOUNTS)
        except OSError as error:
            raise InfraError(
                f"cannot make a sandbox in {root.parent}: {error.strerror}. Free some space or "
                "choose another place (--crbench-cache)",
                reason="disk",
            ) from error
        view = None
        if self._bubblewrap:
            view = bubblewrap.View(
                program=self._bubblewrap,
                workdir=place.workdir,
                scratch=place.scratch,
                temp=place.temp,
                venv=environment.venv,
                accounts=root / "accounts",
                interpreter_prefix=Path(environment.interpreter.prefix),
                hidden=tuple(folder.resolve() for folder in self._hidden),
                network=network,
            )
        marks = {SESSION_VARIABLE: self._settings.session, _MARK: root.name}
        return FolderSandbox(
            place,
            environment.venv,
            view,
            limits,
            marks,
            processes=limits.pids if self._limits_processes else 0,
        )


def _copy_git(git: Path, destination: Path) -> None:
    """Copy a repository with its empty folders (git wants ``refs``) but without its links."""
    destination.mkdir()
    for here, names, files in os.walk(git):
        target = destination / Path(here).relative_to(git)
        for name in names:
            (target / name).mkdir(exist_ok=True)
        for name in files:
            if not (Path(here) / name).is_symlink():
                (target / name).write_bytes((Path(here) / name).read_bytes())
