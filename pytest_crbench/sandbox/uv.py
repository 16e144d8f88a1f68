"""The uv program: where it is, and one run of it with the settings of the indexes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host.stamps import Uses
from .indexes import uv_environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .settings import SandboxSettings


def find_uv() -> str | None:
    """Return the path of the uv program that comes with the ``uv`` package, or None."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None


def program(purpose: str) -> str:
    """Return uv's path.

    Raises:
        InfraError: if it is missing; ``purpose`` says what cannot be done without it.
    """
    found = find_uv()
    if found is None:
        raise InfraError(
            f"cannot {purpose}: the uv program is missing. Install it (pip install uv)", reason="no-uv"
        )
    return found


def run(
    path: str,
    arguments: Sequence[str],
    settings: SandboxSettings,
    *,
    cwd: Path,
    timeout: float,
    reason: str,
    feed: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Run uv to its end, whatever status that has.

    Args:
        path: the program.
        arguments: its arguments; the first two name the command in messages.
        settings: indexes and the cache.
        cwd: an empty folder, so that no project's configuration takes part.
        timeout: seconds.
        reason: the reason word of the error for a run that does not end.
        feed: its stdin.

    Raises:
        InfraError: if it does not start or does not end in time.
    """
    Uses(settings.cache).touch("uv", "uv")
    try:
        return subprocess.run(
            [path, *arguments],
            cwd=cwd,
            env=uv_environment(settings),
            input=feed,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InfraError(
            f"uv {' '.join(arguments[:2])} did not end within {timeout:.0f} s; is the package index "
            "reachable?",
            reason=reason,
        ) from error
    except OSError as error:
        raise InfraError(f"cannot run {path}: {error.strerror}", reason="no-uv") from error
