"""Virtual environments of the local sandbox: one per content, in the cache, built once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host import digest, temporary, trees
from ..host.eviction import Uses, cache_items, with_room
from ..host.files import locked, write_json
from ..host.space import FULL, is_full
from ..text import plainjson
from ..text.printable import decode
from . import disk, uv
from .uv import build_failure, redact

if TYPE_CHECKING:
    from pathlib import Path

    from .interpreters import Interpreter
    from .settings import SandboxSettings

_COMPLETE = "crbench-complete.json"
_TAIL = 3000
_ADVICE = "Check the network, the index settings and the CA bundle (SSL_CERT_FILE) of this machine"


def build(settings: SandboxSettings, interpreter: Interpreter, pins: tuple[str, ...], name: str) -> Path:
    """Return the folder of the virtual environment ``name`` with ``pins``, building it if nobody has.

    Raises:
        InfraError: with the tail of uv's output, if it cannot be built.
    """
    folder = settings.cache / "environments" / digest.of([name, interpreter.path])[:32]
    Uses(settings.cache).touch("environments", folder.name)
    if _is_whole(folder):
        return folder
    lock = settings.cache / "locks" / f"venv-{folder.name}.lock"
    with locked(lock, log=settings.log, what="virtual environment"):
        if _is_whole(folder):
            return folder
        if (folder / _COMPLETE).exists():
            settings.log(f"the virtual environment {folder.name} was damaged; it is made again")
        settings.log(f"building a virtual environment on Python {interpreter.version}: {', '.join(pins)}")
        trees.remove(folder)
        with_room(
            lambda: _create(settings, interpreter, pins, folder),
            lambda: cache_items(settings.cache),
            settings.log,
        )
        said = {"pins": list(pins), "python": interpreter.version, "files": _count(folder)}
        write_json(folder / _COMPLETE, said)
        disk.keep_to_budget(None, settings)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether an environment was finished, its interpreter is there, and nobody removed files of it."""
    try:
        said = plainjson.parse((folder / _COMPLETE).read_bytes())
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
    with temporary.folder() as empty:
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
