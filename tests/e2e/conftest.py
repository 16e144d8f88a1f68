"""What whole runs need: a small pull request with two concerns."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import Pull, write_dataset

HIDDEN = """\
from shop.price_ import price


def test_price():
    hidden_sentinel = price()
    assert hidden_sentinel == "price"
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """One pull request with two concerns; its names are words that nothing else says."""
    pull = Pull("quagga-4711", fixable=("price",), hard=("tax",), tests={"price": HIDDEN})
    return write_dataset(tmp_path / "savanna", [pull], name="savanna")
