"""Takes instances through their stages: review, revise, verdict. Knows no pytest; safe for many processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import StageError
from .context import Context
from .evaluation import Evaluation

if TYPE_CHECKING:
    from ..core.model import Check, Instance, Review, Revision, Verdict


@dataclass
class Evaluator(Context):
    """Takes instances through their stages; holds what one process may reuse between checks."""

    _evaluations: dict[str, Evaluation] = field(default_factory=dict)

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
        scoring: str = "tests",
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
        scoring: str = "tests",
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
