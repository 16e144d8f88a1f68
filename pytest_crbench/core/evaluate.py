"""Takes instances through their stages: review, revise, verdict. Knows no pytest; safe for many processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from .errors import StageError
from .evaluation import Evaluation
from .strikes import Strikes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..agents.protocol import Agent
    from ..reviewers.protocol import Reviewer
    from ..runners.protocol import Runner
    from ..sandbox.protocol import Backend, Limits
    from .matching import Classifies, Matcher
    from .model import Changes, Check, Instance, Review, Revision, Scoring, Tree, Trees, Verdict
    from .store import Store


class Workspace(Protocol):
    """The two-commit repository of an instance (see `workspace.repository`)."""

    @property
    def base(self) -> str:
        """Commit id of the base."""

    @property
    def head(self) -> str:
        """Commit id of the head."""

    @property
    def diff(self) -> bytes:
        """``git diff base head``."""

    @property
    def git_dir(self) -> Path:
        """The ``.git`` folder to put into an agent's sandbox."""

    def copy_to(self, destination: Path) -> None:
        """Write a private copy with head checked out."""


@dataclass(frozen=True)
class Parts:
    """What an evaluation is made of: the programs under way, and functions of the capability folders."""

    reviewer: Reviewer
    agent: Agent
    backend: Backend
    runners: Mapping[str, Runner]
    trees: Callable[[Instance, bool, Callable[[str], None]], Trees]
    workspace: Callable[[Instance, Trees, Callable[[str], None]], Workspace]
    capture: Callable[[Tree, Path], bytes]
    changes: Callable[[Tree, bytes], Changes]
    #: None where no check is scored by matching.
    matcher: Matcher | None = None
    #: Sorts unlabelled comments; None where that was not asked for.
    classifier: Classifies | None = None


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
class Evaluator:
    """Takes instances through their stages; holds what one process may reuse between checks."""

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
    _evaluations: dict[str, Evaluation] = field(default_factory=dict)

    @property
    def strikes(self) -> Strikes:
        """What has failed in a row."""
        store = self.places.store
        return Strikes(self.places.run / ".locks" / "reviewer-errors.json", store.invocation, self.max_errors)

    def review(self, instance: Instance, repeat: int = 1, arm: str = "review") -> Review:
        """Return the review of one pull request, made once per run, repeat and arm.

        Raises:
            StageError: with the status that the instance's checks get.
        """
        return self.at(instance, repeat, arm).review

    def revise(self, instance: Instance, repeat: int = 1, arm: str = "review") -> Revision:
        """Return the revision made from the review; see `review`."""
        return self.at(instance, repeat, arm).revision

    def verdict(
        self,
        instance: Instance,
        check: Check,
        repeat: int = 1,
        arm: str = "review",
        scoring: Scoring = "tests",
    ) -> Verdict:
        """Return the verdict on one check; a failure of a stage is its status, never an exception."""
        try:
            return self.at(instance, repeat, arm).verdict(check, scoring)
        except StageError as error:
            return self.failed(instance, check, error, repeat, arm, scoring)

    def failed(
        self,
        instance: Instance,
        check: Check,
        error: StageError,
        repeat: int = 1,
        arm: str = "review",
        scoring: Scoring = "tests",
    ) -> Verdict:
        """Return the verdict that stands for a stage that gave no result."""
        return self.at(instance, repeat, arm).failed(check, error, scoring)

    def forget(self, instance: Instance) -> None:
        """Drop what is held in memory for an instance."""
        for name in [n for n in self._evaluations if n.startswith(f"{instance.dataset}/{instance.id}/")]:
            del self._evaluations[name]

    def at(self, instance: Instance, repeat: int = 1, arm: str = "review") -> Evaluation:
        """Return the evaluation of one instance in one repeat and arm; the same object every time."""
        name = f"{instance.dataset}/{instance.id}/{arm}-{repeat}"
        if name not in self._evaluations:
            self._evaluations[name] = Evaluation(self, instance, repeat, arm, name)
        return self._evaluations[name]
