"""What every test of a fault may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.faults import Told, parse

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Iterator[Told]:
    """What the test's docstring says of its fault; the test must look for the message."""
    told = Told(parse(request.module.__name__, request.function.__name__, request.function.__doc__))
    yield told
    assert told.looked, "the test did not look for the message that its docstring names"
