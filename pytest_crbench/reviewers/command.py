"""``cmd:TEMPLATE``: a program of the user's, run on the host in a private copy of the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import commands
from ..core.secrets import passed_through, scrub
from ..core.text import clean
from . import host
from .reading import read_review

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.commands import Template
    from ..core.model import Review
    from .options import ReviewerOptions
    from .protocol import ReviewTask

#: Beside ``{cwd}``, the folder that pytest was started in, and ``{python}``, the interpreter that runs it.
PLACEHOLDERS = ("base", "head", "diff", "workspace", "out", "title", "body")
_WHAT = "--crbench-reviewer=cmd:"


@dataclass(frozen=True)
class CommandReviewer:
    """A command line that prints its review, or writes it to the file ``{out}``."""

    template: Template
    options: ReviewerOptions

    @property
    def name(self) -> str:
        """Short name for tables."""
        return self.options.name or f"cmd:{Path(self.template.words[0]).name}"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The command line and the options; what the program itself is, only its version can say."""
        template = scrub(clean(self.template.text), passed_through(self.options.environment))
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
        with commands.private_folder() as folder:
            values = self._values(task, folder)
            workspace = Path(values["workspace"])
            out = Path(values["out"]) if self.template.uses("out") else None
            done, raw = host.execute(
                self.template.fill(values),
                shown=self.template.words,
                cwd=workspace,
                env=commands.environment(self.options.environment, folder / "tmp"),
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

    def _values(self, task: ReviewTask, folder: Path) -> dict[str, str]:
        """Make what the placeholders name, all in ``folder``."""
        with commands.filling(folder):
            task.checkout(folder / "repository")
            (folder / "change.diff").write_bytes(task.diff)
        request = task.pull_request
        return {
            "base": request.base,
            "head": request.head,
            "diff": str(folder / "change.diff"),
            "workspace": str(folder / "repository"),
            "out": str(folder / "review"),
            "title": request.title.replace("\0", ""),
            "body": request.body.replace("\0", ""),
        }


def command_reviewer(template: str, options: ReviewerOptions, cwd: Path) -> CommandReviewer:
    """Make the reviewer of a command template.

    The program is looked up now, in PATH and beside our interpreter; one that is named by a relative path is
    relative to ``cwd``, since the command itself runs in the workspace.

    Raises:
        UsageError: for a bad template, or a program that there is not.
    """
    return CommandReviewer(commands.template(template, PLACEHOLDERS, what=_WHAT, cwd=cwd), options)
