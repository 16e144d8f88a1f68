"""Temporary folders that say whose they are."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from pytest_crbench.core.errors import InfraError
from pytest_crbench.host import trees

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import time
from pytest_crbench.host import trees
with trees.temporary_folder() as made:
    (made / "tree").mkdir(mode=0o500)
    print(made, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and of those it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_is_gone_with_all_that_is_in_it(place: Path) -> None:
    with trees.temporary_folder() as made:
        assert made.parent == place
        assert [path.name for path in made.iterdir()] == [trees.OWNER]
        (made / "a").mkdir()
        (made / "a" / "b").write_text("c")
        (made / "a").chmod(0o500)
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(place: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    left = holder.stdout.readline().strip()
    others = {"w-foreign": "no token", "other": "here:1:1"}
    for name, token in others.items():
        (place / name).mkdir()
        (place / name / trees.OWNER).write_text(token)
    with trees.temporary_folder():
        assert trees.reap_temporary() == 0
        assert os.path.lexists(left)
        holder.kill()
        holder.communicate()
        assert trees.reap_temporary() == 1
        assert not os.path.lexists(left)
    assert {path.name for path in place.iterdir()} == set(others)


def test_nowhere_to_write_is_an_infra_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.raises(InfraError, match="set TMPDIR") as caught, trees.temporary_folder():
        pass
    assert caught.value.reason == "disk"
    assert trees.reap_temporary() == 0
