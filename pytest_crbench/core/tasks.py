"""What a reviewer and a coding agent are given: one piece of work each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .diffs import DiffMap

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..sandbox.protocol import Sandbox
    from .model import Instance, PullRequest, Review, Tree


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


@dataclass(frozen=True)
class AgentTask:
    """One revision to make.

    ``head`` is the pull request's head tree, not to be written to. ``checkout`` writes a private copy of
    the two-commit repository to a new folder of the host. ``sandbox`` opens a fresh sandbox holding head
    (and the two-commit repository as ``.git``). ``capture`` turns an edited tree on the host into the
    patch against head (it raises AgentError where the patch is too large). ``fixed`` fetches the fixed
    tree; only the ``reference`` agent may call it.
    """

    pull_request: PullRequest
    review: Review
    diff: bytes
    head: Tree
    checkout: Callable[[Path], None]
    sandbox: Callable[[], AbstractContextManager[Sandbox]]
    capture: Callable[[Path], bytes]
    fixed: Callable[[], Tree]
    directory: Path
    repeat: int
    log: Callable[[str], None]
