"""What a run looks at before work starts: told once and clearly, not once for each check in the midst of it.

Cheap: some system calls, and one question to the engine. ``crbench doctor`` looks at much more.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..host.space import check_room

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import Instance
    from ..core.sandbox import Backend
    from ..core.settings import Settings


def check_machine(settings: Settings) -> None:
    """Look for git, and for room where the run will write.

    Raises:
        UsageError: saying what is missing and what to do.
    """
    if shutil.which("git") is None:
        raise UsageError("git was not found on PATH: install it, or put it there (crbench doctor says more)")
    check_room(settings.cache, settings.min_free, "--crbench-cache")
    check_room(settings.run_dir, settings.min_free, "--crbench-run-dir")


def check_sandbox(backend: Backend, instances: Iterable[Instance]) -> None:
    """Have what every environment of a run is built on, where the sandbox has such a thing.

    Raises:
        InfraError: if no instance can have an environment: what it is, and what to do.
    """
    backend.prepare(sorted({instance.environment.python for instance in instances}))
