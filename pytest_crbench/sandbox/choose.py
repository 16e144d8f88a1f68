"""Which backend an invocation uses: decided once, by its controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import InfraError, UsageError
from ..core.sandbox import SANDBOXES, SandboxKind
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.sandbox import Backend, SandboxSettings

#: The sandbox of a run in which nothing is executed.
ABSENT = "none"


class _Docker(SandboxKind):
    def make(self, settings: SandboxSettings) -> Backend:
        from .docker import DockerBackend
        from .engine import connect

        return DockerBackend(connect(), settings)


class _Local(SandboxKind):
    def make(self, settings: SandboxSettings, no_docker: str = "") -> Backend:
        from .local import LocalBackend

        return LocalBackend(settings, no_docker=no_docker)


DOCKER, LOCAL = _Docker(), _Local()


class AbsentBackend:
    """Asks no engine, builds nothing; whoever wants a sandbox of it is told so."""

    name = ABSENT

    def describe(self) -> dict[str, Any]:
        """Return its name."""
        return {"name": self.name}

    def prepare(self, pythons: Sequence[str]) -> None:
        """Nothing to have."""

    def foundation(self, specifier: str) -> None:
        """There is none."""

    def reap(self, session: str | None = None) -> int:
        """Nothing to remove."""
        return 0

    def environment(self, *_wanted: Any, **_options: Any) -> NoReturn:
        """Refuse.

        Raises:
            InfraError: always.
        """
        raise InfraError(
            "this run was started without a sandbox, because its scoring (matching) runs no code",
            reason="sandbox",
        )

    open = environment


def choose(name: str, settings: SandboxSettings) -> Backend:
    """Return the backend of a registered name; ``auto`` is docker where an engine answers, else local.

    Workers are given the name that their controller chose, never ``auto``: an engine that is lost later is
    an error, not a reason to use another sandbox.

    Raises:
        UsageError: for a name that nobody has registered.
        InfraError: if the named engine does not answer.
    """
    if name == "auto":
        try:
            return DOCKER.make(settings)
        except InfraError as error:
            return LOCAL.make(settings, str(error))
    if name not in SANDBOXES:
        known = ", ".join(("auto", *SANDBOXES.names()))
        raise UsageError(f"--crbench-sandbox={printable(name, 80)}: no such sandbox; choose one of {known}")
    backend = SANDBOXES.use(name, lambda kind: kind.make(settings))
    if backend.name != name:
        # Workers, records and keys know a backend by its name.
        raise UsageError(f"the backend of the sandbox {name!r} is named {printable(str(backend.name), 80)!r}")
    return backend
