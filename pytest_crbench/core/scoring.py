"""How a check is decided: the seam between an evaluation and the scorings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .model import Check, Verdict


class Scoring(Protocol):
    """One way to decide checks (`scoring.SCORINGS`)."""

    @property
    def name(self) -> str:
        """What results, options and node ids call it."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages whose time and usage are part of its verdicts, in order; ``review`` is the first."""

    @property
    def runs_code(self) -> bool:
        """Whether it runs the code under review, in a sandbox."""

    def verdict(self, evaluation: Any, check: Check) -> Verdict:
        """Return the verdict on one check; ``evaluation`` is an `evaluation.evaluation.Evaluation`.

        Raises:
            StageError: if there is no measurement; its status becomes the check's.
        """
