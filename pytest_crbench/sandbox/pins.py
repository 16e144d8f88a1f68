"""From requirements to exact pins: resolved once by uv, as of a date where one is given, then remembered."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import digest
from ..core.errors import InfraError
from ..core.store import locked, write_json
from ..core.text import decode
from .indexes import redact, uv_environment

if TYPE_CHECKING:
    from ..core.model import Environment
    from .interpreters import Interpreter
    from .settings import SandboxSettings

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


def find_uv() -> str | None:
    """Return the path of the uv program that comes with the ``uv`` package, or None."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None


def resolve(wanted: Environment, interpreter: Interpreter, settings: SandboxSettings) -> tuple[str, ...]:
    """Resolve the environment's requirements and the runner's to exact ``name==version`` pins, sorted.

    Raises:
        InfraError: if uv is missing, or nothing satisfies the requirements; the message has uv's own words.
    """
    import json

    question = {
        "requirements": sorted(wanted.requirements),
        "runner": RUNNER_REQUIREMENTS,
        "as_of": wanted.as_of,
        "python": interpreter.version,
        "platform": interpreter.platform,
        "index": settings.indexes.public(),
    }
    key = digest.of(question)
    known = settings.cache / "pins" / f"{key}.json"
    with locked(settings.cache / "locks" / f"pins-{key}.lock", log=settings.log, what="resolving pins"):
        try:
            return tuple(json.loads(known.read_bytes())["pins"])
        except (OSError, ValueError, KeyError):
            pins = _compile(wanted, interpreter, settings)
            write_json(known, {**question, "pins": list(pins)})
            return pins


def _compile(wanted: Environment, interpreter: Interpreter, settings: SandboxSettings) -> tuple[str, ...]:
    uv = find_uv()
    if uv is None:
        raise InfraError(
            "cannot resolve the environment's requirements: the uv program is missing. Install it "
            "(pip install uv)",
            reason="no-uv",
        )
    settings.log(f"resolving {', '.join(wanted.requirements) or 'the test runner'}{_date(wanted)}")
    first = _run_uv(uv, wanted, interpreter, settings, RUNNER_REQUIREMENTS)
    if first.returncode != 0 and wanted.requirements:
        # The instance may need another version of a library that pytest uses too; only pytest is a must.
        first, hard = _run_uv(uv, wanted, interpreter, settings, RUNNER_REQUIREMENTS[:1]), first
        if first.returncode != 0:
            first = hard
    if first.returncode != 0:
        said = redact(decode(first.stderr), settings).strip()[-2000:]
        raise InfraError(
            f"uv pip compile found no versions for {list(wanted.requirements)}{_date(wanted)} on Python "
            f"{interpreter.version}: {said}\nCheck the requirements, the index settings and the "
            "network; an index without upload dates cannot resolve as of a date",
            reason="resolution",
        )
    lines = (line.split("#")[0].split(";")[0].strip() for line in decode(first.stdout).splitlines())
    return tuple(sorted(line for line in lines if line and not line.startswith("-")))


def _run_uv(
    uv: str,
    wanted: Environment,
    interpreter: Interpreter,
    settings: SandboxSettings,
    runner: tuple[str, ...],
) -> subprocess.CompletedProcess[bytes]:
    command = [
        uv, "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url",
        "--no-emit-find-links", "--python-version", interpreter.version,
        "--python-platform", interpreter.platform,
    ]  # fmt: skip
    if wanted.as_of:
        command += ["--exclude-newer", wanted.as_of]
        for pin in RUNNER_REQUIREMENTS:
            command += ["--exclude-newer-package", f"{pin.partition('==')[0]}={_RUNNER_DATE}"]
    asked = "\n".join([*runner, *wanted.requirements]) + "\n"
    # An empty folder: the configuration of the project that the user stands in takes no part.
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run(
                command,
                input=asked.encode(),
                capture_output=True,
                timeout=_TIMEOUT,
                check=False,
                cwd=Path(folder),
                env=uv_environment(settings),
            )
        except subprocess.TimeoutExpired as error:
            raise InfraError(
                f"uv pip compile did not end within {_TIMEOUT:.0f} s; is the package index reachable?",
                reason="resolution",
            ) from error
        except OSError as error:
            raise InfraError(f"cannot run {uv}: {error.strerror}", reason="no-uv") from error


def _date(wanted: Environment) -> str:
    return f" as of {wanted.as_of}" if wanted.as_of else ""
