"""What a run looks at before work starts: told once and clearly, not once for each check in the midst of it.

Cheap: some system calls, and one question to the engine. ``crbench doctor`` looks at much more.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.records import to_row
from ..core.scoring import scoring_of
from ..evaluation.run_record import ENVIRONMENTS, check_replayable, check_same, read_inputs
from ..host.space import check_room
from ..statistics.deviations import Deviation, deviations, listed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ..core.model import Instance
    from ..core.run_record import Inputs
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


def resume(run: Path, inputs: Inputs, backend: Backend) -> list[str]:
    """Refuse to finish a run whose inputs changed; return remarks on what changed that decides nothing.

    Raises:
        UsageError: naming the digests that differ, and what to do.
        InfraError: if the engine fails.
    """
    recorded = read_inputs(run)
    told = check_same(run.name, recorded, inputs)
    _check_foundations(run, recorded, backend)
    return [f"resumed, and since the run began {difference}" for difference in told]


def replay(run: Path, inputs: Inputs) -> list[str]:
    """Refuse to replay a run of other pull requests; return one remark on what else changed since.

    Raises:
        UsageError: naming the pull requests that differ, and what to do.
    """
    told = check_replayable(run.name, read_inputs(run), inputs)
    if not any(scoring_of(name).needs_agent for name in inputs.options["scoring"]):
        # No code runs: where it would is nothing that was changed.
        told = [one for one in told if one.where.partition(".")[0] not in ("sandbox", "limits", "engine")]
    return [f"replay under other conditions than were recorded: {listed(told, 8)}"] if told else []


def _check_foundations(run: Path, recorded: Inputs, backend: Backend) -> None:
    """An image under the same tag, or an interpreter, may be another one now."""
    found: list[Deviation] = []
    asked: dict[str, tuple[str, str] | None] = {}
    for name, built in recorded.environments.items():
        if built.specifier not in asked:
            asked[built.specifier] = backend.foundation(built.specifier)
        now = asked[built.specifier]
        # One that is not here is pulled when it is needed, and compared then.
        if now is not None:
            was = {name: {"base": to_row(built.base)}}
            base = {name: {"base": {"name": now[0], "id": now[1]}}}
            found += deviations({ENVIRONMENTS: was}, {ENVIRONMENTS: base}, (ENVIRONMENTS,))
    if found:
        raise UsageError(
            f"cannot resume {run.name}: what its environments were built on has changed: {listed(found)}. "
            "Put it back (docker tag ID NAME, or --crbench-base-image), or start a new run"
        )
