"""A container for one program of the user's: the seam between the reviewers and the sandboxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


NOT_A_FILE = "wrote its review to something that is no regular file"


@dataclass(frozen=True)
class Completed:
    """What a program did; ``returncode`` is None when we killed it. Output keeps its head and tail."""

    returncode: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    duration: float
    #: Processes that it had started and that still ran when it ended.
    left: int = 0


@dataclass(frozen=True)
class Written:
    """The file that a program was told to write: its first bytes, and why it is no review (None: it may be).

    ``data`` is empty where there is no such file.
    """

    data: bytes
    problem: str | None = None

    @classmethod
    def within(cls, data: bytes, limit: int) -> Written:
        """Return what was read of a file, at most one byte more than ``limit``."""
        if len(data) > limit:
            return cls(data[:limit], f"wrote a review of more than {limit} bytes")
        return cls(data)


@dataclass(frozen=True)
class Ended:
    """What a program did in an enclosure.

    ``written`` is the file that it was told to write, None if it was told of none; ``trouble`` says how it
    failed where its exit status does not (it could not be started, or used too much memory).
    """

    done: Completed
    written: Written | None
    trouble: str | None = None


class Enclosure(Protocol):
    """Runs programs out of one image, each in a fresh container that holds one folder of the host's."""

    #: Absolute path of the folder inside.
    root: str

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """What decides how a program runs, as plain JSON: ``name`` and ``id`` of the image, ``network``.

        Raises:
            UsageError: if the image cannot be had or used.
        """

    def require(self, program: str) -> None:
        """Look for a program in the image before any work.

        Raises:
            UsageError: if it is not there.
        """

    def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        cwd: str,
        env: Mapping[str, str],
        timeout: float,
        output_limit: int,
        out: str | None,
    ) -> Ended:
        """Run a program to its end, or kill it when its time is up; the container is gone after that.

        Args:
            argv: program and arguments; no shell.
            folder: what ``root`` holds, copied from the host.
            cwd: working folder, relative to ``root``.
            env: added to the image's own variables, for this program alone.
            timeout: seconds.
            output_limit: bytes kept of each stream, and of ``out``.
            out: a file below ``root`` to read afterwards.

        Raises:
            InfraError: if the engine fails, or somebody else ended the container.
        """

    def reap(self, session: str | None = None) -> int:
        """Remove what a session left behind (None: every session whose processes are gone); how many.

        Raises:
            InfraError: if the engine fails.
        """
