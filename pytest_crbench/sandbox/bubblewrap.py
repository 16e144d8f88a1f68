"""Bubblewrap: a process without privileges that sees little of the machine and none of its network."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host.processes import EXHAUSTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

WORKDIR, SCRATCH, VENV, TEMP = "/workspace", "/scratch", "/venv", "/tmp"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
#: What programs need of /etc; the rest of it is nobody's business in there.
_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl", "pki", "ca-certificates",
    "localtime", "mime.types", "nsswitch.conf", "protocols", "services", "magic",
)  # fmt: skip
#: Generous: a machine may be busy, and what does not answer ends a run.
_PROBE_TIMEOUT = 30


@dataclass(frozen=True)
class View:
    """What a command sees: folders of the host behind fixed names, and the host's interpreter.

    ``hidden`` are folders of the host that stay out of sight also where a system folder holds them.
    """

    program: str
    workdir: Path
    scratch: Path
    temp: Path
    venv: Path
    accounts: Path
    interpreter_prefix: Path
    hidden: tuple[Path, ...]
    network: bool

    @contextmanager
    def command(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> Iterator[tuple[list[str], int]]:
        """Give the command line, and an open file that it needs under the same number.

        The options name folders of the host, and bubblewrap itself can be seen from inside (as process 1):
        they are in the file, which is closed before the command starts.
        """
        descriptor = os.memfd_create("options")
        try:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(b"\0".join(map(os.fsencode, self._options(cwd, env))))
            os.lseek(descriptor, 0, os.SEEK_SET)
            yield [self.program, "--args", str(descriptor), "--", *argv], descriptor
        finally:
            os.close(descriptor)

    def _options(self, cwd: str, env: Mapping[str, str]) -> list[str]:
        whole = [*_NAMESPACES, "--hostname", "sandbox"]
        if self.network:
            whole += ["--share-net", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
        whole += [*_system_folders(), "--proc", "/proc", "--dev", "/dev", "--bind", str(self.temp), TEMP]
        if not any(self.interpreter_prefix.is_relative_to(folder) for folder in SYSTEM):
            prefix = str(self.interpreter_prefix)
            whole += ["--ro-bind", prefix, prefix]
        for folder in self._covered():
            whole += ["--tmpfs", str(folder)]
        for file in ("passwd", "group", "hosts"):
            whole += ["--ro-bind", str(self.accounts / file), f"/etc/{file}"]
        whole += ["--ro-bind", str(self.venv), VENV]
        whole += ["--bind", str(self.workdir), WORKDIR, "--bind", str(self.scratch), SCRATCH]
        whole += ["--remount-ro", "/"]
        for name, value in env.items():
            whole += ["--setenv", name, value]
        return [*whole, "--chdir", cwd]

    def _covered(self) -> Iterable[Path]:
        shown = [*map(Path, SYSTEM), self.interpreter_prefix]
        for folder in self.hidden:
            if folder.is_dir() and any(folder.is_relative_to(s) and folder != s for s in shown):
                yield folder


_NAMESPACES = (
    "--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
    "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000",
)  # fmt: skip


def find() -> str | None:
    """Return the path of a bubblewrap that works here, or None (missing, or user namespaces are off).

    Raises:
        InfraError: ``bubblewrap``, if the machine is too busy or exhausted to tell.
    """
    program = shutil.which("bwrap")
    if program is None:
        return None
    command = [program, *_NAMESPACES, *_system_folders(), "--proc", "/proc", "--dev", "/dev", "--", "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PROBE_TIMEOUT, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if isinstance(error, OSError) and error.errno not in EXHAUSTED:
            return None
        # Not None: a busy moment must not take the isolation away from one worker of a run.
        raise InfraError(
            f"{program} is there, but could not be tried: {getattr(error, 'strerror', None) or error}. Use "
            "fewer workers, or raise the limits (`ulimit -n`, `ulimit -u`).",
            reason="bubblewrap",
        ) from error
    return program if done.returncode == 0 else None


def version(program: str) -> str:
    """Return the version that bubblewrap reports of itself ("" if it does not)."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_PROBE_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").rpartition(" ")[2].strip()


def _system_folders() -> list[str]:
    options: list[str] = []
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            options += ["--ro-bind", name, name]
    for name in _ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return options
