"""From requirements to exact pins: resolved once by uv, as of a date where one is given, then remembered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host import digest, trees
from ..host.files import locked, write_json
from ..host.indexes import IndexSettings
from ..text import plainjson
from ..text.printable import decode, printable
from . import uv
from .uv import redact

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

    from ..core.model import Environment
    from ..core.sandbox import SandboxSettings
    from .interpreters import Interpreter

#: What runs the hidden tests, in every environment. Fixed: an old date (``as_of``) would give a pytest that
#: does not run on the interpreter, so these are exempt from it.
RUNNER_REQUIREMENTS = (
    "pytest==8.4.2",
    "iniconfig==2.1.0",
    "packaging==25.0",
    "pluggy==1.6.0",
    "pygments==2.19.2",
    'exceptiongroup==1.3.0; python_version < "3.11"',
    'tomli==2.2.1; python_version < "3.11"',
    'typing-extensions==4.15.0; python_version < "3.11"',
)
#: The day until which releases of the runner's own packages count; all pins above are older.
_RUNNER_DATE = "2025-10-15"
_TIMEOUT = 300.0
_PIN = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,-]*\])?==[A-Za-z0-9][\w.!+-]*", re.ASCII)


def resolve(wanted: Environment, interpreter: Interpreter, settings: SandboxSettings) -> tuple[str, ...]:
    """Resolve the environment's requirements and the runner's to exact ``name==version`` pins, sorted.

    Raises:
        InfraError: if uv is missing, or nothing satisfies the requirements; the message has uv's own words.
    """
    question = {
        "requirements": sorted(wanted.requirements),
        "runner": RUNNER_REQUIREMENTS,
        "as_of": wanted.as_of,
        "python": interpreter.version,
        "platform": interpreter.platform,
        "index": IndexSettings.of(settings).public(),
    }
    key = digest.of(question)
    known = settings.cache / "pins" / f"{key}.json"
    with locked(settings.cache / "locks" / f"pins-{key}.lock", log=settings.log, what="resolving pins"):
        pins = remembered_pins(known)
        if pins is None:
            pins = _compile(wanted, interpreter, settings)
            write_json(known, {**question, "pins": list(pins), "digest": digest.of(pins)})
        return pins


def remembered_pins(path: Path) -> tuple[str, ...] | None:
    """Pins as they were written; a file that was damaged since counts as absent and is replaced."""
    try:
        found = plainjson.parse(path.read_bytes())
        whole = digest.of(found["pins"]) == found["digest"] and all(map(_PIN.fullmatch, found["pins"]))
        return tuple(found["pins"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _compile(wanted: Environment, interpreter: Interpreter, settings: SandboxSettings) -> tuple[str, ...]:
    program = uv.program("resolve the environment's requirements")
    settings.log(f"resolving {_what(wanted)}{_date(wanted)}")
    first = _run_uv(program, wanted, interpreter, settings, RUNNER_REQUIREMENTS)
    if first.returncode != 0 and wanted.requirements:
        # The instance may need another version of a library that pytest uses too; only pytest is a must.
        first, hard = _run_uv(program, wanted, interpreter, settings, RUNNER_REQUIREMENTS[:1]), first
        if first.returncode != 0:
            first = hard
    if first.returncode != 0:
        said = redact(decode(first.stderr), settings).strip()[-2000:]
        raise InfraError(
            # What to do comes first: results keep the beginning of a long reason.
            f"uv pip compile cannot resolve {_what(wanted)}{_date(wanted)} on Python "
            f"{interpreter.version}. Check the requirements, the index settings and the network"
            f"{_date_hint(wanted)}. It said: {said}",
            reason="resolution",
        )
    return read_pins(first.stdout)


def read_pins(output: bytes) -> tuple[str, ...]:
    """Read what uv prints: one pin a line, sorted here.

    Raises:
        InfraError: for a line that is no ``name==version`` and no remark; it would name what is installed.
    """
    lines = (line.split("#")[0].split(";")[0].strip() for line in decode(output).split("\n"))
    pins = sorted(line for line in lines if line)
    for pin in pins:
        if not _PIN.fullmatch(pin):
            raise InfraError(
                f"uv pip compile said {printable(pin, 80)!r}, where a pin name==version was expected. Name "
                "requirements by versions, not by places, and check the version of uv",
                reason="resolution",
            )
    return tuple(pins)


def _run_uv(
    program: str,
    wanted: Environment,
    interpreter: Interpreter,
    settings: SandboxSettings,
    runner: tuple[str, ...],
) -> CompletedProcess[bytes]:
    arguments = [
        "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url",
        "--no-emit-find-links", "--python-version", interpreter.version,
        "--python-platform", interpreter.platform,
    ]  # fmt: skip
    if wanted.as_of:
        arguments += ["--exclude-newer", wanted.as_of]
        for pin in RUNNER_REQUIREMENTS:
            arguments += ["--exclude-newer-package", f"{pin.partition('==')[0]}={_RUNNER_DATE}"]
    asked = ("\n".join([*runner, *wanted.requirements]) + "\n").encode()
    # An empty folder: the configuration of the project that the user stands in takes no part.
    with trees.temporary_folder() as folder:
        return uv.run(
            program, arguments, settings, cwd=folder, timeout=_TIMEOUT, reason="resolution", feed=asked
        )


def _date_hint(wanted: Environment) -> str:
    return "; an index without upload dates cannot resolve as of a date" if wanted.as_of else ""


def _what(wanted: Environment) -> str:
    return ", ".join(wanted.requirements) or "the test runner"


def _date(wanted: Environment) -> str:
    return f" as of {wanted.as_of}" if wanted.as_of else ""
