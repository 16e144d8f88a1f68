"""How checks are decided, one folder for each scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.scoring import Scoring
    from ..core.settings import Settings


def _tests(_settings: Settings, _run: Path | None) -> Scoring:
    from .tests.hidden_tests import HiddenTestScoring

    return HiddenTestScoring()


def _matching(settings: Settings, run: Path | None) -> Scoring:
    from .matching.matchers import make_classifier, make_matcher
    from .matching.stage import MatchingScoring

    return MatchingScoring(make_matcher(settings, run), make_classifier(settings, run))


#: Every scoring by name, in the order of tables: makes it for a run, whose folder holds the budget.
SCORINGS: dict[str, Callable[[Settings, Path | None], Scoring]] = {"tests": _tests, "matching": _matching}
