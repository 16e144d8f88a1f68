"""What a reviewer is inside the harness, and what one is given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from ..text.diffs import DiffMap
from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .enclosure import Enclosure
    from .model import Instance, PullRequest, Review, Tree
    from .sandbox import Sandbox
    from .settings import Settings


class Workspace(Protocol):
    """The two-commit repository of an instance (see `workspace.repository`)."""

    @property
    def base(self) -> str:
        """Commit id of the base."""

    @property
    def head(self) -> str:
        """Commit id of the head."""

    @property
    def diff(self) -> bytes:
        """``git diff base head``."""

    @property
    def git_dir(self) -> Path:
        """The ``.git`` folder to put into an agent's sandbox."""

    def copy_to(self, destination: Path) -> None:
        """Write a private copy with head checked out."""


@dataclass(frozen=True)
class ReviewTask:
    """One review to make.

    ``checkout`` writes a private copy of the two-commit repository to a new folder. ``directory`` is the
    evaluation's folder in the run directory, where raw output goes; ``instance`` is for reviewers that are
    part of the harness (``human``, ``file:``) and is never shown to a program under test. ``head`` is the
    pull request's head tree, not to be written to, and ``sandbox`` opens a fresh sandbox holding it and the
    repository as ``.git``: for reviewers of the harness that look around or run commands. Without a
    repository (``--crbench-offline``) both are None, the diff is empty, and ``checkout`` fails.
    """

    instance: Instance
    pull_request: PullRequest
    diff: bytes
    checkout: Callable[[Path], None]
    directory: Path
    repeat: int
    log: Callable[[str], None]
    head: Tree | None = None
    sandbox: Callable[[], AbstractContextManager[Sandbox]] | None = None
    #: False with ``--crbench-offline``: nothing is known of the code.
    repository: bool = True

    def shows(self, path: str, side: str, lines: tuple[int, int] | None) -> bool:
        """Whether the diff shows a place (see `DiffMap.shows`); of an unknown diff, every one."""
        return not self.repository or self._diff.shows(path, side, lines)

    @cached_property
    def _diff(self) -> DiffMap:
        return DiffMap(self.diff)


class Reviewer(Protocol):
    """A reviewer under test."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """All that decides what it says, as plain JSON: its stage results are keyed by this."""

    @property
    def shareable(self) -> bool:
        """Whether its reviews may be taken over by another run (never for a program we cannot look into)."""

    # Two more things that a reviewer may say of itself: ``needs_repository = False`` (it looks at no code and
    # can be scored with --crbench-offline) and ``needs_sandbox = True`` (it opens ``ReviewTask.sandbox``).

    def review(self, task: ReviewTask) -> Review:
        """Review one pull request.

        Raises:
            ReviewerError: crashed, timed out, unreadable or no output; ``reason`` says which.
            InfraError: if the machine, not the reviewer, failed.
        """


class ReviewerKind:
    """Makes the reviewers of one word: ``--crbench-reviewer=WORD`` or ``WORD:ARGUMENT``.

    A subclass has ``make``. Other packages register an instance in the group ``pytest_crbench.reviewers`` of
    their entry points; its name there is the word. A plain callable ``(PullRequest, workspace) -> comments``
    can be registered there too, and is called in a process of its own.
    """

    #: Whether its reviewers start a program that can run in ``--crbench-reviewer-image``.
    runs_program = False

    def make(
        self, argument: str, settings: Settings, run: Path | None, enclosure: Enclosure | None
    ) -> Reviewer | str:
        """Return the reviewer of what stands behind the colon ("" without one), or a spec that names it.

        Called in every process of a run, and once before there is a run (``run`` is None): what is missing is
        said there.

        Args:
            argument: what stands behind the colon.
            settings: the options of the run.
            run: the folder of the run.
            enclosure: where a program runs, if not on the host; only where ``runs_program`` is true.

        Raises:
            UsageError: for an argument that means nothing, or a missing package, program, model or key.
        """
        raise NotImplementedError


REVIEWERS: Registry[ReviewerKind] = Registry(
    "reviewer",
    ReviewerKind,
    "pytest_crbench.reviewers",
    {
        "human": "reviewers.load:HUMAN",
        "none": "reviewers.load:NONE",
        "cmd": "reviewers.load:COMMAND",
        "file": "reviewers.load:FILE",
        "llm": "reviewers.load:LLM",
    },
)
