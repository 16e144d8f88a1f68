"""No tracked file depends on the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Folders that hold somebody's checkout or home; a path inside a sandbox (/workspace) is none.
_MACHINE_PATH = re.compile(r"(?<![\w.}>/-])/(?:work|root|home|Users|mnt|opt)/[\w.]")
_INDEX_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|(?<![\w.])(?:ghcr|quay|gcr)\.io|docker\.io/", re.IGNORECASE
)
_CONFIGURATION = (
    ".toml",
    ".ini",
    ".cfg",
    ".yml",
    ".yaml",
    ".json",
    ".j2",
    "Dockerfile",
    ".ci/run",
    ".ci/engine",
)


def texts(root: Path) -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout: the files of the repository cannot be listed")
    for name in listed.stdout.decode().split("\0"):
        path = root / name
        if name and path.is_file() and not path.is_symlink():
            yield name, path.read_bytes().decode("utf-8", "replace")


def test_no_file_holds_a_path_of_a_machine(repo_root: Path) -> None:
    found = [
        f"{name}: {line.strip()[:120]}"
        for name, text in texts(repo_root)
        for line in text.splitlines()
        if _MACHINE_PATH.search(line)
    ]
    assert found == []


def test_no_configuration_names_a_registry(repo_root: Path) -> None:
    found = [
        name for name, text in texts(repo_root) if name.endswith(_CONFIGURATION) and _INDEX_HOST.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("line", ["cd /work" + "/main", "open('/home" + "/me/x')", "PYTHON=/opt" + "/py/bin"])
def test_paths_of_machines_are_recognised(line: str) -> None:
    """A search that finds nothing ever proves nothing."""
    assert _MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["{scratch}/home/x", "user:{{ scratch }}/home/a", "a/work/b", "/workspace/src"]
)
def test_paths_of_sandboxes_are_not_taken_for_them(line: str) -> None:
    assert not _MACHINE_PATH.search(line)
