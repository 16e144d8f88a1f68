"""What the tests of whole pytest runs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the session, also over the workers of xdist: the environment is built once."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "crbench-cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vendor's repository."""
    place = tmp_path / "vendor"
    place.mkdir()
    (place / "pytest.ini").write_text("[pytest]\n")
    return place
