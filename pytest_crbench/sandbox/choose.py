"""Which backend an invocation uses: decided once, by its controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import InfraError, UsageError

if TYPE_CHECKING:
    from ..core.sandbox import Backend
    from .settings import SandboxSettings


def choose(name: str, settings: SandboxSettings) -> Backend:
    """Return the backend ``docker`` or ``local``; ``auto`` is docker where an engine answers.

    Workers are given the name that their controller chose, never ``auto``: an engine that is lost later is
    an error, not a reason to use another sandbox.

    Raises:
        UsageError: for another name.
        InfraError: for ``docker`` if no engine answers.
    """
    if name == "local":
        return _local(settings, "")
    if name not in ("auto", "docker"):
        raise UsageError(f"--crbench-sandbox={name}: no such sandbox; choose auto, docker or local")
    from .docker import DockerBackend
    from .engine import connect

    try:
        return DockerBackend(connect(), settings)
    except InfraError as error:
        if name == "docker":
            raise
        return _local(settings, str(error))


def _local(settings: SandboxSettings, no_docker: str) -> Backend:
    from .local import LocalBackend

    return LocalBackend(settings, no_docker=no_docker)
