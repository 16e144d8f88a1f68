"""The suite is as large as it says, and docs/faults.md says what its tests assert."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.faults import faults, page, parse

#: Fewer than that, and a file was lost.
LEAST = 60

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_of_faults_is_current(repo_root: Path) -> None:
    """Write it anew with ``cd tests && python -m support.faults ../docs/faults.md``."""
    assert (repo_root / "docs" / "faults.md").read_text("utf-8") == page()


def test_every_fault_is_told_once_and_they_are_many() -> None:
    told = [fault.what for fault in faults()]
    assert len(told) >= LEAST
    assert len(set(told)) == len(told)


@pytest.mark.parametrize(
    "docstring",
    [
        None,
        "Nothing but what is broken.",
        "The engine is stopped.\n\nStatus: fine\nMessage: x",
        "No full stop\n\nStatus: infra_error\nMessage: x",
    ],
)
def test_a_docstring_of_another_form_is_refused(docstring: str | None) -> None:
    with pytest.raises(ValueError, match="m::t"):
        parse("m", "t", docstring)
