"""Writes what a validation found into an instance's file: ``[validation]``, and ``expect`` of a comment."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..host.files import write_atomic
from ..text.printable import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import Instance

_HEADING = re.compile(r"^\[validation\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_TEST = re.compile(r"^([ \t]*)test[ \t]*=[^\n]*(?:\n|\Z)", re.MULTILINE)
_NEXT = re.compile(r"^\[|\Z", re.MULTILINE)


def write_expected(instance: Instance, exceptions: Mapping[str, str]) -> None:
    """Write the expected exception of each check of ``exceptions``; nothing else of the file changes.

    Raises:
        UsageError: if a comment is written in a way that a line cannot be added to.
        InfraError: if the file cannot be written.
    """
    if instance.path is None or not exceptions:
        return
    path = instance.path / "instance.toml"
    text = path.read_bytes().decode()
    for index, check in enumerate(instance.checks):
        if check.id not in exceptions:
            continue
        added = _with_expected(text, index, exceptions[check.id])
        if added is None:
            raise UsageError(
                f"{path}, key 'comment[{index}]': found in another form than a table [[comment]] with its "
                f"test on a line of its own; write expect = {_string(exceptions[check.id])} into it"
            )
        text = added
    write_atomic(path, text.encode())


def _with_expected(text: str, index: int, exception: str) -> str | None:
    """Add the line below the test of a comment; None if no place gives the table that it should.

    What looks like the line of the test may be a line of a text: only the parser can tell.
    """
    table = tomllib.loads(text)
    table["comment"][index]["expect"] = clean(exception)
    for line in _TEST.finditer(text):
        end = "\r\n" if line[0].endswith("\r\n") else "\n"
        before = text[: line.end()] if line[0].endswith("\n") else text[: line.end()] + end
        added = f"{before}{line[1]}expect = {_string(exception)}{end}{text[line.end() :]}"
        try:
            if tomllib.loads(added) == table:
                return added
        except tomllib.TOMLDecodeError:
            continue
    return None


def write_validation(instance: Instance, repeats: int, sandbox: Mapping[str, Any]) -> None:
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


def _string(text: str) -> str:
    """A basic string of TOML: JSON's, but for DEL, and for the surrogate pairs that it must not hold."""
    return json.dumps(clean(text), ensure_ascii=False).replace("\x7f", "\\u007f")
