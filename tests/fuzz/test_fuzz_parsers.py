"""Each parser of foreign input takes a hundred inputs here; bench/fuzz.py gives it as many as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.fuzz.registry import targets
from support.fuzz.target import feed

if TYPE_CHECKING:
    from pathlib import Path

TARGETS = targets()
#: For a target of cost 1.
INPUTS = 120


@pytest.mark.filterwarnings("ignore:Duplicate name", "ignore::pypi_simple.UnexpectedRepoVersionWarning")
@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_takes_whatever_it_is_given(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    tally = feed(target, max(INPUTS // target.cost, 20), seed=1, folder=tmp_path)
    assert not tally.failure, f"{tally.failure}\nbench/fuzz.py --target={name}, input: {tally.failing_input}"
