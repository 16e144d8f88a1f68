"""Packages of others, as they would be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def install(
    place: Path, patch: pytest.MonkeyPatch, module: str, text: str, *entries: tuple[str, str]
) -> Path:
    """Put a module with entry points (group, line) where new processes find it; return its file."""
    metadata = place / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = (f"[pytest_crbench.{group}]\n{entry}\n" for group, entry in entries)
    (metadata / "entry_points.txt").write_text("".join(lines))
    file = place / f"{module}.py"
    file.write_text(text)
    patch.setenv("PYTHONPATH", str(place))
    return file
