"""The block at the end of a run: its exact text, and that nothing foreign reaches the terminal raw."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import broken, run_of, verdicts

from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.reports.markdown import markdown
from pytest_crbench.reports.results import document
from pytest_crbench.reports.table import table, verdict_line
from pytest_crbench.statistics.gate import decide, make_gate

GOLDEN = Path(__file__).parent / "table.golden.txt"


def block(results, **options) -> list[str]:  # type: ignore[no-untyped-def]
    summary = results.summary()
    decision = decide(make_gate(fail_under=["0.25"]), summary)
    return [*table(results, (summary,), **options), verdict_line(decision)]


def test_golden_text() -> None:
    """Shape and numbers of the block; on a wanted change write the new text into table.golden.txt."""
    found = verdicts()
    found[5] = broken(found[5], Status.INFRA_ERROR, "image build: registry timed out")
    run = ".crbench/runs/2026-12-01T0931"
    lines = block(run_of(found), files=f"{run}/ (results.json, summary.md, logs/)", logs=run)
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_the_run_can_be_copied_from_a_narrow_terminal() -> None:
    name = ".crbench/runs/2026-12-01T093100-0123456789abcdef"
    lines = table(run_of(verdicts()), run_of(verdicts()).summaries, files=name, width=40)
    assert name in lines[-1]


def test_columns_are_aligned() -> None:
    lines = table(run_of(verdicts()), run_of(verdicts()).summaries)
    rows = [line for line in lines if re.search(r"\d - *\d", line) and not line.startswith("macro")]
    assert len(rows) >= 6
    assert len({row.index(" - ") for row in rows}) == 1
    assert {len(row) for row in rows} == {len(rows[0])}


def test_what_is_not_measured_is_listed_with_its_reasons() -> None:
    found = verdicts()
    for place, reason in enumerate(["timeout", "timeout", "crashed", "unreadable output"]):
        found[place] = broken(found[place], Status.REVIEWER_ERROR, reason)
    found[4] = broken(found[4], Status.TAMPERED, "canary bent")
    missing = {Key("releases", "late", "c"): {"kind": "structural", "category": "Design"}}
    text = "\n".join(block(run_of(found, planned=missing), width=200))
    assert "35 of 41 measured (4 reviewer_error, 1 tampered, 1 not run)" in text
    assert "bounds    24.4 - 39.0, had what is not measured (6) been missed, or passed" in text
    # One cause is told once.
    assert "releases::package-00::check-0 and 1 more: reviewer_error: timeout; log logs/releases/" in text
    assert text.count("timeout") == 1
    assert ": tampered: canary bent; log logs/" in text
    assert "releases::late::c: not run" in text
    assert "UNDECIDED, coverage 0.854 < 0.95 (4 reviewer_error, 1 tampered, 1 not run)" in text
    # Both bounds are there: the table counts the reviewer's errors, the line below does not.
    assert re.search(r"^overall +10 +40 +25\.0 ", text, re.MULTILINE)
    assert re.search(r"^ +measured +10 +35 +28\.6 +\d", text, re.MULTILINE)
    assert "measured 0.286 (10 of 35)" in text.splitlines()[-1]


def test_a_long_list_is_cut_and_says_where_the_rest_is() -> None:
    found = [broken(one, Status.INFRA_ERROR, f"engine {n} lost") for n, one in enumerate(verdicts())]
    text = "\n".join(block(run_of(found), logs="runs/x"))
    assert len(re.findall(r"engine \d+ lost", text)) == 10
    assert "... and 30 more, see summary.md" in text
    assert "runs/x/logs/releases/package-00.log" in text


def test_nothing_measured() -> None:
    found = [broken(one, Status.INFRA_ERROR, "engine lost") for one in verdicts()]
    lines = block(run_of(found))
    assert re.search(r"^overall +0 +0 +- +-$", lines[1])
    assert lines[-1].startswith("crbench: UNDECIDED, coverage 0.000 < 0.95 (40 infra_error)")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agent": {"name": "reference"}}, "reference agent: for checking the harness only"),
        ({"replay_of": "old-run"}, "replay of old-run"),
        ({"resumed": True}, "resumed"),
        ({"interrupted": True}, "interrupted"),
        ({"notes": ["the instances used the network"]}, "the instances used the network"),
    ],
)
def test_what_every_report_must_say(change: dict[str, object], said: str) -> None:
    assert said in "\n".join(block(run_of(verdicts(), **change)))
    assert said not in "\n".join(block(run_of(verdicts())))


def test_repeats_say_how_many_checks_there_are() -> None:
    once = verdicts()
    again = [replace(one, repeat=2) for one in once]
    again[1] = broken(again[1], Status.PASSED, "")
    text = "\n".join(block(run_of([*once, *again])))
    assert "repeats   2 of each of 40 checks: 12 passed in every repeat, 13 in at least one" in text
    assert "450 on 60 reviews (7.5 each)" in text


def test_a_terminal_cannot_be_driven_by_what_is_printed() -> None:
    """Escape sequences, line ends and overrides in reasons, names, notices and paths."""
    evil = "\x1b[2J\x1b]0;title\x07 fine\r\ncrbench: PASSED, overall 1.000\u202e"
    found = verdicts()
    found[0] = broken(
        replace(found[0], log=evil, facets={"kind": evil, evil: evil}), Status.INFRA_ERROR, evil
    )
    results = run_of(
        found,
        datasets=[{"name": evil, "notice": evil}],
        replay_of=evil,
        notes=[evil],
        reviewer={"name": evil},
    )
    lines = block(results, files=evil)
    text = "\n".join(lines)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert [line for line in lines if line.startswith("crbench: PASSED")] == lines[-1:]


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=200), st.integers(40, 120))
def test_lines_stay_short_whatever_the_reason(reason: str, width: int) -> None:
    found = verdicts()[:4]
    found[0] = broken(found[0], Status.INFRA_ERROR, reason)
    results = run_of(found, notes=[reason])
    for line in table(results, results.summaries, files=".crbench/runs/x/", width=width):
        assert len(line) <= max(width, 70)
        assert "\n" not in line
        line.encode()


def test_what_reading_gave_up_is_counted_once_per_review_in_every_report() -> None:
    """Two checks of one pull request share a review; a second pull request adds to it."""
    found = verdicts()[:4]
    assert found[2].key.instance == found[3].key.instance
    noted = [{"outside-tree": 3}, {}, {"suggestion-lost": 2, "outside-tree": 1}]
    found = [with_noted(v, noted[min(n, 2)]) for n, v in enumerate(found)]
    results = run_of(found)
    line = "4 outside-tree, 2 suggestion-lost"
    assert f"noted     {line}" in table(results, results.summaries)
    decision = decide(make_gate(), results.summary())
    assert f"- noted in reading the reviews: {line}\n" in markdown(results, results.summaries, decision)
    overall = document(results, decision)["summary"]["overall"]
    assert overall["comments"]["noted"] == {"outside-tree": 4, "suggestion-lost": 2}
    odd = run_of([with_noted(v, {"\x1b[2J": 1}) for v in found])
    assert "\x1b" not in "\n".join(table(odd, odd.summaries))


def with_noted(verdict: Verdict, noted: dict[str, int]) -> Verdict:
    assert verdict.review is not None
    return replace(verdict, review=replace(verdict.review, noted=noted))


def test_misses_are_told_with_their_reasons_where_asked() -> None:
    results = run_of(verdicts())
    told = table(results, results.summaries, misses=True)
    assert sum("AssertionError: still there" in line for line in told) == 28
    assert told.index("missed    releases::package-01::check-0: AssertionError: still there") > 0
    assert not any("still there" in line for line in table(results, results.summaries))
