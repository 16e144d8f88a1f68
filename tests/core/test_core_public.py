"""The public names: each is there, and the stub that type checkers read offers the same."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pytest_crbench

if TYPE_CHECKING:
    from pathlib import Path


def test_every_public_name_is_there_and_typed(repo_root: Path) -> None:
    stub = (repo_root / "pytest_crbench" / "__init__.pyi").read_text()
    typed = {*re.findall(r" as (\w+)$", stub, re.M), "OutsideFailure", "__version__"}
    assert typed == set(pytest_crbench.__all__)
    for name in pytest_crbench.__all__:
        assert getattr(pytest_crbench, name) is not None
        assert name in dir(pytest_crbench)


def test_another_name_is_refused_as_ever() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pytest_crbench.nothing


def test_importing_the_package_imports_nothing_of_it() -> None:
    asks = "import sys, pytest_crbench; print([m for m in sys.modules if m.startswith('pytest_crbench.')])"
    assert subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True).stdout == "[]\n"
