"""Where attacks on a verdict take place: a small pull request, judged as a run does or by a plain harness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_crbench.core.errors import StageError
from pytest_crbench.core.model import (
    Changes,
    Check,
    Environment,
    File,
    Instance,
    ReviewComment,
    Source,
    Tree,
    Trees,
)
from pytest_crbench.core.sandbox import ExecResult, Limits, Sandbox
from pytest_crbench.core.status import Status
from pytest_crbench.evaluation.evaluator import Evaluator
from pytest_crbench.evaluation.store import Store
from pytest_crbench.host import digest
from pytest_crbench.scoring.tests.hidden_tests import HiddenTestDecider, HiddenTests

#: The pull request's head: ``tax()`` is wrong, and the hidden test wants it right.
HEAD = {"shop/__init__.py": "", "shop/tax.py": "def tax():\n    return 'wrong'\n"}
HIDDEN = "from shop.tax import tax\n\n\ndef test_tax():\n    assert tax() == 'right'\n"
FIX = {"shop/tax.py": "def tax():\n    return 'right'\n"}
#: What a revision without any effect is given.
UNTOUCHED = "failed: AssertionError: assert 'wrong' == 'right'"
ENVIRONMENT = Environment(python=">=3.8")

#: For an attack that is no other in the local sandbox, or must not be tried there.
docker_only = pytest.mark.parametrize(
    "arena", [pytest.param("docker", marks=pytest.mark.docker)], indirect=True
)

Files = Mapping[str, str | bytes | File]


@dataclass(frozen=True)
class Ruling:
    """What a verdict says; ``log`` is the output of the test's run ("" where there was none)."""

    status: Status
    reason: str
    warnings: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True)
class Arena:
    """Judges revisions of one pull request in one kind of sandbox, through the stage that runs use."""

    name: str
    backend: Any
    shared: Path
    place: Path

    def rule(
        self,
        revision: Files,
        *,
        deleted: tuple[str, ...] = (),
        head: Files = HEAD,
        test: str = HIDDEN,
        kind: str = "behavioral",
        timeout: float = 60.0,
        limits: Limits | None = None,
        environment: Environment = ENVIRONMENT,
    ) -> Ruling:
        """Return the verdict on a revision, given as its files."""
        check = Check("tax", ReviewComment(id="tax", body="wrong"), kind, "Security", test, digest.of(test))  # type: ignore[arg-type]
        tree = _tree(self.place, head)
        evaluator = self._evaluator(tree, limits or Limits(), timeout)
        evaluation = evaluator.at(_instance(check, environment))
        evaluation.__dict__["changes"] = Changes(tuple(as_files(revision)), deleted)
        try:
            said = HiddenTests(evaluation).judge(check)
        except StageError as error:
            return Ruling(error.status, str(error), log=self._log(evaluation.directory))
        log = self._log(evaluation.directory)
        return Ruling(Status(said["status"]), said["reason"], tuple(said["warnings"]), log)

    def _evaluator(self, tree: Tree, limits: Limits, timeout: float) -> Evaluator:
        def unused(*_given: Any) -> Any:
            raise AssertionError("a verdict asks for no review and no revision")

        return Evaluator(
            reviewer=None,  # type: ignore[arg-type]
            agent=None,  # type: ignore[arg-type]
            backend=self.backend,
            deciders={"tests": HiddenTestDecider()},
            trees=lambda *_given: Trees(tree, tree),
            workspace=unused,
            capture=unused,
            changes=unused,
            run=self.place,
            store=Store(self.place),
            # The run at head is shared between attacks, as it is between the runs of a user.
            shared=Store(self.shared, rerun=frozenset(Status)),
            log=lambda _name, _line: None,
            limits=limits,
            test_timeout=timeout,
        )

    def _log(self, directory: Path) -> str:
        file = directory / "checks" / "tax.log"
        return file.read_text("utf-8", "replace") if file.exists() else ""


def _instance(check: Check, environment: Environment) -> Instance:
    source = Source(kind="tree", base=Path("base"), head=Path("head"))
    return Instance(
        dataset="attacks",
        id="shop",
        language="Python",
        origin="pull_request",
        source=source,
        title="Add taxes",
        body="",
        environment=environment,
        checks=(check,),
        digest=check.digest,
    )


def as_files(files: Files) -> list[File]:
    """Files of a revision: text, bytes, or a `File` for a mode of its own (``link`` makes one)."""
    return [
        content
        if isinstance(content, File)
        else File(path, content if isinstance(content, bytes) else content.encode())
        for path, content in files.items()
    ]


def link(path: str, target: str) -> dict[str, File]:
    """A symbolic link, as a revision brings it."""
    return {path: File(path, target.encode(), "120000")}


def write(folder: Path, files: Files) -> None:
    """Write files below a folder, in the careless way: whatever stands there is written through."""
    for file in as_files(files):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.mode == "120000":
            path.unlink(missing_ok=True)
            path.symlink_to(file.content.decode())
        else:
            path.write_bytes(file.content)
            path.chmod(0o755 if file.mode == "100755" else 0o644)


def _named(files: Files) -> str:
    return digest.of([[f.path, f.mode, f.content.hex()] for f in as_files(files)])


def _tree(place: Path, files: Files) -> Tree:
    folder = place / "trees" / _named(files)[:16]
    if not folder.exists():
        write(folder, files)
    return Tree(folder, digest.of_tree(folder))


@dataclass(frozen=True)
class Plain:
    """Where naive harnesses work: plain sandboxes, in which nothing is done about attacks."""

    backend: Any
    place: Path
    _done: dict[str, ExecResult] = field(default_factory=dict)

    @contextmanager
    def open(self, files: Files, limits: Limits | None = None) -> Iterator[Sandbox]:
        """Open a sandbox that holds exactly these files; what runs in it is the caller's."""
        ref = self.backend.environment(ENVIRONMENT)
        with self.backend.open(ref, _tree(self.place, files), limits=limits or Limits()) as sandbox:
            yield sandbox

    def run(self, files: Files, *command: str, env: Mapping[str, str] | None = None) -> ExecResult:
        """Run one command over these files: once, however often an attack is parametrised.

        ``{python}`` and ``{tree}`` in the command and in ``env`` stand for the sandbox's.
        """
        name = digest.of([_named(files), command, dict(env or {})])
        if name not in self._done:
            with self.open(files) as sandbox:
                known = {"python": sandbox.python, "tree": sandbox.workdir}
                argv = [word.format(**known) for word in command]
                given = {key: value.format(**known) for key, value in (env or {}).items()}
                self._done[name] = sandbox.exec(argv, timeout=60, env=given)
        return self._done[name]


def assert_no_pass(ruling: Ruling, *said: str, status: Status | None = None) -> None:
    """The attack made no pass, and the check stays in the strict rate: it is missed, or called tampered."""
    assert ruling.status is not Status.PASSED, "the attack made a pass"
    assert ruling.status in (Status.MISSED, Status.TAMPERED), (
        f"it left the rate: {ruling.status}: {ruling.reason}"
    )
    assert status in (None, ruling.status), f"not {status}: {ruling.status}: {ruling.reason}"
    for words in said:
        assert words in ruling.reason, f"not named: {ruling.status}: {ruling.reason}"


def assert_inert(ruling: Ruling) -> None:
    """The attack made no difference: the verdict is that of an empty revision, to the letter."""
    assert ruling.status is not Status.PASSED, "the attack made a pass"
    same = (ruling.status, ruling.reason) == (Status.MISSED, UNTOUCHED)
    assert same, f"the attack was felt: {ruling.status}: {ruling.reason}"


def assert_passed(ruling: Ruling) -> None:
    """An honest fix has its pass."""
    assert ruling.status is Status.PASSED, f"a pass was lost: {ruling.status}: {ruling.reason}"


def executable(path: str, text: str) -> File:
    """A program, as a revision brings it."""
    return File(path, text.encode(), "100755")
