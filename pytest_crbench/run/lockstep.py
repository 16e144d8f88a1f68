"""What resuming and replaying ask of the lock file before any work starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.scoring import scoring_of
from ..evaluation.lock import ENVIRONMENTS, FIXTURES, LockFile, check_replayable, check_same
from ..statistics.deviations import Deviation, deviations, listed
from ..text.printable import printable
from .inputs import program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..core.agent import Agent
    from ..core.reviewer import Reviewer
    from ..core.sandbox import Backend


def resume(run: Path, inputs: Mapping[str, Any], backend: Backend) -> list[str]:
    """Refuse to finish a run whose inputs changed; return remarks on what changed that decides nothing.

    Raises:
        UsageError: naming the digests that differ, and what to do.
        InfraError: if the engine fails.
    """
    recorded = LockFile(run).read()
    told = check_same(run.name, recorded, inputs)
    _check_foundations(run, recorded, backend)
    return [f"resumed, and since the run began {difference}" for difference in told]


def replay(run: Path, inputs: Mapping[str, Any]) -> list[str]:
    """Refuse to replay a run of other pull requests; return one remark on what else changed since.

    Raises:
        UsageError: naming the pull requests that differ, and what to do.
    """
    told = check_replayable(run.name, LockFile(run).read(), inputs)
    if not any(scoring_of(name).needs_agent for name in inputs["options"]["scoring"]):
        # No code runs: where it would is nothing that was changed.
        told = [one for one in told if one.where.partition(".")[0] not in ("sandbox", "limits", "engine")]
    return [f"replay under other conditions than were recorded: {listed(told, 8)}"] if told else []


def note_programs(run: Path, reviewer: Reviewer, agent: Agent) -> None:
    """Record a reviewer or agent that a vendor's fixture put in the place of the named one.

    Raises:
        InfraError: ``lock``, if an earlier invocation of the run had another one there.
    """
    lock = LockFile(run)
    if not lock.path.exists():
        return
    recorded = lock.read()
    for part, made in (("reviewer", reviewer), ("agent", agent)):
        found = program(made)
        if part in (recorded.get(FIXTURES) or {}) or found["digest"] != (recorded.get(part) or {}).get(
            "digest"
        ):
            lock.note(FIXTURES, part, found)


def made_by(run: Path, part: str) -> Mapping[str, Any]:
    """Return what made the reviews (``reviewer``) or revisions (``agent``) of a run: a fixture's, if one did.

    Raises:
        UsageError: if the lock file is missing or unreadable.
    """
    recorded = LockFile(run).read()
    found: Mapping[str, Any] = (recorded.get(FIXTURES) or {}).get(part) or recorded.get(part) or {}
    return found


def _check_foundations(run: Path, recorded: Mapping[str, Any], backend: Backend) -> None:
    """An image under the same tag, or an interpreter, may be another one now."""
    found: list[Deviation] = []
    asked: dict[str, tuple[str, str] | None] = {}
    for name, built in (recorded.get(ENVIRONMENTS) or {}).items():
        if not {"specifier", "base"} <= built.keys():
            where = printable(f"{ENVIRONMENTS}.{name}", 80)
            raise UsageError(f"{LockFile(run).path}, key {where!r}: it is damaged; start a new run")
        specifier = built["specifier"]
        if specifier not in asked:
            asked[specifier] = backend.foundation(specifier)
        now = asked[specifier]
        # One that is not here is pulled when it is needed, and compared then.
        if now is not None:
            base = {name: {"base": {"name": now[0], "id": now[1]}}}
            was = {name: {"base": built["base"]}}
            found += deviations({ENVIRONMENTS: was}, {ENVIRONMENTS: base}, (ENVIRONMENTS,))
    if found:
        raise UsageError(
            f"cannot resume {run.name}: what its environments were built on has changed: {listed(found)}. "
            "Put it back (docker tag ID NAME, or --crbench-base-image), or start a new run"
        )
