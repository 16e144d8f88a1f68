"""Peak memory of a process, of its own program alone.

Not ``ru_maxrss``: the kernel hands it on from a process to the program that it becomes, so that whatever a
large process starts begins with the peak of that one.
"""

from __future__ import annotations

from pathlib import Path


def peak() -> int:
    """Bytes that this process has held at most, since it began or since `reset`."""
    return _read("VmHWM")


def reset() -> None:
    """Begin anew with what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def _read(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
