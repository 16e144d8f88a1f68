"""Python versions: which one a specifier asks for, which a machine has, and environments made of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError
from ..host import digest, trees
from ..host.eviction import Uses, cache_items, with_room
from ..host.files import locked, write_json
from ..host.processes import EXHAUSTED
from ..host.space import FULL, is_full
from ..text import plainjson
from ..text.printable import clean, decode, printable
from . import disk, uv
from .uv import build_failure, redact

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from ..core.sandbox import SandboxSettings

#: Minor versions that ``{python}`` in a base image's name can become: those that the runner's pins support.
_MINORS = range(9, 16)
_PATCHES = range(40)
#: Characters of a specifier; a version of thousands of digits would fail only when it is compared.
_LONGEST = 200
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}(\.\d{1,3})?[a-z0-9.+-]{0,20}\Z", re.ASCII)

#: Prints what must be known of an interpreter, as one JSON line. Runs on every Python from 3.8 on.
PROBE = (
    "import json,os,platform,sys;"
    "print(json.dumps({'version':platform.python_version(),'executable':os.path.realpath(sys.executable),"
    "'path':sys.executable,'prefix':sys.base_prefix,'machine':platform.machine(),"
    "'libc':platform.libc_ver()[0] or 'musl'}))"
)


@dataclass(frozen=True)
class Interpreter:
    """One Python: full version, path, installation prefix, machine and C library ("glibc" or "musl")."""

    version: str
    path: str
    prefix: str
    machine: str
    libc: str

    @property
    def platform(self) -> str:
        """Return the platform triple by which uv knows it."""
        machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(self.machine.lower(), self.machine)
        return f"{machine}-unknown-linux-{'gnu' if self.libc == 'glibc' else 'musl'}"


def parse_probe(output: str) -> Interpreter:
    """Read the line that `PROBE` prints.

    Raises:
        ValueError: if it is not such a line.
    """
    found = plainjson.parse(output.strip().splitlines()[-1]) if output.strip() else None
    if not isinstance(found, dict):
        raise ValueError(f"no answer from the interpreter: {output[-200:]!r}")
    try:
        values = [found[name] for name in ("version", "path", "prefix", "machine", "libc")]
    except KeyError as error:
        raise ValueError(f"the interpreter's answer lacks {error}") from error
    if not all(isinstance(value, str) and "\0" not in value for value in values):
        raise ValueError(f"the interpreter's answer is none: {output[-200:]!r}")
    if not _VERSION.match(values[0]):
        raise ValueError(f"the interpreter says that its version is {values[0][:40]!r}")
    return Interpreter(*map(clean, values))


def satisfies(version: str, specifier: str) -> bool:
    """Whether a full version is one that ``specifier`` allows.

    Raises:
        InvalidInstanceError: if the specifier cannot be read.
    """
    return _specifier(specifier).contains(version, prereleases=True)


def minor_for(specifier: str) -> str:
    """Return the lowest minor version ("3.11") of which some patch release satisfies ``specifier``.

    Raises:
        InvalidInstanceError: if there is none.
    """
    wanted = _specifier(specifier)
    for minor in _MINORS:
        if any(wanted.contains(f"3.{minor}.{patch}") for patch in _PATCHES):
            return f"3.{minor}"
    raise InvalidInstanceError(
        f"environment.python = {printable(specifier, 80)!r}: none of Python 3.{_MINORS[0]} to "
        f"3.{_MINORS[-1]} satisfies it; correct the instance's file",
        reason="python-specifier",
    )


def find_local(specifier: str, uv: str | None) -> Interpreter:
    """Find an interpreter of this machine: our own if it satisfies, else what uv finds, else by name.

    Nothing is ever downloaded.

    Raises:
        InfraError: if there is none.
    """
    tried: list[str] = []
    for path in _candidates(specifier, uv):
        found = probe(path)
        if found is None:
            continue
        if satisfies(found.version, specifier):
            return found
        tried.append(f"{found.version} ({path})")
    raise InfraError(
        f"the local sandbox found no Python {specifier} on this machine "
        f"(found: {', '.join(tried) or 'none'}). "
        "Install one and put it on PATH, or use --crbench-sandbox=docker",
        reason="no-interpreter",
    )


def probe(path: str) -> Interpreter | None:
    """Ask an interpreter of this machine what it is; None if it does not answer.

    Raises:
        OSError: if the machine is exhausted.
    """
    try:
        done = subprocess.run(
            [path, "-I", "-c", PROBE], capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL
        )
        return parse_probe(done.stdout.decode(errors="replace")) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        if getattr(error, "errno", None) in EXHAUSTED:
            raise  # that says nothing of the interpreter
        return None


def _candidates(specifier: str, uv: str | None) -> list[str]:
    import shutil

    own = str(getattr(sys, "_base_executable", "") or sys.executable)
    names = [f"python3.{minor}" for minor in _MINORS] + ["python3"]
    found = [own, *([by_uv] if uv and (by_uv := _ask_uv(uv, specifier)) else [])]
    found += [path for name in names if (path := shutil.which(name))]
    return list(dict.fromkeys(found))


def _ask_uv(uv: str, specifier: str) -> str | None:
    command = [
        uv,
        "python",
        "find",
        "--quiet",
        "--no-project",
        "--no-python-downloads",
        "--system",
        specifier,
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL, cwd=Path("/")
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if getattr(error, "errno", None) in EXHAUSTED:
            raise
        return None
    return done.stdout.decode(errors="replace").strip() or None


def _specifier(text: str) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        if len(text) <= _LONGEST:
            return SpecifierSet(text)
    except InvalidSpecifier:
        pass
    raise InvalidInstanceError(
        f"environment.python = {printable(text, 80)!r} is not a version specifier such as '>=3.11'; correct "
        "the instance's file",
        reason="python-specifier",
    )


COMPLETE = "crbench-complete.json"
_TAIL = 3000
_ADVICE = "Check the network, the index settings and the CA bundle (SSL_CERT_FILE) of this machine"


def build_venv(settings: SandboxSettings, interpreter: Interpreter, pins: tuple[str, ...], name: str) -> Path:
    """Return the folder of the virtual environment ``name`` with ``pins``, building it if nobody has.

    Raises:
        InfraError: with the tail of uv's output, if it cannot be built.
    """
    folder = settings.cache / "environments" / digest.of([name, interpreter.path])[:32]
    Uses(settings.cache).touch("environments", folder.name)
    if is_whole(folder):
        return folder
    lock = settings.cache / "locks" / f"venv-{folder.name}.lock"
    with locked(lock, log=settings.log, what="virtual environment"):
        if is_whole(folder):
            return folder
        if (folder / COMPLETE).exists():
            settings.log(f"the virtual environment {folder.name} was damaged; it is made again")
        settings.log(f"building a virtual environment on Python {interpreter.version}: {', '.join(pins)}")
        trees.remove(folder)
        with_room(
            lambda: _create(settings, interpreter, pins, folder),
            lambda: cache_items(settings.cache),
            settings.log,
        )
        said = {"pins": list(pins), "python": interpreter.version, "files": _count(folder)}
        write_json(folder / COMPLETE, said)
        disk.keep_to_budget(None, settings)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether an environment was finished, its interpreter is there, and nobody removed files of it."""
    try:
        said = plainjson.parse((folder / COMPLETE).read_bytes())
        return (folder / "bin" / "python").exists() and _count(folder) >= said["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _count(folder: Path) -> int:
    return sum(len(files) for _here, _names, files in os.walk(folder))


def _create(settings: SandboxSettings, interpreter: Interpreter, pins: tuple[str, ...], folder: Path) -> None:
    program = uv.program("build a virtual environment")
    python = str(folder / "bin" / "python")
    # Relocatable: inside bubblewrap it has another path than outside.
    make = ["venv", "--quiet", "--no-project", "--relocatable", "--python", interpreter.path, str(folder)]
    with trees.temporary_folder() as empty:
        listed = empty / "pins.txt"
        listed.write_text("\n".join(pins) + "\n")
        install = ["pip", "install", "--quiet", "--no-deps", "--compile-bytecode", "--python", python]
        install += ["-r", str(listed)]
        for command in (make, install):
            _run(program, command, settings, empty)


def _run(program: str, arguments: list[str], settings: SandboxSettings, cwd: Path) -> None:
    what = " ".join(arguments[:2])
    done = uv.run(program, arguments, settings, cwd=cwd, timeout=settings.build_timeout, reason="install")
    if done.returncode != 0:
        said = redact(decode(done.stdout + done.stderr), settings).strip()[-_TAIL:]
        failed = build_failure(said)
        if failed and not is_full(said):
            raise InfraError(f"uv {what}: exit status {done.returncode}. {failed}", reason="install")
        advice = FULL if is_full(said) else _ADVICE
        raise InfraError(
            f"uv {what}: exit status {done.returncode}. {advice}. It said: {said}",
            reason="disk" if is_full(said) else "install",
        )
