"""What every scoring promises (`core.scoring`), seen in a run without pytest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import CrbenchError
from ..core.model import Verdict
from ..core.records import from_row, to_row
from ..core.scoring import METRICS, SCORINGS, Scoring
from ..core.status import Status
from ..run.run import Run
from .sample import fails, is_text, plain

if TYPE_CHECKING:
    from ..core.model import Dataset
    from ..core.settings import Settings
    from ..statistics.results import Results
    from . import Subject


@pytest.fixture(scope="session")
def scoring(part: Any, subject: Subject) -> Scoring:
    """The scoring, registered under its name for the run."""
    assert isinstance(part, Scoring), f"{subject.name} is no instance of a subclass of Scoring"
    is_text(part.name, "name")
    if subject.registered:
        assert part.name == subject.name, "name must be the name of the entry point"
    else:
        SCORINGS.add(part.name, part)
    return part


@pytest.fixture(scope="session", params=["human", "none"])
def results(
    request: pytest.FixtureRequest, scoring: Scoring, settings: Settings, data: Dataset
) -> tuple[Settings, Results]:
    """Two runs over the sample: everything that the references say, and nothing."""
    wanted = replace(settings, reviewer=request.param, scoring=(scoring.name,), agent="suggestions")
    try:
        with Run(wanted, [data], say=print) as run:
            for planned in run.planned():
                run.verdict(planned)
            return wanted, run.finish()[0]
    except CrbenchError as error:
        fails(f"no run starts with it: {error}")


def test_describes_itself(scoring: Scoring) -> None:
    for name in ("passed", "rate", "decided", "lacks", "advice", "alike", "unlike"):
        is_text(getattr(scoring, name), name)
    assert isinstance(scoring.needs_agent, bool), "needs_agent must be True or False"
    assert isinstance(scoring.stages, tuple), "stages must be a tuple"
    assert scoring.stages[:1] == ("review",), "stages must begin with review"
    assert ("revision" in scoring.stages) <= scoring.needs_agent, "a revision needs the agent"
    taken = set(scoring.metrics) & set(METRICS)
    assert not taken, f"every scoring has these metrics: {sorted(taken)}"
    for name in (*scoring.headline, *scoring.tells):
        assert name in scoring.metrics, f"{name} is in headline or tells, and not in metrics"


def test_applies_to_checks_the_same_every_time(scoring: Scoring, data: Dataset) -> None:
    for check in (check for instance in data.instances for check in instance.checks):
        for file_level in (False, True):
            found = scoring.applies(check, file_level=file_level)
            assert isinstance(found, bool), "applies() must return a bool"
            assert found == scoring.applies(check, file_level=file_level)


def test_its_decider_is_made_before_there_is_a_run(scoring: Scoring, settings: Settings) -> None:
    decider = scoring.decider(settings, None)
    assert callable(decider.verdict), "a decider has a method verdict"
    assert plain(scoring.inputs(decider)) == plain(scoring.inputs(scoring.decider(settings, None)))
    assert isinstance(scoring.look(settings), str), "look() must return text"


def test_every_check_gets_a_verdict(results: tuple[Settings, Results], scoring: Scoring) -> None:
    settings, found = results
    assert {verdict.key for verdict in found.verdicts} == set(found.planned)
    for verdict in found.verdicts:
        assert isinstance(verdict, Verdict)
        assert verdict.key.scoring == scoring.name
        assert verdict.status in (Status.PASSED, Status.MISSED), (
            f"{verdict.instance}, reviewed by {settings.reviewer}: {verdict.status.value}: {verdict.reason}"
        )
        assert verdict.status is Status.PASSED or verdict.reason, "a miss must have a reason"
        plain(to_row(verdict))
        known = {verdict.review.id: verdict.review} if verdict.review else {}
        back = from_row(Verdict, to_row(verdict), by_id=known)
        assert back.key == verdict.key, "a verdict must come back from its row"
        assert back.status is verdict.status


def test_its_numbers(results: tuple[Settings, Results], scoring: Scoring) -> None:
    _settings, found = results
    assert scoring.measure(()) is None, "measure() of nothing must be None"
    numbers, reversed_ = scoring.measure(found.verdicts), scoring.measure(found.verdicts[::-1])
    if numbers is None:
        assert not scoring.metrics, "a scoring with metrics must measure its verdicts"
        return
    assert reversed_ is not None
    assert plain(numbers.to_json()) == plain(reversed_.to_json()), "the order of verdicts must play no part"
    for metric in scoring.metrics:
        value = numbers.value(metric)
        assert value is None or 0 <= value <= 1, f"{metric} must be from 0 to 1, found {value}"
        assert value == reversed_.value(metric), "the order of verdicts must play no part"
    assert 0 <= numbers.reviews <= len(found.verdicts)
    for name, sentence in numbers.lines():
        is_text(name, "the name of a line")
        is_text(sentence, f"the line {name}")
    for remark in numbers.remarks:
        is_text(remark, "a remark")
