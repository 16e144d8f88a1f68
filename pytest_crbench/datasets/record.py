"""Writes what a validation found into the ``[validation]`` table of an instance's file."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..core.store import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.model import Instance
    from ..core.validate import Validation

#: From the table's heading to the next heading at the top level, or the end.
_TABLE = re.compile(r"\n*^\[validation\]$.*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)


def write_validation(
    instance: Instance, found: Iterable[Validation], repeats: int, sandbox: Mapping[str, Any]
) -> None:
    """Replace the ``[validation]`` table of ``instance.toml``; nothing else of the file changes.

    Raises:
        InfraError: if the file cannot be written.
    """
    if instance.path is None:
        return
    path = instance.path / "instance.toml"
    lines = [
        "[validation]",
        f"digest = {json.dumps(instance.digest)}",
        f"sandbox = {json.dumps(str(sandbox.get('name')))}",
        f"repeats = {repeats}",
        "exceptions = { " + ", ".join(f"{_key(v.check)} = {json.dumps(v.exception)}" for v in found) + " }",
    ]
    kept = _TABLE.sub("", path.read_text("utf-8")).rstrip("\n")
    write_atomic(path, (kept + "\n\n" + "\n".join(lines) + "\n").encode())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
