"""``cmd:TEMPLATE``: a program of the user's, run on the host in a private copy of the workspace."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UsageError
from . import host
from .reading import read_review
from .templates import fill, placeholders, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import Review
    from .options import ReviewerOptions
    from .protocol import ReviewTask

#: ``{cwd}`` is the folder that pytest was started in, ``{python}`` the interpreter that runs it.
PLACEHOLDERS = ("base", "head", "diff", "workspace", "out", "title", "body", "cwd", "python")
_WHAT = "--crbench-reviewer=cmd:"


@dataclass(frozen=True)
class CommandReviewer:
    """A command line that prints its review, or writes it to the file ``{out}``."""

    template: str
    argv: tuple[str, ...]
    cwd: Path
    options: ReviewerOptions

    @property
    def name(self) -> str:
        """Short name for tables."""
        return self.options.name or f"cmd:{Path(self.argv[0]).name}"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The command line and the options; what the program itself is, only its version can say."""
        template = host.scrub(self.template.encode("utf-8", "replace"), host.secrets(self.options)).decode()
        return {"kind": "cmd", "template": template, **self.options.fingerprint()}

    @property
    def shareable(self) -> bool:
        """Whether the user vouches, by a version, that the program is the same."""
        return self.options.version is not None

    def review(self, task: ReviewTask) -> Review:
        """Run the program once and read what it wrote.

        Raises:
            ReviewerError: ``crashed``, ``timeout``, ``unreadable`` or ``empty``.
            InfraError: if the private copy cannot be made, or the output cannot be kept.
        """
        with host.private_folder() as folder:
            values = self._values(task, folder)
            workspace = Path(values["workspace"])
            out = Path(values["out"]) if self._uses("out") else None
            done, raw = host.execute(
                [fill(word, values) for word in self.argv],
                shown=self.argv,
                cwd=workspace,
                env=host.environment(self.options, folder / "tmp"),
                options=self.options,
                directory=task.directory,
                out=out,
                log=task.log,
            )
            return read_review(
                raw,
                format=self.options.format,
                task=task,
                workspace=workspace,
                reviewer=self.name,
                raw_name=host.STDOUT if out is None else host.OUT,
                duration=done.duration,
            )

    def _uses(self, name: str) -> bool:
        return any(name in placeholders(word, PLACEHOLDERS, _WHAT) for word in self.argv)

    def _values(self, task: ReviewTask, folder: Path) -> dict[str, str]:
        """Make what the placeholders name, all in ``folder``."""
        try:
            task.checkout(folder / "repository")
            (folder / "change.diff").write_bytes(task.diff)
        except OSError as error:
            raise InfraError(
                f"cannot copy the workspace to {folder}: {error.strerror}. Free some space, or set TMPDIR "
                "to a folder that has some.",
                reason="disk",
            ) from error
        request = task.pull_request
        return {
            "base": request.base,
            "head": request.head,
            "diff": str(folder / "change.diff"),
            "workspace": str(folder / "repository"),
            "out": str(folder / "review"),
            "title": request.title.replace("\0", ""),
            "body": request.body.replace("\0", ""),
            "cwd": str(self.cwd),
            "python": sys.executable,
        }


def command_reviewer(template: str, options: ReviewerOptions, cwd: Path) -> CommandReviewer:
    """Make the reviewer of a command template.

    The program is looked up now, in PATH and beside our interpreter; one that is named by a relative path is
    relative to ``cwd``, since the command itself runs in the workspace.

    Raises:
        UsageError: for a bad template, or a program that there is not.
    """
    argv = words(template, PLACEHOLDERS, _WHAT)
    program = argv[0]
    if placeholders(program, PLACEHOLDERS, _WHAT) - {"cwd", "python"}:
        raise UsageError(
            f"{_WHAT} the program {program!r} can only hold the placeholders {{cwd}} and {{python}}"
        )
    filled = fill(program, {"cwd": str(cwd), "python": sys.executable})
    if "/" in filled:
        filled = str(cwd / filled)
    found = shutil.which(filled, path=host.search_path())
    if found is None:
        raise UsageError(
            f"{_WHAT} there is no program {program!r} (looked "
            + (f"at {filled}" if "/" in filled else "in PATH and beside the interpreter that runs pytest")
            + "). Install it, or give its path; {cwd} stands for the folder that pytest is started in."
        )
    # Braces of a found path are literal.
    escaped = str(Path(cwd, found)).replace("{", "{{").replace("}", "}}")
    return CommandReviewer(template, (escaped, *argv[1:]), cwd, options)
