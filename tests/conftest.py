"""What the tests of whole pytest runs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vendor's repository."""
    place = tmp_path / "vendor"
    place.mkdir()
    (place / "pytest.ini").write_text("[pytest]\n")
    return place
