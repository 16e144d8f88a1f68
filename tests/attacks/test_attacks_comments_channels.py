r"""Text of a reviewer or a test that breaks what shows it: terminals, CI logs, reports.

One run, whose reviewer and hidden test say the worst; each attack looks at what the run wrote. Naive is what
prints or pastes a text as it is. What a program wrote is kept as it is in files of its own (``review.*``,
``checks/*.log``), which nothing else shows.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.benchmarks import Pull, Run, run, write_dataset

from pytest_crbench.core.model import Review, ReviewComment, Verdict
from pytest_crbench.core.records import to_row
from pytest_crbench.core.status import Status
from pytest_crbench.evaluation.records import review_to
from pytest_crbench.host.files import write_json

SEQUENCES = "\x1b[2J\x1b]0;title\x07\x1b]8;;http://evil.test\x1b\\link\x1b]52;c;ZXZpbA==\x07\x9b31m\rgone\b\a"
COMMANDS = (
    "\n::error file=a.py::owned\n  ::set-output name=x::y\n::stop-commands::t\n##[error]owned"
    "\n##vso[task.complete result=Succeeded]\n##teamcity[buildStatus text='ok']\nsection_start:1:x"
)
MARKUP = "<script>a()</script> <!-- [l](javascript:a) ![i](http://evil.test/i.png) | a | ``` ` @everyone #1"
HIDDEN = (
    "\u202eevil\u202c\u2066x\u2069 rele\u200bases\ufeff\U000e0041\U000e0042 \u00ad\u2028new\u2029line\x85"
)
BROKEN = "\x00\ufffe\udcff"
EVIL = f"{SEQUENCES} {MARKUP} {HIDDEN} {BROKEN} {COMMANDS}"

#: One line: only the last ones are told.
STDERR = " ".join(f"{MARKUP} {SEQUENCES}{COMMANDS}".split())
REVIEWER = f"""
import pathlib, sys
evil = {EVIL!r}


def review(pull_request, workspace):
    if (workspace / "shop/crash_.py").exists():
        sys.stderr.buffer.write({STDERR.encode()!r})
        sys.exit(4)
    said = {{"body": evil, "path": "shop/" + evil, "lines": [1, 1], "severity": evil, "rule": evil, evil: 1}}
    place = {{"path": "shop/__init__.py", "lines": [5, 5], "suggestion": evil, "body": evil}}
    return {{"comments": [said, place, {{**place, "lines": [9, 9]}}], "usage": {{evil: 3}}}}
"""
#: What hidden tests say, one each: a reason is cut after a while, and each must be reached.
SAID = {
    "sequences": SEQUENCES,
    "commands": COMMANDS.replace("\n", " "),
    "markup": MARKUP,
    "hidden": f"{HIDDEN} {BROKEN}",
}


def _test(name: str) -> str:
    body = f"raise AssertionError({SAID[name]!r})"
    return f"from shop.{name}_ import {name}\n\n\ndef test_{name}():\n    {body}\n"


@dataclass(frozen=True)
class Evil:
    """A finished run and what it wrote."""

    run: Run
    junit: Path
    step: Path
    compared: str

    @property
    def printed(self) -> dict[str, str]:
        """What terminals and CI services show, by its name: decoded from the very bytes."""
        folder = self.run.runs[-1]
        logs = {p.name: p.read_bytes().decode() for p in sorted((folder / "logs").rglob("*.log"))}
        assert logs
        return {"terminal": self.run.output, "compare": self.compared, **logs}

    @property
    def markdown(self) -> dict[str, str]:
        """What is shown as Markdown."""
        summary = (self.run.runs[-1] / "summary.md").read_text("utf-8")
        return {"summary.md": summary, "step summary": self.step.read_text("utf-8")}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Evil:
    place = tmp_path_factory.mktemp("evil")
    one = Pull("one", hard=tuple(SAID), tests={name: _test(name) for name in SAID})
    pulls = [one, Pull("two", hard=("crash",))]
    dataset = write_dataset(place / "set", pulls)
    (place / "in").mkdir()
    (place / "in" / "evil.py").write_text(REVIEWER)
    done = run(
        place / "in",
        dataset,
        cache,
        "--crbench-reviewer=evil:review",
        f"--crbench-reviewer-name=evil{SEQUENCES}{COMMANDS}",
        "--crbench-agent=suggestions",
        f"--junitxml={place}/junit.xml",
        "--crbench-fail-on-miss",
        env={"GITHUB_STEP_SUMMARY": str(place / "step.md")},
    )
    missed = {f"one::{name}": "missed" for name in SAID}
    assert done.statuses() == {**missed, "two::crash": "reviewer_error"}, done.output
    # Each of the texts was shown.
    assert all(word in done.output for word in ("evil.test", "owned", "everyone", "ases")), done.output
    results = str(done.runs[-1] / "results.json")
    main = "import sys; from pytest_crbench.cli import main; sys.exit(main(sys.argv[1:]))"
    compare = [sys.executable, "-c", main, "compare", results, results]
    said = subprocess.run(compare, capture_output=True, check=False, env={**os.environ, "COLUMNS": "60"})
    assert (said.returncode, b"sign-flip" in said.stdout) == (0, True), said.stderr
    return Evil(done, place / "junit.xml", place / "step.md", said.stdout.decode())


SIGNS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def test_escape_sequences_take_the_terminal(evil: Evil) -> None:
    """A comment, a reviewer's name, what it says on stderr, or a test's exception holds sequences that
    clear the screen, set the title, make links, write to the clipboard (OSC 52), or go back over a
    line.

    Defence: printable lines (text/printable.py)
    """
    assert SIGNS.search(f"missed: AssertionError: {EVIL}")
    for name, text in evil.printed.items():
        assert not SIGNS.search(text), f"attack: {name}: {SIGNS.findall(text)}"


WORKFLOW = re.compile(r"^\s*::|##\[|##vso\[|##teamcity\[|section_(?:start|end):\d", re.MULTILINE)


def test_commands_to_the_ci_service_in_a_log(evil: Evil) -> None:
    """A text begins a line of the job's log with ::set-output, ::error or ::stop-commands, or holds
    ##vso[…], ##teamcity[…]: the CI service obeys, and sets outputs, annotations or the build's very
    result.

    Defence: no command in a line (text/printable.py)
    """
    assert len(WORKFLOW.findall(f"missed: AssertionError: {EVIL}")) == 7
    for name, text in evil.printed.items():
        assert not WORKFLOW.search(text), f"attack: {name}: {WORKFLOW.findall(text)}"


UNSEEN = re.compile("[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]")


def test_invisible_and_turned_text_deceives_the_reader(evil: Evil) -> None:
    """Overrides of the direction turn what a person reads around, zero-width characters make two names
    look the same, tag characters carry a text that only machines see.

    Defence: nothing invisible (text/printable.py)
    """
    assert UNSEEN.search(f"missed: AssertionError: {EVIL}")
    for name, text in {**evil.printed, **evil.markdown}.items():
        assert not UNSEEN.search(text), f"attack: {name}: {UNSEEN.findall(text)}"
        assert "rele\ufffdases" in text or "rele" not in text, name


def test_markup_in_a_summary(evil: Evil) -> None:
    """A reason or a reviewer's name holds HTML, links, images (that tell who looks), tables, a comment
    that swallows what follows, mentions: the job's summary on the forge shows what the reviewer wants.

    Defence: code spans that cannot be closed (text/printable.py)
    """

    def outside_code(text: str) -> str:
        return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)

    pasted = f"- one::miss: missed {EVIL}"
    signs = ("<script", "<!--", "](", "@everyone")
    assert all(sign in pasted for sign in signs)
    for name, text in evil.markdown.items():
        rest = outside_code(text)
        assert "script" in text, "the reason of the failure is in the text"
        for sign in signs:
            assert sign not in rest, f"attack: {name}: {sign}"
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {line.count("|") for line in rows} == {7}, f"attack: {name}: another column"
        assert not re.search(r"^\s*(::|```)", text, re.MULTILINE)


def test_signs_that_xml_cannot_hold(evil: Evil) -> None:
    """A reason with NUL, a lone surrogate or U+FFFE makes the JUnit file unreadable: the CI service
    shows no test at all. A quote adds attributes, or another test that passes.

    Defence: printable lines (text/printable.py)
    """
    with pytest.raises((ET.ParseError, UnicodeError)):
        ET.fromstring(f'<testcase message="{EVIL}"/>'.encode())
    root = ET.parse(evil.junit).getroot()
    cases = root.findall(".//testcase")
    assert sorted(case.get("name", "") for case in cases) == sorted(["crash", *SAID])
    shown = ET.tostring(root, "unicode")
    assert not SIGNS.search(shown), f"attack: {SIGNS.findall(shown)}"


def test_signs_that_json_and_xdist_cannot_hold(tmp_path: Path) -> None:
    """A lone surrogate in a body, a path or an exception ends the worker that sends it, or leaves a file of
    results that no program reads again.

    Defence: no lone surrogates (text/printable.py)
    """
    with pytest.raises(UnicodeEncodeError):
        json.dumps(EVIL, ensure_ascii=False).encode()
    comment = ReviewComment(EVIL, EVIL, EVIL, (1, 1), suggestion=EVIL, rule=EVIL, flags=(EVIL,))
    verdict = Verdict(
        "d",
        "i",
        "c",
        status=Status.MISSED,
        reason=EVIL,
        facets={EVIL: EVIL},
        check_digest="0",
        warnings=(EVIL,),
    )
    try:
        record = review_to(Review((comment,), EVIL, warnings=(EVIL,)))
        write_json(tmp_path / "review.json", {**record, "reviewer": "r"})
        row = json.dumps(to_row(verdict), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        pytest.fail(f"attack: {error}")
    for data in ((tmp_path / "review.json").read_bytes(), row):
        assert "\ufffd" in json.dumps(json.loads(data.decode()), ensure_ascii=False)
