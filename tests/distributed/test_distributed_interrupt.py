"""However a run of one process ends, nothing of it goes on; what was measured is there.

Runs with workers, and kills, are in tests/faults.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.benchmarks import Run

    from .conftest import Hanging

pytestmark = [pytest.mark.network, pytest.mark.slow]


def assert_interrupted(hanging: Hanging, done: Run) -> None:
    """Status 2, the first check's verdict, the second named as not run, nothing left."""
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    results = done.results()
    assert results["run"]["interrupted"] is True
    assert done.statuses() == {"first::a1": "passed"}
    assert len(results["not_run"]) == 1
    hanging.assert_clean()


@pytest.mark.parametrize(
    ("hanging", "number"),
    [
        ("review", signal.SIGHUP),
        ("revision", signal.SIGTERM),
        ("test", signal.SIGINT),
        ("test", signal.SIGTERM),
    ],
    indirect=["hanging"],
)
def test_a_signal_to_the_controller(hanging: Hanging, number: int) -> None:
    with hanging.started() as process:
        process.send_signal(number)
        assert_interrupted(hanging, hanging.finish(process))
