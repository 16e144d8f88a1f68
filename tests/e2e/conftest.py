"""What whole runs need: one cache, a vendor's repository, and a small pull request with two concerns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.benchmarks import Pull, write_dataset

HIDDEN = """\
from shop.price_ import price


def test_price():
    hidden_sentinel = price()
    assert hidden_sentinel == "price"
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the session, also over the workers of xdist; CRBENCH_TEST_CACHE keeps it for the next."""
    kept = os.environ.get("CRBENCH_TEST_CACHE")
    if kept:
        return Path(kept)
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "crbench-e2e-cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vendor's repository."""
    place = tmp_path / "vendor"
    place.mkdir()
    (place / "pytest.ini").write_text("[pytest]\n")
    return place


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """One pull request with two concerns; its names are words that nothing else says."""
    pull = Pull("quagga-4711", fixable=("price",), hard=("tax",), tests={"price": HIDDEN})
    return write_dataset(tmp_path / "savanna", [pull], name="savanna")
