"""Diffs of two small trees, made by git as a run makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crbench.core.model import Tree, Trees
from pytest_crbench.host import digest
from pytest_crbench.workspace.repository import build

if TYPE_CHECKING:
    from pathlib import Path


def diff_of(root: Path, base: dict[str, bytes], head: dict[str, bytes]) -> bytes:
    """The diff between two trees, as reviewers get it; the trees lie below ``root``."""
    sides = []
    for side, files in (("base", base), ("head", head)):
        (root / side).mkdir(parents=True)
        for path, content in files.items():
            (root / side / path).parent.mkdir(parents=True, exist_ok=True)
            (root / side / path).write_bytes(content)
        sides.append(Tree(root / side, digest.of_tree(root / side)))
    return build(Trees(*sides), title="t", body="", cache=root / "cache").diff
