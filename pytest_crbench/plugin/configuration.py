"""The settings that pytest would have in the current folder, without running it."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from ..core.errors import CrbenchError
from ..text.printable import printable
from .activate import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from ..core.settings import Settings


@dataclass(frozen=True)
class Configured:
    """What pytest would have: settings, or how it refuses to start here (one line)."""

    settings: Settings | None
    refusal: str = ""


def configured(arguments: Sequence[str]) -> Configured:
    """Let pytest read ``arguments``, PYTEST_ADDOPTS, ini file and conftest files, and end it before it acts.

    Writes nothing, also no byte code of conftest files.

    Raises:
        CrbenchError: naming an option with a value that it does not take.
    """
    reader = _Reader()
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with tempfile.TemporaryFile("w+", errors="replace") as stream:
            with _printing_to(stream):
                status = pytest.main(list(arguments), plugins=[reader])
            stream.seek(0)
            said = stream.read()
    finally:
        sys.dont_write_bytecode = kept
    if reader.error is not None:
        raise reader.error
    if reader.settings is not None:
        return Configured(reader.settings)
    lines = [line for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "E  "))] or lines[-1:]
    return Configured(None, printable(f"exit status {int(status)}: {' '.join(errors)}", 400))


@contextlib.contextmanager
def _printing_to(stream: IO[str]) -> Iterator[None]:
    """Let a file have all output, also what pytest's capturing puts back where it came from."""
    places = (sys.stdout, sys.stderr)
    for place in places:
        place.flush()
    saved = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield
    finally:
        for place in (stream, *places):
            place.flush()
        for number, old in zip((1, 2), saved, strict=True):
            os.dup2(old, number)
            os.close(old)


class _Reader:
    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.error: CrbenchError | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Called once options and ini file are read; a result ends pytest."""
        try:
            self.settings = read_settings(config)
        except CrbenchError as error:
            self.error = error
        return 0
