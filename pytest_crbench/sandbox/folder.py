"""One local sandbox: a folder of the host and commands on it within limits; those of ended runs."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..core.sandbox import ExecResult
from ..host import trees
from ..host.processes import run
from ..text import plainjson
from . import beneath, bubblewrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ..core.model import File
    from ..core.sandbox import Limits

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Stands in for prlimit: argv[1] is bytes of address space, argv[2] processes (0: no limit).
_PYTHON_LIMITS = """\
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_NPROC, (int(sys.argv[2]),) * 2)
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as error:
    print(f"{sys.argv[3]}: {error.strerror}", file=sys.stderr)
    os._exit(127)
"""


@dataclass(frozen=True)
class Place:
    """The folders of one sandbox on the host."""

    workdir: Path
    scratch: Path
    temp: Path


class FolderSandbox:
    """A copy of a tree on the host; every command is gone when it ends, with all that it started."""

    def __init__(
        self,
        place: Place,
        venv: Path,
        view: bubblewrap.View | None,
        limits: Limits,
        marks: Mapping[str, str],
        *,
        processes: int,
    ) -> None:
        self._place = place
        self._view = view
        self._limits = limits
        self._marks = dict(marks)
        self._processes = processes
        self._ends = time.monotonic() + limits.lifetime
        self._closed = False
        inside = view is not None
        self.workdir = bubblewrap.WORKDIR if inside else str(place.workdir)
        self.scratch = bubblewrap.SCRATCH if inside else str(place.scratch)
        self._temp = bubblewrap.TEMP if inside else str(place.temp)
        venv_path = bubblewrap.VENV if inside else str(venv)
        self.python = f"{venv_path}/bin/python"
        self._variables = {
            "PATH": f"{venv_path}/bin:{_SYSTEM_PATH}",
            "HOME": f"{self.scratch}/home",
            "TMPDIR": self._temp,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Run a command; whatever it started is killed when it ends or its time is up.

        Raises:
            InfraError: if the sandbox has ended.
        """
        self._must_be_open()
        left = self._ends - time.monotonic()
        if left <= 0:
            raise InfraError(
                f"this sandbox has ended: its lifetime of {self._limits.lifetime:.0f} s is over",
                reason="lifetime",
            )
        where = cwd or self.workdir
        here = self._on_host(where)
        if here is not None and not here.is_dir():
            return ExecResult(126, b"", f"no such folder: {where}\n".encode())
        variables = {**self._variables, **(env or {})}
        whole = [*self._limited(), *argv]
        try:
            if self._view is not None:
                root, path = self._place.workdir.parent, {"PATH": _SYSTEM_PATH}
                with self._view.command(whole, where, variables) as (whole, descriptor):
                    done = self._run(whole, root, path, min(timeout, left), descriptor)
            else:
                whole = [*_self_ending(min(timeout, left)), *whole]
                done = self._run(whole, here or PurePosixPath(where), variables, min(timeout, left))
        except OSError as error:
            return ExecResult(126, b"", f"{error.filename or argv[0]}: {error.strerror}\n".encode())
        return done

    def put(self, files: Iterable[File], destination: str) -> None:
        """Write files below ``destination``, which lies in the tree, the scratch folder or the temporary one.

        Raises:
            InfraError: if the sandbox has ended or the disk is full.
            ValueError: if a path leaves ``destination``, or that lies elsewhere.
        """
        self._must_be_open()
        root, below = self._split(destination)
        try:
            beneath.write(root, below, files)
        except OSError as error:
            raise InfraError(
                f"cannot write files to {destination}: {error.strerror}", reason="disk"
            ) from error

    def get(self, path: str, limit: int = 16 * 1024**2) -> bytes:
        """Read one regular file.

        Raises:
            FileNotFoundError: if there is none; a link, folder or special file does not count.
            InfraError: ``too-large`` if it is longer than ``limit`` bytes; if the sandbox has ended, or the
                host has no more of what reading needs.
        """
        self._must_be_open()
        try:
            root, below = self._split(path)
            return beneath.read(root, below, limit)
        except ValueError as error:
            raise FileNotFoundError(path) from error

    def export(self, destination: Path, limit: int = 1024**3) -> None:
        """Copy the tree to another folder of the host; nothing runs between commands.

        Raises:
            InfraError: if the tree is larger than ``limit`` bytes, or the sandbox has ended.
        """
        self._must_be_open()
        self._closed = True
        beneath.copy_tree(self._place.workdir, destination, limit)

    def close(self) -> None:
        """Remove the sandbox's folder; may be called twice."""
        self._closed = True
        trees.remove(self._place.workdir.parent)

    def _run(
        self, argv: list[str], cwd: object, env: Mapping[str, str], timeout: float, *descriptors: int
    ) -> ExecResult:
        from pathlib import Path

        done = run(
            argv,
            cwd=Path(str(cwd)),
            env={**env, **self._marks},
            timeout=timeout,
            output_limit=self._limits.output,
            descriptors=descriptors,
        )
        code = done.returncode
        # A shell's way of telling a signal, as in the other backend.
        return ExecResult(
            returncode=128 - code if code is not None and code < 0 else code,
            stdout=done.stdout,
            stderr=done.stderr,
            timed_out=done.timed_out,
            truncated=done.truncated,
            duration=done.duration,
        )

    def _limited(self) -> list[str]:
        if shutil.which("prlimit", path=_SYSTEM_PATH):
            counted = [f"--nproc={self._processes}"] if self._processes else []
            return ["prlimit", f"--as={self._limits.memory}", "--core=0", *counted, "--"]
        return [self.python, "-I", "-c", _PYTHON_LIMITS, str(self._limits.memory), str(self._processes)]

    def _split(self, path: str) -> tuple[Path, str]:
        """Return the folder of the host that holds ``path``, and the path below it ("" for the folder)."""
        wanted = PurePosixPath(path)
        for name, root in (
            (self.workdir, self._place.workdir),
            (self.scratch, self._place.scratch),
            (self._temp, self._place.temp),
        ):
            if wanted.is_relative_to(name):
                below = wanted.relative_to(name).as_posix()
                return root, "" if below == "." else below
        raise ValueError(
            f"{path} lies outside the sandbox's writable folders ({self.workdir}, {self.scratch})"
        )

    def _on_host(self, path: str) -> Path | None:
        try:
            root, below = self._split(path)
        except ValueError:
            return None
        return root / below

    def _must_be_open(self) -> None:
        if self._closed:
            raise InfraError("this sandbox has ended; open a new one", reason="sandbox-gone")
        if not self._place.workdir.is_dir():
            raise InfraError(
                f"the sandbox's folder {self._place.workdir} was removed from outside; run it again",
                reason="sandbox-gone",
            )


def _self_ending(timeout: float) -> list[str]:
    """Bound a command that outlives its owner (killed with SIGKILL); ours ends it long before."""
    if shutil.which("timeout", path=_SYSTEM_PATH):
        return ["timeout", "--signal=KILL", f"{timeout + 10:.3f}"]
    return []


OWNER_FILE = "owner.json"


def folders(cache: Path) -> list[Path]:
    """Return the folders of all local sandboxes, in use or not."""
    root = cache / "sandboxes"
    return sorted(root.iterdir()) if root.is_dir() else []


def owner_of(folder: Path) -> dict[str, str]:
    """Return ``session`` and ``owner`` of a sandbox; both "" where its record cannot be read."""
    try:
        record = plainjson.parse((folder / OWNER_FILE).read_bytes())
        return {"session": str(record["session"]), "owner": str(record["owner"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"session": "", "owner": ""}
