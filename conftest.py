"""What every test of this repository may use."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent


@pytest.fixture
def repo_root() -> Path:
    return ROOT
