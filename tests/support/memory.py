"""Peak memory of a process, of its own program alone.

Not ``ru_maxrss``: the kernel hands it on from a process to the program that it becomes, so that whatever a
large process starts begins with the peak of that one.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def peak() -> int:
    """Bytes that this process has held at most, since it began or since `reset`."""
    return _read("VmHWM")


def reset() -> None:
    """Begin anew with what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


@contextmanager
def growing_at_most(limit: int) -> Iterator[None]:
    """Assert that the peak within is no more than ``limit`` bytes above what was held before."""
    reset()
    before = _read("VmRSS")
    yield
    grown = peak() - before
    assert grown < limit, f"{grown} bytes more"


def _read(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
