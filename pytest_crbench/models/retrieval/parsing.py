"""Reading code by its grammar in a process of its own, with bounds of memory and time.

Grammars are C code, and some take memory with the square of what they read: 60 kB of ``a<`` in a file of Java
take gigabytes. Whoever opens a pull request chooses the files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from . import syntax

if TYPE_CHECKING:
    from types import TracebackType

#: Of one process: bytes of address space, and seconds of its own work on one file.
MEMORY = 1024**3
SECONDS = 10.0
#: Files that end the process; beyond them no grammar is asked any more.
MOST_FAILURES = 5
_NEEDED = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class Parsing:
    """Gives `syntax.pieces` of files, one after the other; ``failed`` counts those that met a bound."""

    def __init__(self, memory: int = MEMORY, seconds: float = SECONDS) -> None:
        self.bounds = (str(memory), str(seconds))
        self.failed = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Parsing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def pieces(self, path: str, content: bytes, most: int) -> list[syntax.Piece] | None:
        """Return what `syntax.pieces` does; None as well for a file that is too much for its grammar.

        Raises:
            OSError: if no process can be started.
        """
        if not syntax.has_grammar(path) or self.failed >= MOST_FAILURES:
            return None
        process = self._process = self._process or self._started()
        assert process.stdin
        assert process.stdout
        question = json.dumps([path, len(content), most]).encode()
        try:
            process.stdin.write(question + b"\n" + content)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer.endswith(b"\n"):
            self.failed += 1
            self._end()
            return None
        found = json.loads(answer)
        return None if found is None else [tuple(piece) for piece in found]

    def _started(self) -> subprocess.Popen[bytes]:
        # The same packages; a session of its own: an interrupt is not a file that cannot be read.
        where = os.pathsep.join(path for path in sys.path if path)
        return subprocess.Popen(
            [sys.executable, "-P", syntax.__file__, *self.bounds],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # It reads what others wrote, in C: there is nothing here for it to tell.
            env={**{name: os.environ[name] for name in _NEEDED if name in os.environ}, "PYTHONPATH": where},
            start_new_session=True,
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream:
                with suppress(OSError):
                    stream.close()
        process.wait()
