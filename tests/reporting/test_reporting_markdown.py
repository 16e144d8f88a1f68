"""summary.md: its order, and that foreign text is never markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import broken, run_of, verdicts

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.status import Status
from pytest_crbench.reports.comparison import comparison_markdown, comparison_text
from pytest_crbench.reports.markdown import STEP_SUMMARY_LIMIT, append_step_summary, markdown
from pytest_crbench.statistics.compare import compare
from pytest_crbench.statistics.gate import decide, make_gate
from pytest_crbench.text.printable import code, escaped

if TYPE_CHECKING:
    from pathlib import Path

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details><h1>PASSED</h1>",
    "[click](javascript:alert(1))",
    "![beacon](https://attacker.example/pixel.png)",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "`code` ``two`` ```\nfence\n```",
    "# heading\n\n- list",
    "@everyone please look at #1",
    "www.attacker.example and https://attacker.example",
    "**bold** __bold__ ~~gone~~ *it*",
    "&lt;b&gt; &amp; \\<b>",
    "$\\href{https://attacker.example}{x}$",
    "<!-- hidden",
    "\u202e reversed",
    "ends in a backslash \\",
]


def page(reason: str) -> str:
    found = verdicts()
    found[0] = replace(broken(found[0], Status.INFRA_ERROR, reason), log=reason)
    found[1] = replace(found[1], facets={**found[1].facets, "category": reason, "colour": reason})
    found[2] = replace(found[2], facets={**found[2].facets, "colour": "red"})
    results = run_of(
        found,
        reviewer={"name": reason},
        datasets=[{"name": reason, "notice": reason}],
        notes=[reason],
    )
    summary = results.summary()
    decision = decide(make_gate(fail_under=["@category=none such:0.5"]), summary)
    return markdown(results, (summary,), decision, files=reason)


def test_order() -> None:
    results = run_of(verdicts())
    summary = results.summary()
    decision = decide(make_gate(fail_under=["0.25"]), summary)
    text = markdown(results, (summary,), decision, files=".crbench/runs/x")
    lines = text.splitlines()
    assert lines[0].startswith("**✅ crbench: PASSED, overall 0.300")
    places = [
        text.index(part)
        for part in ("PASSED", "reviewer `cmd", "| **overall** |", "- coverage", "own words", "Missed (28)")
    ]  # fmt: skip
    assert places == sorted(places)


def test_the_verdict_is_the_decision(tmp_path: Path) -> None:
    results = run_of(verdicts())
    for bound, icon in (("0.3", "✅"), ("0.31", "❌")):
        decision = decide(make_gate(fail_under=[bound]), results.summary())
        assert markdown(results, results.summaries, decision).startswith(f"**{icon} crbench: ")


def test_unmeasured_checks_are_listed_with_their_reasons() -> None:
    text = page("registry timed out")
    assert "- `releases::package-00::check-0`: infra_error, `registry timed out`" in text


def test_each_cause_and_each_miss_has_its_reason_once() -> None:
    found = [broken(one, Status.INFRA_ERROR, "engine lost") for one in verdicts()[:3]] + verdicts()[3:]
    results = run_of(found)
    text = markdown(results, results.summaries, decide(make_gate(), results.summary(), results))
    assert text.count("engine lost") == 1
    assert "<summary>Not measured (3)</summary>" in text
    names = ", ".join(f"`releases::{one}`" for one in ("package-00::check-0", "package-01::check-0"))
    assert f"- {names}, `releases::package-02::check-0`: infra_error, `engine lost`" in text
    assert "- `releases::package-05::check-0`: `AssertionError: still there`" in text


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not [value for name, value in attrs if name in ("href", "src", "onerror")], attrs


def rendered_tags(text: str) -> set[str]:
    """Tags of the page as a CommonMark renderer with tables, autolinks and raw HTML makes it."""
    renderer = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    renderer.enable("strikethrough")
    tags = _Tags()
    tags.feed(renderer.render(text))
    return tags.found


@pytest.mark.parametrize("attack", ATTACKS)
def test_injection(attack: str) -> None:
    """A comment or a reason of a foreign program must not become markup in a pull request's page."""
    assert rendered_tags(page(attack)) == rendered_tags(page("harmless"))


@settings(max_examples=30, deadline=None)
@given(st.text(st.sampled_from("`|\\<>[]()*_#&;!@$\n\r\x00\ud800 a:/."), max_size=30))
def test_injection_of_anything(text: str) -> None:
    assert rendered_tags(page(text or "x")) <= rendered_tags(page("harmless"))


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_escapes_are_complete(text: str) -> None:
    assert not re.search(r"[<>|`*\[\]\\@$\n\r]", escaped(text))
    span = code(text)
    if span:
        fence = re.match("`+", span)
        assert fence is not None
        inside = span[len(fence[0]) : -len(fence[0])]
        assert fence[0] not in re.findall("`+", inside)
        assert "\n" not in span


def test_comparison_is_escaped_too() -> None:
    first, second = verdicts(), verdicts()
    evil = "<img src=x> | ![x](https://attacker.example)\x1b[2J"
    second[0] = replace(second[0], facets={"kind": evil})
    found = compare(run_of(first), run_of(second, reviewer={"name": evil}))
    assert "img" not in rendered_tags(comparison_markdown(found))
    assert "\x1b" not in "\n".join(comparison_text(found))


def test_step_summary_is_appended(tmp_path: Path) -> None:
    target = tmp_path / "summary"
    target.write_text("before\n")
    assert append_step_summary("after\n", {"GITHUB_STEP_SUMMARY": str(target)}) == target
    assert target.read_text() == "before\nafter\n"
    assert append_step_summary("x", {}) is None
    assert append_step_summary("x", {"GITHUB_STEP_SUMMARY": ""}) is None


def test_step_summary_stays_below_the_limit(tmp_path: Path) -> None:
    """GitHub drops the whole summary of a step if it is larger than 1 MiB."""
    target = tmp_path / "summary"
    target.write_bytes(b"x" * 1000)
    append_step_summary("ü" * STEP_SUMMARY_LIMIT, {"GITHUB_STEP_SUMMARY": str(target)})
    data = target.read_bytes()
    assert STEP_SUMMARY_LIMIT - 10 < len(data) <= STEP_SUMMARY_LIMIT
    assert data.decode().endswith("… cut; the whole summary is in summary.md\n")
    append_step_summary("more", {"GITHUB_STEP_SUMMARY": str(target)})
    assert target.stat().st_size <= STEP_SUMMARY_LIMIT


def test_step_summary_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="GITHUB_STEP_SUMMARY"):
        append_step_summary("x", {"GITHUB_STEP_SUMMARY": str(tmp_path)})
