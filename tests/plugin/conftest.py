"""Datasets for the tests of the pytest layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.benchmarks import Pull, write_dataset


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


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three checks on two pull requests: two pass with the human's suggestions, one does not."""
    return write_dataset(
        tmp_path / "mixed", [Pull("first", fixable=("price",), hard=("tax",)), Pull("second", fixable=("name",))]
    )


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Four checks that pass, and a pull request with one check that cannot be measured here."""
    names = tuple(f"c{n}" for n in range(4))
    return write_dataset(
        tmp_path / "broken", [Pull("lost", fixable=("price",), python="<3.0"), Pull("whole", fixable=names)]
    )
