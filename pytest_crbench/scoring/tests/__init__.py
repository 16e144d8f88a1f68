"""The scoring of c-CRAB (arXiv 2603.23448): hidden tests, run on the unmodified head and on a revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.scoring import Scoring

if TYPE_CHECKING:
    from pathlib import Path

    from ...core.model import Check
    from ...core.scoring import Decider
    from ...core.settings import Settings


class HiddenTestScoring(Scoring):
    """A check is a hidden test; it passes if the test does after the coding agent's revision."""

    name = "tests"
    stages = ("review", "revision")
    needs_agent = True
    decided = "decided by hidden tests"
    lacks = "no hidden test"
    alike = "agent, sandbox and environments"
    tables = "reports.tables_tests:hidden_test_tables"

    def applies(self, check: Check, *, file_level: bool) -> bool:
        """Whether there is a hidden test."""
        return bool(check.test)

    def decider(self, settings: Settings, run: Path | None) -> Decider:
        """Return what runs the hidden tests of a run."""
        from .hidden_tests import HiddenTestDecider

        return HiddenTestDecider()


SCORING = HiddenTestScoring()
