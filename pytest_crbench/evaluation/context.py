"""What all evaluations of a process share: the programs under way, where results go, limits, and failures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import STAGE_ERRORS, StageError
from ..core.status import Status
from ..host import digest
from ..host.files import locked, write_json
from ..text import plainjson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..core.agent import Agent
    from ..core.model import Changes, Instance, Tree, Trees
    from ..core.reviewer import Reviewer, Workspace
    from ..core.sandbox import Backend, Limits
    from ..core.scoring import Decider
    from .store import Store

T = TypeVar("T")
#: Failures that say something of the reviewer or of what it depends on, not of one pull request.
_COUNTED = ("crashed", "reviewer-outside")


@dataclass(frozen=True)
class Strikes:
    """After several equal failures in a row a reviewer is not asked any more: a wrong key fails every time.

    Counts equal failures in a row, over all workers of one invocation, in a file of the run.
    """

    path: Path
    invocation: str
    #: How many end the asking; 0: none do.
    limit: int = 0

    def ask(self, make: Callable[[], T]) -> T:
        """Make a review, unless the last ``limit`` reviews failed alike.

        Raises:
            StageError: the reviewer's failure, or one like those before without asking again.
        """
        if not self.limit:
            return make()
        before = self._read()
        if before and before["count"] >= self.limit:
            raise STAGE_ERRORS[Status(before["status"])](
                f"not asked: the reviewer failed {before['count']} times in a row in the same way "
                f"({before['message']}). When it works, repeat with --crbench-resume "
                "--crbench-rerun-errors=all; --crbench-max-errors=0 never stops asking",
                reason="reviewer-outside" if before["status"] == Status.INFRA_ERROR else "not-asked",
            )
        try:
            made = make()
        except StageError as error:
            self._note(error)
            raise
        self.path.unlink(missing_ok=True)
        return made

    def _note(self, error: StageError) -> None:
        if error.reason not in _COUNTED:
            self.path.unlink(missing_ok=True)
            return
        # Paths and numbers differ from one pull request to the next.
        alike = digest.of([error.status.value, error.reason, re.sub(r"\S*/\S*|\d+", "", str(error))])
        with locked(self.path.with_suffix(".lock"), log=lambda _line: None, what="errors"):
            before = self._read()
            count = before["count"] + 1 if before and before["alike"] == alike else 1
            value = {"status": error.status.value, "message": str(error)[:300], "alike": alike}
            write_json(self.path, {**value, "count": count, "invocation": self.invocation})

    def _read(self) -> dict[str, Any] | None:
        try:
            value: dict[str, Any] = plainjson.parse(self.path.read_bytes())
            return value if value["invocation"] == self.invocation and value["count"] > 0 else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


@dataclass(kw_only=True)
class Context:
    """What all evaluations of a process share. ``test_timeout`` is in seconds."""

    reviewer: Reviewer
    agent: Agent
    backend: Backend
    #: Functions of the capability folders.
    trees: Callable[[Instance, bool, Callable[[str], None]], Trees]
    workspace: Callable[[Instance, Trees, Callable[[str], None]], Workspace]
    capture: Callable[[Tree, Path], bytes]
    changes: Callable[[Tree, bytes], Changes]
    #: What decides checks, by the name of the scoring.
    deciders: Mapping[str, Decider]
    #: The run's folder and store, results shared between runs by content, the log of an instance by its name.
    run: Path
    store: Store
    shared: Store
    log: Callable[[str, str], None]
    #: The run whose reviews and revisions are replayed, if any.
    replay: Path | None = None
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
        return Strikes(self.run / ".locks" / "reviewer-errors.json", self.store.invocation, self.max_errors)
