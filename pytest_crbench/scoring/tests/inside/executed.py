"""Loaded by ``launch.py`` before the code under test: notes which files of the tree are executed.

A test that starts programs, or runs a file by ``runpy``, imports nothing of the tree itself. ``crbench
validate`` asks whether it reaches the tree at all; no verdict depends on the answer.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Iterator

#: Audit events of programs that are started (Python's table of audit events).
_STARTS = frozenset({"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"})
_MOST = 200


class Executed:
    """Files below the working directory that were executed here, or by programs that were started here."""

    def __init__(self) -> None:
        self._tree = os.path.realpath(os.getcwd())
        self._code: set[str] = set()
        self._started: list[tuple[str, list[str]]] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, values: tuple[Any, ...]) -> None:
        """Only keep it: what is raised here would reach the program."""
        if event == "exec":
            name = getattr(values[0], "co_filename", None)
            if isinstance(name, str):
                self._code.add(name)
        elif event in _STARTS and len(self._started) < _MOST:
            try:
                here = os.getcwd()
            except OSError:
                here = self._tree
            if event == "subprocess.Popen" and isinstance(values[2], (str, os.PathLike)):
                here = os.path.join(here, values[2])
            self._started.append((here, list(_words(values))))

    def files(self) -> list[str]:
        """Return their paths, relative to the tree, sorted; up to 200."""
        found = set(self._code)
        for here, words in self._started:
            found.update(path for word in words if _is_program(path := os.path.join(here, word)))
        if self._started:
            found.update(self._compiled())
        inside = (os.path.realpath(path) for path in found if "\0" not in path)
        below = (path for path in inside if path.startswith(self._tree + os.sep) and os.path.isfile(path))
        return sorted({os.path.relpath(path, self._tree) for path in below})[:_MOST]

    def _compiled(self) -> Iterator[str]:
        """The sources that other interpreters imported: this one writes no bytecode, and there was none."""
        for folder, _names, files in os.walk(self._tree):
            if os.path.basename(folder) == "__pycache__":
                for name in files:
                    yield os.path.join(os.path.dirname(folder), name.split(".")[0] + ".py")


def _is_program(path: str) -> bool:
    # A file that a program is given to read is not executed.
    return path.endswith(".py") or ("\0" not in path and os.access(path, os.X_OK))


def _words(values: tuple[Any, ...]) -> Iterator[str]:
    """The words of a command, and those that a shell would see in them."""
    for value in values:
        for word in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(word, (str, bytes, os.PathLike)):
                text = os.fsdecode(word)
                yield text
                yield from text.split()
