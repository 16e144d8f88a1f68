"""The folders of local sandboxes, and who owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text import plainjson

if TYPE_CHECKING:
    from pathlib import Path

OWNER_FILE = "owner.json"


def folders(cache: Path) -> list[Path]:
    """Return the folders of all local sandboxes, in use or not."""
    root = cache / "sandboxes"
    return sorted(root.iterdir()) if root.is_dir() else []


def owner_of(folder: Path) -> dict[str, str]:
    """Return ``session`` and ``owner`` of a sandbox; both "" where its record cannot be read."""
    try:
        record = plainjson.parse((folder / OWNER_FILE).read_bytes())
        return {"session": str(record["session"]), "owner": str(record["owner"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"session": "", "owner": ""}
