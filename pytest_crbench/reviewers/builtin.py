"""``file:TEMPLATE``: reviews that were made elsewhere, one file for each instance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ReviewerError, UsageError
from ..core.model import Review
from ..host.files import write_atomic
from ..host.programs import check, fill
from ..text.printable import printable
from . import host
from .formats.draft import take_suggestion
from .reading import flag_warnings, flagged, read_review

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import ReviewComment
    from ..core.reviewer import ReviewTask
    from ..core.settings import Settings

PLACEHOLDERS = ("instance", "dataset", "repeat")
_WHAT = "--crbench-reviewer=file:"


@dataclass(frozen=True)
class FileReviewer:
    """Reads ``TEMPLATE`` with ``{instance}``, ``{dataset}`` and ``{repeat}`` filled, relative to ``cwd``."""

    template: str
    cwd: Path
    settings: Settings
    #: The files may have changed since another run read them.
    shareable: bool = False
    needs_repository: bool = False

    @property
    def name(self) -> str:
        """Short name for tables."""
        return self.settings.reviewer_name or f"file:{Path(self.template).name}"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The template, and how the files are read."""
        return {
            "kind": "file",
            "template": self.template,
            "format": self.settings.review_format,
            "version": self.settings.reviewer_version,
        }

    def review(self, task: ReviewTask) -> Review:
        """Read the instance's file, and keep a copy of it.

        Raises:
            ReviewerError: ``missing`` if there is no such file, ``empty`` or ``unreadable``.
            InfraError: if the copy cannot be kept.
        """
        values = {
            "instance": task.instance.id,
            "dataset": task.instance.dataset,
            "repeat": str(task.repeat),
        }
        path = self.cwd / fill(self.template, values)
        try:
            with path.open("rb") as stream:
                raw = stream.read(host.OUTPUT_LIMIT + 1)
        except (OSError, ValueError) as error:
            raise ReviewerError(
                f"no review in {printable(str(path))}: {getattr(error, 'strerror', None) or error}. Every "
                "selected instance needs a file; a clean review is a file that says so.",
                reason="missing",
            ) from error
        if len(raw) > host.OUTPUT_LIMIT:
            raise ReviewerError(f"{path} has more than {host.OUTPUT_LIMIT} bytes", reason="unreadable")
        write_atomic(task.directory / host.OUT, raw)
        return read_review(
            raw,
            format=self.settings.review_format,
            task=task,
            workspace=None,
            reviewer=self.name,
            raw_name=host.OUT,
        )


def file_reviewer(template: str, settings: Settings, cwd: Path) -> FileReviewer:
    """Make the reviewer of a file template.

    Raises:
        UsageError: for a placeholder that is not known, or a template without ``{instance}``.
    """
    if "instance" not in check(template, PLACEHOLDERS, _WHAT):
        raise UsageError(
            f"{_WHAT} {printable(template)!r} names the same file for every pull request; put "
            "{instance} in it."
        )
    return FileReviewer(template, cwd, settings)


@dataclass(frozen=True)
class HumanReviewer:
    """Says what the human reviewers said, with their suggestions or (``human:bare``) without."""

    suggestions: bool = True
    #: Taking it over from another run saves nothing.
    shareable: bool = False
    needs_repository: bool = False

    @property
    def name(self) -> str:
        """Short name for tables."""
        return "human" if self.suggestions else "human:bare"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """What decides the review, beside the instance."""
        return {"kind": "human", "suggestions": self.suggestions}

    def review(self, task: ReviewTask) -> Review:
        """Return the comments of the instance's checks, each once, under the ids of the dataset."""
        said = dict.fromkeys(check.comment for check in task.instance.checks)
        comments = [comment if self.suggestions else _bare(comment) for comment in said]
        found = flagged(comments, in_diff=task.shows)
        return Review(comments=found, reviewer=self.name, warnings=flag_warnings(found))


@dataclass(frozen=True)
class NoReviewer:
    """Says nothing: the floor that every reviewer is measured against."""

    name: str = "none"
    fingerprint: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"})
    shareable: bool = False
    needs_repository: bool = False

    def review(self, task: ReviewTask) -> Review:
        """Return a clean review."""
        return Review(comments=(), reviewer=self.name)


def _bare(comment: ReviewComment) -> ReviewComment:
    body, _, _ = take_suggestion(comment.body)
    return replace(comment, body=body, suggestion=None)
