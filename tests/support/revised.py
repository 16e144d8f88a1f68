"""The tree that a revision makes, as a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crbench.host.trees import scan
from pytest_crbench.workspace import revision
from pytest_crbench.workspace.revision import changes

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crbench.core.model import Tree


def materialise(head: Tree, patch: bytes, destination: Path) -> None:
    """Write head with the revision applied to a new folder (special files, top-level ``.git`` left out)."""
    wanted = changes(head, patch)
    touched = set(wanted.paths)
    destination.mkdir(parents=True, exist_ok=True)
    for path, entry in scan(head.path).items():
        if path not in touched:
            revision.write(destination, path, entry.read(), entry.mode)
    for file in wanted.files:
        revision.write(destination, file.path, file.content, file.mode)
