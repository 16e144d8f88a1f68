"""Real tools: recorded outputs with the exact comments they hold, and ruff and bandit run here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.reviewing import given

from pytest_crbench.reviewers.formats import PARSERS, HeadFiles, ParseContext, Unreadable, parse
from pytest_crbench.reviewers.load import load

if TYPE_CHECKING:
    from pytest_crbench.core.model import ReviewComment


@pytest.fixture
def demo(tmp_path: Path) -> ParseContext:
    """The workspace of the recorded runs, as far as its address matters."""
    return ParseContext(Path("/src/demo"), HeadFiles(lambda: tmp_path))


def said(comment: ReviewComment) -> tuple[Any, ...]:
    return (
        comment.path,
        comment.lines,
        comment.severity,
        comment.rule,
        comment.body,
        comment.level,
        comment.flags,
    )


EXPECTED = {
    "ruff.sarif": [
        (
            "kbd/distance.py",
            (19, 19),
            "error",
            "S602",
            "`subprocess` call with `shell=True` identified, security issue",
            "inline",
            (),
        )
    ],
    "bandit.sarif": [
        (
            "kbd/distance.py",
            (2, 2),
            "note",
            "B404",
            "Consider possible security implications associated with the subprocess module.",
            "inline",
            (),
        ),
        (
            "kbd/distance.py",
            (19, 19),
            "error",
            "B602",
            "subprocess call with shell=True identified, security issue.",
            "inline",
            (),
        ),
    ],
    "semgrep.sarif": [
        (
            "kbd/distance.py",
            (19, 19),
            "error",
            "rules.subprocess-shell-true",
            "subprocess call with shell=True; command injection risk",
            "inline",
            (),
        ),
        (
            "kbd/layout.py",
            (20, 22),
            "warning",
            "rules.index-before-check",
            "keyboard is indexed before it is checked for emptiness",
            "inline",
            (),
        ),
    ],
}


@pytest.mark.parametrize("format", ["sarif", "auto"])
@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_sarif(name: str, format: str, demo: ParseContext, tool_output: Path) -> None:
    parsed = parse((tool_output / name).read_bytes(), format, demo)
    assert [said(c) for c in parsed.comments] == EXPECTED[name]
    assert parsed.noted == {}
    assert parsed.warnings == (("format taken from the content: sarif",) if format == "auto" else ())


@pytest.mark.parametrize("name", ["ruff", "bandit", "semgrep"])
def test_sarif_says_what_the_tools_own_json_says(name: str, demo: ParseContext, tool_output: Path) -> None:
    own = json.loads((tool_output / f"{name}.json").read_text())
    places = {
        "ruff": lambda r: (r["filename"].removeprefix("/src/demo/"), r["location"]["row"], r["code"]),
        "bandit": lambda r: (r["filename"].removeprefix("./"), r["line_number"], r["test_id"]),
        "semgrep": lambda r: (r["path"], r["start"]["line"], r["check_id"]),
    }[name]
    wanted = [places(r) for r in (own if name == "ruff" else own["results"])]
    parsed = parse((tool_output / f"{name}.sarif").read_bytes(), "sarif", demo)
    assert [(c.path, c.lines and c.lines[0], c.rule) for c in parsed.comments] == wanted


@pytest.mark.parametrize("format", PARSERS)
@pytest.mark.parametrize("name", ["ruff.json", "bandit.json", "semgrep.json"])
def test_a_tools_own_json_is_refused_not_half_read(
    name: str, format: str, demo: ParseContext, tool_output: Path
) -> None:
    with pytest.raises(Unreadable) as caught:
        parse((tool_output / name).read_bytes(), format, demo)
    assert caught.value.reason == "unreadable"


def test_absolute_paths_of_another_machine_are_kept_and_flagged(tool_output: Path, tmp_path: Path) -> None:
    elsewhere = ParseContext(tmp_path, HeadFiles(lambda: tmp_path))
    (comment,) = parse((tool_output / "ruff.sarif").read_bytes(), "sarif", elsewhere).comments
    assert comment.path == "/src/demo/kbd/distance.py"
    assert comment.flags == ("outside-tree",)


def ruff_json(root: Path) -> list[dict[str, Any]]:
    argv = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select=E,F",
        "--output-format=json",
        ".",
    ]
    return json.loads(subprocess.run(argv, cwd=root, capture_output=True, check=False).stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("format", ["sarif", "rdjson", "auto"])
def test_ruff_run_here(format: str, project: Any, tmp_path: Path) -> None:
    written = "rdjson" if format == "rdjson" else "sarif"
    reviewer = load(
        f"cmd:ruff check --isolated --no-cache --select=E,F --output-format={written} {{workspace}}",
        given(format=format, exit_ok=(0, 1), version="x"),
    )
    review = reviewer.review(project.task(tmp_path / "run"))
    own = ruff_json(project.root)
    assert len(own) >= 3
    assert sorted((c.path, c.rule, c.lines) for c in review.comments) == sorted(
        (
            str(Path(r["filename"]).relative_to(project.root.resolve())),
            r["code"],
            (r["location"]["row"], r["end_location"]["row"]),
        )
        for r in own
    )
    by_rule = {c.rule: c for c in review.comments}
    assert by_rule["F401"].suggestion == ""  # the whole line "import sys" goes
    assert by_rule["E711"].suggestion == "    if x is None:\n" if "E711" in by_rule else True
    assert review.raw == "review.stdout"
    assert len({c.id for c in review.comments}) == len(review.comments)


def test_ruff_findings_are_a_crash_unless_exit_1_is_fine(project: Any, tmp_path: Path) -> None:
    from pytest_crbench.core.errors import ReviewerError

    reviewer = load("cmd:ruff check --isolated --no-cache --output-format=sarif .")
    with pytest.raises(ReviewerError, match="exit status 1") as caught:
        reviewer.review(project.task(tmp_path / "run"))
    assert caught.value.reason == "crashed"
    assert json.loads((tmp_path / "run/review.stdout").read_text())["version"] == "2.1.0"


def test_bandit_run_here(project: Any, tmp_path: Path) -> None:
    reviewer = load("cmd:bandit -q -r -f sarif -o {out} .", given(format="sarif", exit_ok=(0, 1)))
    (tmp_path / "extra").mkdir()

    def checkout(destination: Path) -> None:
        project.checkout(destination)
        (destination / "danger.py").write_text("import pickle\n\n\ndef load(b):\n    return eval(b)\n")

    review = reviewer.review(project.task(tmp_path / "run", checkout=checkout))
    assert [(c.path, c.lines, c.rule) for c in review.comments] == [
        ("danger.py", (1, 1), "B403"),
        ("danger.py", (5, 5), "B307"),
    ]
    assert all(c.flags == ("outside-diff",) for c in review.comments)
    assert review.raw == "review.out"
    assert "2 of 2 comments: outside-diff" in review.warnings
