"""Runs a Python hidden test with pytest so that nothing in the tree steers the run.

The test lies outside the tree, between canaries that must pass and must fail, under names that cannot be told
from its own. Configuration, root, conftest and plugins are ours; the tree reaches ``sys.path`` by our
configuration alone, and only if the test may import it. docs/design.md lists each measure and its reason.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import secrets
import shlex
import sys
import tarfile
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError
from ...core.model import File
from ...core.runner import Observation, Runner
from ...host import digest
from ...text import plainjson
from .decide import DISK_FULL, needs_tree_on_path, test_names
from .observe import observe

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...core.model import Check, Environment
    from ...core.runner import Ending
    from ...core.sandbox import ExecResult, Sandbox

_RECORD_LIMIT = 4 * 1024**2  # bytes; of one test file and its canaries
_OUTPUT_LIMIT = 256 * 1024
#: Seconds that the supervisor gets to start and to write its result, beyond the hidden test's own limit.
_SLACK = 20.0
#: Modules that pytest imports late: one of these names at an import root would run in pytest's place.
_RUNNER_MODULES = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py"})
_ALTERED = "something in the sandbox overwrote the result of the test run"
#: The supervisor's exit status where the disk is full.
_DISK_STATUS = 74
#: Last suffixes of files that Python imports.
_CODE = frozenset({"py", "pyc", "so", "pyd"})
_PASS = "def {name}():\n    values = [n * n for n in range({n})]\n    assert sum(values) == {right}\n"
_FAIL = "def {name}():\n    values = [n * n for n in range({n})]\n    assert sum(values) == {right} + 1\n"


@dataclass(frozen=True)
class _Layout:
    """Where one run's files lie in the sandbox, and which test file is which."""

    folder: str
    result: str
    #: The key that the supervisor seals its result with, in hexadecimal.
    seal: str
    hidden: str
    must_pass: tuple[str, str]
    must_fail: tuple[str, str]

    @property
    def order(self) -> tuple[str, ...]:
        return (self.must_pass[0], self.must_fail[0], self.hidden, self.must_pass[1], self.must_fail[1])


class PytestRunner(Runner):
    """The runner for Python tests; see `core.runner.Runner`."""

    name = "pytest"

    @property
    def version(self) -> str:
        """Digest of the programs that run inside the sandbox, of how they are called and read."""
        return own_version()

    def run(
        self,
        sandbox: Sandbox,
        check: Check,
        environment: Environment,
        *,
        tops: Sequence[str],
        changed: Sequence[File],
        deleted: Sequence[str],
        timeout: float,
    ) -> Observation:
        """Apply a revision's files and run the hidden test of ``check``; see the protocol."""
        layout = _layout(sandbox)
        roots = _roots(sandbox, environment, check)
        files = _files(check, layout, roots, tops)
        files.append(_plan(sandbox, layout, deleted, timeout))
        files.append(File("changes.tar", _tar(changed)))
        sandbox.put(files, layout.folder)
        done = sandbox.exec(
            [sandbox.python, "-I", f"{layout.folder}/supervise.py"],
            timeout=timeout + _SLACK,
            cwd=layout.folder,
        )
        sealed = _sealed(sandbox, layout.result)
        result = unseal(sealed, layout.seal) if sealed is not None else None
        if result is None:
            died = _died(done)
            # The supervisor ends with 0 only after it has written its result.
            lost = sealed is not None or done.returncode == 0
            return replace(died, canaries="bent", bent=_ALTERED) if lost else died
        where = roots or [sandbox.workdir]
        return observe(
            result,
            hidden=layout.hidden,
            must_pass=layout.must_pass,
            must_fail=layout.must_fail,
            expected=test_names(check.test),
            tops=tops,
            roots=where,
            oom=done.oom_killed,
        )

    def steers(self, path: str, environment: Environment, installed: Collection[str] = ()) -> bool:
        """Whether a file would, at an import root, stand in for a library's module, or one of the runner's.

        ``conftest.py``, ``pytest.ini`` and their kind need no such care: they lie where nothing looks.
        """
        for root in environment.import_roots:
            prefix = "" if root in (".", "") else root.rstrip("/") + "/"
            if not path.startswith(prefix):
                continue
            top = _importable(path[len(prefix) :])
            if top in sys.stdlib_module_names or top in _RUNNER_MODULES or top in installed:
                return True
        return False


RUNNER = PytestRunner()


def _importable(path: str) -> str:
    """Name of the top-level module that a file makes importable from its root; "" if it makes none.

    A folder without ``__init__`` hides no module of its name, nor does a file of another kind. A name without
    a suffix may be a link to a package.
    """
    top, *rest = path.split("/")
    name, dot, suffix = top.partition(".")
    if rest:
        name, (stem, dot, suffix) = top, rest[0].partition(".")
        if len(rest) > 1 or stem != "__init__":
            return ""
    return name if not dot or suffix.rpartition(".")[2] in _CODE else ""


def _layout(sandbox: Sandbox) -> _Layout:
    tokens = [secrets.token_hex(4) for _ in range(7)]
    names = [f"test_{token}.py" for token in tokens[:5]]
    return _Layout(
        folder=f"{sandbox.scratch}/{tokens[5]}",
        result=f"{sandbox.scratch}/{tokens[5]}/{tokens[6]}",
        seal=secrets.token_hex(32),
        hidden=names[0],
        must_pass=(names[1], names[2]),
        must_fail=(names[3], names[4]),
    )


def _roots(sandbox: Sandbox, environment: Environment, check: Check) -> list[str]:
    if check.kind == "structural" and not needs_tree_on_path(check.test):
        return []
    return [
        sandbox.workdir if root in (".", "") else f"{sandbox.workdir}/{root.strip('/')}"
        for root in environment.import_roots
    ]


def _files(check: Check, layout: _Layout, roots: list[str], tops: Sequence[str]) -> list[File]:
    named = min(test_names(check.test), default="test_it").rpartition("::")[2]
    ini = "[pytest]\npython_files = test_*.py\nconsole_output_style = classic\naddopts =\npythonpath =\n"
    # pytest splits the value as a shell would.
    ini += "".join(f"    {shlex.quote(root)}\n" for root in roots)
    texts = {
        "pytest.ini": ini,
        "order": "\n".join(layout.order),
        "tops": "\n".join(tops),
        "recorder.py": _inside("recorder.py"),
        "intact.py": _inside("intact.py"),
        "executed.py": _inside("executed.py"),
        "launch.py": _inside("launch.py"),
        "supervise.py": _inside("supervise.py"),
        layout.hidden: check.test,
    }
    for index, (must_pass, must_fail) in enumerate(zip(layout.must_pass, layout.must_fail, strict=True)):
        count = 3 + secrets.randbelow(7) + index
        numbers = {"name": named, "n": count, "right": sum(n * n for n in range(count))}
        texts[must_pass] = _PASS.format(**numbers)
        texts[must_fail] = _FAIL.format(**numbers)
    return [File(name, text.encode()) for name, text in texts.items()]


def _plan(sandbox: Sandbox, layout: _Layout, deleted: Sequence[str], timeout: float) -> File:
    plan = {
        "workdir": sandbox.workdir,
        "deleted": list(deleted),
        "launcher": f"{layout.folder}/launch.py",
        "result": layout.result,
        "seal": layout.seal,
        "timeout": timeout,
        "record_limit": _RECORD_LIMIT,
        "output_limit": _OUTPUT_LIMIT,
        "env": {
            "PATH": f"{sandbox.python.rpartition('/')[0]}:/usr/local/bin:/usr/bin:/bin",
            "HOME": sandbox.scratch,
            "TMPDIR": sandbox.scratch,
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    }
    return File("plan.json", json.dumps(plan).encode())


def _tar(changed: Sequence[File]) -> bytes:
    """Pack a revision's files; the supervisor writes them after the deletions: a folder may have to go."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in changed:
            member = tarfile.TarInfo(file.path)
            if file.mode == "120000":
                member.type = tarfile.SYMTYPE
                member.linkname = os.fsdecode(file.content)
            else:
                member.size = len(file.content)
                member.mode = 0o755 if file.mode == "100755" else 0o644
            archive.addfile(member, io.BytesIO(file.content) if member.size else None)
    return buffer.getvalue()


def _sealed(sandbox: Sandbox, path: str) -> bytes | None:
    """Read what stands where the result should be: all of it is the revision's doing; None for no file.

    Raises:
        InfraError: if the sandbox or its engine failed.
    """
    try:
        return sandbox.get(path)
    except FileNotFoundError:
        return None
    except InfraError as error:
        if error.reason != "too-large":  # the supervisor writes less
            raise
        return b""


def _died(done: ExecResult) -> Observation:
    """Tell why the supervisor left no result: our outer limit, the memory limit, or somebody's kill.

    Raises:
        InfraError: if it found the disk full.
    """
    # Not its message: that may quote a path, and so hold any words that the revision chooses.
    if done.returncode == _DISK_STATUS:
        raise InfraError(DISK_FULL, reason="disk")
    ending: Ending = "timed-out" if done.timed_out else "out-of-memory" if done.oom_killed else "crashed"
    return Observation(
        outcome="absent",
        ending=ending,
        canaries="absent",
        message=f"the test's supervisor ended without a result (exit status {done.returncode})",
        log=done.stdout + done.stderr,
        duration=done.duration,
    )


def unseal(sealed: bytes, seal: str) -> dict[str, Any] | None:
    """Return the supervisor's result; None if another wrote it (the supervisor replaces a whole file)."""
    mac, _newline, text = sealed.partition(b"\n")
    own = hashlib.blake2b(text, key=bytes.fromhex(seal), digest_size=32).hexdigest().encode()
    if not hmac.compare_digest(mac, own):
        return None
    try:
        result: dict[str, Any] = plainjson.parse(text)
    except ValueError:  # a record in it that the test's process wrote is nested absurdly
        return None
    return result


def _inside(name: str) -> str:
    return resources.files(__package__).joinpath("inside", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def own_version() -> str:
    """Digest of every module of this package, and of those that run in the sandbox."""
    package = Path(__file__).parent
    files = sorted([*package.glob("*.py"), *package.glob("inside/*.py")])
    return digest.of({file.relative_to(package).as_posix(): digest.of_file(file) for file in files})[:16]
