"""What every report promises (`core.report`)."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.model import Key, Verdict
from ..core.report import Report
from ..core.run_record import ReviewerPart, RunRecord
from ..core.status import Status
from ..statistics.gate import decide, make_gate
from ..statistics.results import Results
from .sample import plain

if TYPE_CHECKING:
    from . import Subject

#: What programs under test can bring into a report.
_NASTY = "\x1b[31mred\x07 \u202ereversed </details> | `code` ::error::x \udcff"


@pytest.fixture(scope="session")
def report(part: Any, subject: Subject) -> Report:
    """The report."""
    assert isinstance(part, Report), f"{subject.name} is no instance of a subclass of Report"
    return part


def _verdict(number: int, status: Status, scoring: str = "tests") -> Verdict:
    return Verdict(
        dataset="data",
        instance=f"pull-{number % 3}",
        check=f"check-{number}",
        scoring=scoring,
        status=status,
        reason=_NASTY if status is not Status.PASSED else "",
        facets={"category": "Security", "repo": _NASTY},
        check_digest="0" * 64,
    )


def _results(verdicts: tuple[Verdict, ...]) -> Results:
    mytool = ReviewerPart(name="mytool", fingerprint={"kind": "x"})
    record = RunRecord(name="run", started="2026-01-01T00:00:00Z", reviewer=mytool)
    planned = {verdict.key: dict(verdict.facets) for verdict in verdicts}
    planned[Key("data", "pull-0", "not-run")] = {"category": "Security"}
    return Results(record, verdicts, planned)


ALL = tuple(_verdict(number, status) for number, status in enumerate(Status))
CASES = {
    "all statuses": _results(ALL),
    "nothing measured": _results(()),
    "two scorings": _results((*ALL, *(replace(verdict, scoring="matching") for verdict in ALL))),
}
cases = pytest.mark.parametrize("results", CASES.values(), ids=list(CASES))


def _content(report: Report, results: Results, folder: Path) -> Any:
    summary, *more = results.summaries
    decision = decide(make_gate(fail_under=["0.5"]), summary, results, more)
    return report.content(results, decision, folder)


def test_has_a_file(report: Report) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", report.file), (
        f"file must be the name of a file in the run's folder, found {report.file!r}"
    )


@cases
def test_is_text_or_plain_json(report: Report, results: Results, tmp_path: Path) -> None:
    found = _content(report, results, tmp_path)
    assert isinstance(found, str | dict), f"content() must return text or a dict, found {found!r}"
    if isinstance(found, str):
        assert "\x1b" not in found, "an escape sequence of a program under test must not reach the report"
        assert "\x07" not in found, "a control character of a program under test must not reach the report"
    else:
        plain(found)
    assert list(tmp_path.iterdir()) == [], "content() returns what is to be written, and writes nothing"


@cases
def test_is_the_same_every_time_and_changes_nothing(report: Report, results: Results, tmp_path: Path) -> None:
    before = copy.deepcopy((results.verdicts, dict(results.planned), results.run))
    assert _content(report, results, tmp_path) == _content(report, results, tmp_path)
    assert (results.verdicts, dict(results.planned), results.run) == before, "the results were changed"
