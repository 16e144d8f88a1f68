"""``module:attribute``, and reviewers registered by entry points: callables, each in its own process."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import OutsideFailure
from ..core.errors import ReviewerError, UsageError, outside_failure
from ..core.settings import Settings
from ..host import processes
from ..host import programs as commands
from ..host.files import write_atomic
from ..host.programs import filling, private_folder, variables_fingerprint
from ..text.printable import clean, decode, printable
from ..text.secrets import passed_through, scrub, within_reach
from . import child, host
from .reading import read_review

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.model import Review
    from ..core.reviewer import ReviewTask

#: Seconds for the import that tells at the start whether the callable is there.
_CHECK_TIMEOUT = 60.0


@dataclass(frozen=True)
class PythonReviewer:
    """A callable ``(PullRequest, workspace: Path) -> Review | Iterable[ReviewComment]``."""

    name: str
    spec: str
    cwd: Path
    settings: Settings

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """What was named, and the options; what the code is, only its version can say."""
        options = {key: value for key, value in host.fingerprint_of(self.settings).items() if key != "format"}
        return {"kind": "python", "spec": self.spec, **options}

    @property
    def shareable(self) -> bool:
        """Whether the user vouches, by a version, that the code is the same."""
        return self.settings.reviewer_version is not None

    def review(self, task: ReviewTask) -> Review:
        """Call the callable once.

        Raises:
            ReviewerError: ``crashed`` (it raised or exited), ``timeout``, ``unreadable`` or ``empty``.
            InfraError: if the private copy cannot be made, or the output cannot be kept.
        """
        with commands.private_folder() as folder:
            workspace, out = folder / "repository", folder / "review"
            request = {
                "pull_request": asdict(task.pull_request),
                "workspace": str(workspace),
                "sys_path": search_path(self.cwd),
            }
            with commands.filling(folder):
                task.checkout(workspace)
                (folder / "request").write_text(json.dumps(request), "utf-8")
            done, raw = host.execute(
                _argv("review", self.spec, str(folder / "request"), str(out)),
                shown=[self.spec],
                cwd=self.cwd,
                env=_environment(self.settings, folder),
                settings=self.settings,
                directory=task.directory,
                out=out,
                log=task.log,
            )
            return read_review(
                raw,
                format="native",
                task=task,
                workspace=workspace,
                reviewer=self.name,
                raw_name=host.OUT,
                duration=done.duration,
            )


def python_reviewer(
    name: str, spec: str, settings: Settings, cwd: Path, origin: str = ""
) -> PythonReviewer | None:
    """Make the reviewer of a callable, after a look (in another process) whether it is there.

    None: ``spec`` names a `ReviewerKind`. ``origin`` says where another package has registered it.

    Raises:
        UsageError: if it cannot be imported, or is nothing that can be called.
        InfraError: if no folder for the look can be made.
    """
    with commands.private_folder() as folder:
        (folder / "request").write_text(json.dumps({"sys_path": search_path(cwd)}), "utf-8")
        done = processes.run(
            _argv("check", spec, str(folder / "request")),
            cwd=cwd,
            env=_environment(settings, folder),
            timeout=min(settings.reviewer_timeout, _CHECK_TIMEOUT),
        )
    if done.returncode == child.KIND:
        return None
    if done.returncode == 0:
        # Exit statuses are those of our own child: that a linter may exit with 1 does not concern it.
        fine = replace(settings, reviewer_exit_ok=(0,))
        return PythonReviewer(settings.reviewer_name or name, spec, cwd, fine)
    lines = decode(scrub(done.stderr, passed_through(settings.reviewer_env))).strip().splitlines()
    said = printable(lines[-1]) if lines else f"exit status {done.returncode}"
    if done.timed_out:
        said = f"its import took longer than {min(settings.reviewer_timeout, _CHECK_TIMEOUT):g} s"
    raise UsageError(
        f"--crbench-reviewer={name}: cannot use {spec!r}: {said}. It is imported as from {cwd}; it must be a "
        "callable (PullRequest, workspace) -> comments. For a program write cmd:PROGRAM ARGUMENTS. Variables "
        "that it needs are named with --crbench-reviewer-env."
        + (f" It is {origin}: repair or uninstall that package." if origin else "")
    )


def search_path(cwd: Path) -> list[str]:
    """Return where modules are looked for: the folder that pytest was started in, then as in this process."""
    here = str(cwd)
    return [here, *(str(cwd / entry) for entry in sys.path if str(cwd / entry) != here)]


def _argv(*arguments: str) -> list[str]:
    # -P: a module of the user's folder must not stand in for one of ours before sys.path is set.
    return [sys.executable, "-P", "-m", "pytest_crbench.reviewers.child", *arguments]


def _environment(settings: Settings, folder: Path) -> dict[str, str]:
    """The ordinary environment; where this package is found must hold for the child as well."""
    package = str(Path(__file__).resolve().parents[2])
    theirs = commands.variables(settings.reviewer_env).get("PYTHONPATH")
    paths = [package, *([theirs] if theirs is not None else [])]
    return {
        **commands.environment(settings.reviewer_env, folder / "tmp"),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


__all__ = ["PythonReviewer", "child", "python_reviewer", "search_path"]


@dataclass(frozen=True)
class InProcessReviewer:
    """Calls ``function(pull_request, workspace)``. No time limit holds: use ``module:attribute`` for one."""

    function: Callable[..., Any]
    settings: Settings = field(default_factory=Settings)

    @property
    def name(self) -> str:
        """The name given, or the callable's own."""
        own = str(getattr(self.function, "__name__", type(self.function).__name__))
        return self.settings.reviewer_name or own

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Name, version and variables: the code of a callable cannot be looked into."""
        named = {"kind": "in-process", "name": self.name, "version": self.settings.reviewer_version}
        return {**named, **variables_fingerprint(self.settings.reviewer_env)}

    @property
    def shareable(self) -> bool:
        """Whether the user vouches, by a version, that the code is the same."""
        return self.settings.reviewer_version is not None

    def review(self, task: ReviewTask) -> Review:
        """Call the callable once.

        Raises:
            ReviewerError: ``crashed`` if it raises, ``unreadable`` if what it returns is no review.
            InfraError: if the private copy cannot be made, or ``reviewer-outside`` if it raises
                `OutsideFailure`.
        """
        began = time.monotonic()
        # Taken before: a callable may change the variables of this process.
        secrets = (*passed_through(self.settings.reviewer_env), *within_reach())
        with private_folder() as folder:
            workspace = folder / "repository"
            with filling(folder):
                task.checkout(workspace)
            try:
                said = child.native(self.function(task.pull_request, workspace))
                raw = scrub(json.dumps(said).encode(), secrets)
            except OutsideFailure as error:
                raise outside_failure("reviewer", self.name, scrub(str(error), secrets)) from None
            except Exception as error:
                trace = scrub(clean(traceback.format_exc()), secrets)
                write_atomic(task.directory / host.STDERR, trace.encode())
                words = printable(scrub(str(error), secrets))
                # Without the cause: its own words may hold what was taken out here.
                raise ReviewerError(
                    f"the reviewer {self.name} raised {type(error).__name__}: {words}. All of it: "
                    f"{task.directory / host.STDERR}",
                    reason="crashed",
                ) from None
            write_atomic(task.directory / host.OUT, raw)
            return read_review(
                raw,
                format="native",
                task=task,
                workspace=workspace,
                reviewer=self.name,
                raw_name=host.OUT,
                duration=time.monotonic() - began,
            )
