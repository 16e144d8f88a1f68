"""Writes what a validation found into the ``[validation]`` table of an instance's file."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.store import write_atomic
from ..core.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.model import Instance
    from ..core.validate import Validation

_HEADING = re.compile(r"^\[validation\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_NEXT = re.compile(r"^\[|\Z", re.MULTILINE)


def write_validation(
    instance: Instance, found: Iterable[Validation], repeats: int, sandbox: Mapping[str, Any]
) -> None:
    """Replace the ``[validation]`` table of ``instance.toml``; nothing else of the file changes.

    Raises:
        UsageError: if the table is written in a way that cannot be replaced without touching the rest.
        InfraError: if the file cannot be written.
    """
    if instance.path is None:
        return
    path = instance.path / "instance.toml"
    lines = [
        "[validation]",
        f"digest = {_string(instance.digest)}",
        f"sandbox = {_string(str(sandbox.get('name')))}",
        f"repeats = {repeats}",
        "exceptions = { " + ", ".join(f"{_key(v.check)} = {_string(v.exception)}" for v in found) + " }",
    ]
    kept = _without_table(path.read_text("utf-8"))
    if kept is None:
        raise UsageError(
            f"{path}, key 'validation': found in another form than a table [validation] of its own at the "
            "end; remove it, then validate again"
        )
    write_atomic(path, (kept.rstrip("\n") + "\n\n" + "\n".join(lines) + "\n").encode())


def _without_table(text: str) -> str | None:
    """Cut the table out; None if no cut leaves all the rest as it is.

    What looks like a heading may be a line of a text: only the parser can tell.
    """
    table = tomllib.loads(text)
    if table.pop("validation", None) is None:
        return text
    for heading in _HEADING.finditer(text):
        for end in _NEXT.finditer(text, heading.end()):
            rest = text[: heading.start()].rstrip("\n") + "\n\n" + text[end.start() :]
            try:
                if tomllib.loads(rest) == table:
                    return rest
            except tomllib.TOMLDecodeError:
                continue
    return None


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _string(text: str) -> str:
    """A basic string of TOML: JSON's, but for DEL, and for the surrogate pairs that it must not hold."""
    return json.dumps(clean(text), ensure_ascii=False).replace("\x7f", "\\u007f")
