"""What evaluations are made with: the programs under way, where results go, and the limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .strikes import Strikes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..core.agent import Agent
    from ..core.model import Changes, Instance, Tree, Trees
    from ..core.reviewer import Reviewer, Workspace
    from ..core.sandbox import Backend, Limits
    from ..core.scoring import Decider
    from .store import Store


@dataclass(frozen=True)
class Parts:
    """What an evaluation is made of: the programs under way, and functions of the capability folders."""

    reviewer: Reviewer
    agent: Agent
    backend: Backend
    trees: Callable[[Instance, bool, Callable[[str], None]], Trees]
    workspace: Callable[[Instance, Trees, Callable[[str], None]], Workspace]
    capture: Callable[[Tree, Path], bytes]
    changes: Callable[[Tree, bytes], Changes]
    #: What decides checks, by the name of the scoring.
    deciders: Mapping[str, Decider]


@dataclass(frozen=True)
class Places:
    """Where results go: the run's store, results shared between runs by content, the log of an instance."""

    run: Path
    store: Store
    shared: Store
    log: Callable[[str, str], None]
    #: The run whose reviews and revisions are replayed, if any.
    replay: Path | None = None


@dataclass
class Context:
    """What all evaluations of a process share. ``test_timeout`` is in seconds."""

    parts: Parts
    places: Places
    limits: Limits
    test_timeout: float = 120.0
    #: False: nothing is fetched; only reviews that were made elsewhere can be scored, by matching.
    repository: bool = True
    #: Whether comments outside the diff are left out of reviews.
    only_diff: bool = False
    #: Equal failures of the reviewer in a row after which it is not asked any more; 0: it always is.
    max_errors: int = 0

    @property
    def strikes(self) -> Strikes:
        """What has failed in a row."""
        store = self.places.store
        return Strikes(self.places.run / ".locks" / "reviewer-errors.json", store.invocation, self.max_errors)
