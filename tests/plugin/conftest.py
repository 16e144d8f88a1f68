"""Datasets for the tests of the pytest layer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import Pull, write_dataset


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three checks on two pull requests: two pass with the human's suggestions, one does not."""
    return write_dataset(
        tmp_path / "mixed",
        [Pull("first", fixable=("price",), hard=("tax",)), Pull("second", fixable=("name",))],
    )


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Four checks that pass, and a pull request with one check that cannot be measured here."""
    names = tuple(f"c{n}" for n in range(4))
    return write_dataset(
        tmp_path / "broken", [Pull("lost", fixable=("price",), python="<3.0"), Pull("whole", fixable=names)]
    )
