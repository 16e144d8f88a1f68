"""The sandbox of a run in which nothing is executed: reviews are only compared with references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..core.model import Environment, Tree
    from ..core.sandbox import EnvironmentRef, Limits, Sandbox

NAME = "none"


class AbsentBackend:
    """Asks no engine, builds nothing; whoever wants a sandbox of it is told so."""

    name = NAME

    def describe(self) -> dict[str, Any]:
        """Return its name."""
        return {"name": self.name}

    def prepare(self, pythons: Sequence[str]) -> None:
        """Nothing to have."""

    def environment(self, wanted: Environment) -> EnvironmentRef:
        """There is none.

        Raises:
            InfraError: always.
        """
        _refuse()

    def foundation(self, specifier: str) -> tuple[str, str] | None:
        """There is none."""
        return None

    def open(
        self,
        environment: EnvironmentRef,
        tree: Tree,
        *,
        limits: Limits,
        network: bool = False,
        git: Path | None = None,
    ) -> AbstractContextManager[Sandbox]:
        """There is none.

        Raises:
            InfraError: always.
        """
        _refuse()

    def reap(self, session: str | None = None) -> int:
        """Nothing to remove."""
        return 0


def _refuse() -> NoReturn:
    raise InfraError(
        "this run was started without a sandbox, because its scoring (matching) runs no code",
        reason="sandbox",
    )
