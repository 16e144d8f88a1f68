"""The repository that a reviewer and a coding agent are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


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
