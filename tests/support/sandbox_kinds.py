"""The two ways in which the local sandbox can run, as parts of another package would name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crbench import SandboxKind
from pytest_crbench.sandbox.local import LocalBackend

if TYPE_CHECKING:
    from pytest_crbench import Backend, SandboxSettings


class _Local(SandboxKind):
    def __init__(self, program: str | None, isolation: str) -> None:
        self.program, self.isolation = program, isolation

    def make(self, settings: SandboxSettings) -> Backend:
        backend = LocalBackend(settings, self.program)
        assert backend.describe()["isolation"] == self.isolation
        return backend


PLAIN, BUBBLEWRAP = _Local("", "none"), _Local(None, "bubblewrap")
