"""``cmd:TEMPLATE``: a program of the user's, run in a private copy of the workspace.

On the host, or in a container made of an image of the user's (`core.enclosure`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..core.model import Review
from ..host import programs as commands
from ..text.diffs import DiffMap
from ..text.printable import clean
from ..text.secrets import passed_through, scrub, scrubbed
from . import host
from .reading import read_review

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePath

    from ..core.enclosure import Completed, Enclosure
    from ..core.reviewer import ReviewTask
    from ..core.settings import Settings
    from ..host.programs import Template

#: Beside ``{cwd}``, the folder that pytest was started in, and ``{python}``, the interpreter that runs it.
PLACEHOLDERS = ("base", "head", "diff", "workspace", "out", "title", "body", commands.FILES)
_WHAT = "--crbench-reviewer=cmd:"
#: Names in the folder that a program is given.
_REPOSITORY, _DIFF, _REVIEW = "repository", "change.diff", "review"


@dataclass(frozen=True)
class CommandReviewer:
    """A command line that prints its review, or writes it to the file ``{out}``."""

    template: Template
    settings: Settings
    #: Where the program runs, if not on the host.
    enclosure: Enclosure | None = None

    @property
    def name(self) -> str:
        """Short name for tables."""
        return self.settings.reviewer_name or f"cmd:{Path(self.template.words[0]).name}"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The command line and the options; what the program itself is, only its version can say."""
        template = scrubbed(scrub(clean(self.template.text), passed_through(self.settings.reviewer_env)))
        place = {} if self.enclosure is None else {"image": dict(self.enclosure.fingerprint)}
        return {"kind": "cmd", "template": template, **host.fingerprint_of(self.settings), **place}

    @property
    def shareable(self) -> bool:
        """Whether the user vouches, by a version, that the program is the same."""
        return self.settings.reviewer_version is not None

    def review(self, task: ReviewTask) -> Review:
        """Run the program once and read what it wrote.

        Raises:
            ReviewerError: ``crashed``, ``timeout``, ``unreadable`` or ``empty``.
            InfraError: if the private copy cannot be made, or the output cannot be kept.
        """
        files = [file.new for file in DiffMap(task.diff).files if file.new is not None]
        if not self.template.files(files):
            said = "no changed file is left at head that the command asks for: the program was not run"
            return Review((), self.name, warnings=(said,), noted={"not run: no file to look at": 1})
        with commands.private_folder() as folder:
            with commands.filling(folder):
                task.checkout(folder / _REPOSITORY)
                (folder / _DIFF).write_bytes(task.diff)
            if self.enclosure is None:
                done, raw = self._on_host(task, folder, files)
                root: PurePath = folder
            else:
                done, raw = self._enclosed(task, folder, files, self.enclosure)
                root = PurePosixPath(self.enclosure.root)
            return read_review(
                raw,
                format=self.settings.review_format,
                task=task,
                workspace=Path(root / _REPOSITORY),
                reviewer=self.name,
                raw_name=host.OUT if self._out else host.STDOUT,
                duration=done.duration,
            )

    def _on_host(self, task: ReviewTask, folder: Path, files: Sequence[str]) -> tuple[Completed, bytes]:
        return host.execute(
            self.template.fill(_values(task, folder), files),
            shown=self.template.words,
            cwd=folder / _REPOSITORY,
            env=commands.environment(self.settings.reviewer_env, folder / "tmp"),
            settings=self.settings,
            directory=task.directory,
            out=folder / self._out if self._out else None,
            log=task.log,
        )

    def _enclosed(
        self, task: ReviewTask, folder: Path, files: Sequence[str], enclosure: Enclosure
    ) -> tuple[Completed, bytes]:
        settings, shown = self.settings, self.template.words
        host.begin(shown, task.directory, task.log)
        ended = enclosure.run(
            self.template.fill(_values(task, PurePosixPath(enclosure.root)), files),
            folder=folder,
            cwd=_REPOSITORY,
            env=commands.variables(settings.reviewer_env),
            timeout=settings.reviewer_timeout,
            output_limit=host.OUTPUT_LIMIT,
            out=self._out,
        )
        return host.keep(ended, shown=shown, settings=settings, directory=task.directory, log=task.log)

    @property
    def _out(self) -> str | None:
        return _REVIEW if self.template.uses("out") else None


def _values(task: ReviewTask, root: PurePath) -> dict[str, str]:
    """What the placeholders stand for, where ``root`` is the folder that the program sees."""
    request = task.pull_request
    return {
        "base": request.base,
        "head": request.head,
        "diff": str(root / _DIFF),
        "workspace": str(root / _REPOSITORY),
        "out": str(root / _REVIEW),
        "title": request.title.replace("\0", ""),
        "body": request.body.replace("\0", ""),
    }


def command_reviewer(
    template: str, settings: Settings, cwd: Path, enclosure: Enclosure | None = None
) -> CommandReviewer:
    """Make the reviewer of a command template.

    The program is looked up now: in the enclosure, or in PATH and beside our interpreter; one that is named
    by a relative path is relative to ``cwd``, since the command itself runs in the workspace.

    Raises:
        UsageError: for a bad template, or a program that there is not.
    """
    read = commands.template(template, PLACEHOLDERS, what=_WHAT, cwd=cwd, here=enclosure is None)
    if enclosure is not None:
        enclosure.require(commands.fill(read.words[0], {}))
    return CommandReviewer(read, settings, enclosure)
