"""Comments whose place or suggestion reaches out of the tree.

Naive is a program that joins a path to a folder and replaces lines there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_crbench.agents.suggestions import plan
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.host.trees import writable_copy
from pytest_crbench.reviewers.formats import HeadFiles, ParseContext, Parsed, parse
from pytest_crbench.reviewers.formats.draft import draft

TEXT = "one\ntwo\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "tree"
    (folder / "pkg").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("a.py", "pkg/b.py", ".git/config"):
        (folder / name).write_text(TEXT)
    (tmp_path / "victim").write_text(TEXT)
    (folder / "link").symlink_to(tmp_path / "victim")
    (folder / "up").symlink_to(tmp_path)
    return folder


def naive(root: Path, path: str) -> None:
    """Replace the first line of a file by a suggestion."""
    place = root / path
    place.write_text("owned\n" + "".join(place.read_text().splitlines(keepends=True)[1:]))


def context(root: Path) -> ParseContext:
    return ParseContext(root, HeadFiles(lambda: root))


OUTSIDE = [
    "../../victim",
    "{victim}",
    "pkg/../../../victim",
    "link",
    "up/victim",
    ".git/config",
    ".GIT/config",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_suggestion_for_a_file_outside_the_tree(tmp_path: Path, root: Path, path: str) -> None:
    """A suggestion names an absolute path, climbs with .., goes through a link of the tree, or means
    the repository's own configuration: applied on the host, it changes the user's files.

    Defence: suggestions only for files of head (agents/suggestions.py)
    """
    path = path.format(victim=tmp_path / "victim")
    if path != ".GIT/config":  # the same file where case does not count
        naive(root, path)
        harmed = [p for p in (tmp_path / "victim", root / ".git/config") if "owned" in p.read_text()]
        assert harmed
        harmed[0].write_text(TEXT)
    writable_copy(root, tmp_path / "copy" / "tree")
    made = plan(root, [ReviewComment("c", "b", path, (1, 1), suggestion="owned\n")])
    made.write(tmp_path / "copy" / "tree")
    assert made.counts["applied"] == 0, "attack: it is applied"
    assert "c: skipped: " in made.warnings[0]
    texts = {p.read_text() for p in tmp_path.rglob("*") if p.is_file()}
    assert texts == {TEXT}


PATHS = {
    "../../victim": "outside-tree",
    "/etc/passwd": "outside-tree",
    "..\\..\\victim": "outside-tree",
    "C:\\Windows\\win.ini": "outside-tree",
    "file:///etc/passwd": "outside-tree",
    "https://evil.test/a.py": "outside-tree",
    "pkg/./../../x": "outside-tree",
    '"\\056\\056/victim"': "outside-tree",
    "x" * 5000: "path-clipped",
    "/dev/null": "dev-null",
}


def documents(path: str) -> dict[str, bytes]:
    """A review with one finding at a path, in each format."""
    quoted = path.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    location = {"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": 1}}}
    result = {"message": {"text": "m"}, "ruleId": "r", "locations": [location]}
    place = {"path": path, "range": {"start": {"line": 1}}}
    found: dict[str, Any] = {
        "native": {"comments": [{"body": "m", "path": path, "line": 1}]},
        "github": [{"body": "m", "path": path, "line": 1, "side": "RIGHT"}],
        "sarif": {"version": "2.1.0", "runs": [{"results": [result]}]},
        "rdjson": {"diagnostics": [{"message": "m", "location": place}]},
    }
    xml = f'<checkstyle><file name="{quoted}"><error line="1" message="m"/></file></checkstyle>'
    return {**{name: json.dumps(value).encode() for name, value in found.items()}, "checkstyle": xml.encode()}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_out_of_the_tree_in_each_format(tmp_path: Path, root: Path, path: str) -> None:
    """A finding's path is absolute, climbs, is a drive, an address, quoted, too long or /dev/null;
    some program behind reads that file of the host to show the lines, and puts them into a prompt or a
    report.

    Defence: paths are looked up in head only (reviewers/formats/paths.py, reviewers/formats/base.py)
    """
    if path == "../../victim":
        assert (root / path).read_text() == TEXT
    for name, raw in documents(path).items():
        (comment,) = parse(raw, name, context(root)).comments
        assert PATHS[path] in comment.flags, f"attack: {name}: {comment.path}: {comment.flags}"
        assert len(comment.path or "") <= 4096
        assert plan(root, [comment]).counts["applied"] == 0
    files = HeadFiles(lambda: root)
    assert not files.exists(path)
    assert files.text(path) is None


def test_lines_of_the_hosts_files_through_a_link(tmp_path: Path, root: Path) -> None:
    """A finding is at a link of the tree that leads out; its columns are turned into a suggestion by
    the lines of the file that the link leads to, which are then shown as the tree's.

    Defence: links that leave head are no files (reviewers/formats/base.py)
    """
    (tmp_path / "victim").write_text("the host's key\n")
    assert (root / "link").read_text() == "the host's key\n"
    files = HeadFiles(lambda: root)
    for path in ("link", "up/victim"):
        assert files.text(path) is None, "attack: the host's file is read"
    change = {"range": {"start": {"line": 1, "column": 1}, "end": {"line": 1, "column": 2}}, "text": "x"}
    place = {"path": "link", "range": {"start": {"line": 1}}}
    document = {"diagnostics": [{"message": "m", "location": place, "suggestions": [change]}]}
    (comment,) = parse(json.dumps(document).encode(), "rdjson", context(root)).comments
    assert "key" not in f"{comment.body}{comment.suggestion}"


NUMBERS: list[Any] = [10**30, -1, 0, True, float("nan"), float("inf"), -float("inf"), 1.5, "9" * 500, [1], {}]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda value: str(value)[:12])
def test_an_impossible_line_number(root: Path, number: Any) -> None:
    """A finding's line is 10**30, negative, NaN, infinite, true, a string of 500 digits or a list. A naive
    program crashes and drops the review, counts from the end, or builds a range of all these lines.

    Defence: lines that cannot be (reviewers/formats/edits.py)
    """
    answered = None
    with suppress(IndexError, TypeError):  # it crashes ...
        answered = TEXT.splitlines()[number - 1]
    assert answered is None or number in (0, -1, True)  # ... or takes another line
    raw = json.dumps({"comments": [{"body": "m", "path": "a.py", "lines": [number, number]}]}).encode()
    parsed: Parsed = parse(raw, "native", context(root))
    (comment,) = parsed.comments
    assert (comment.lines, comment.level) == (None, "file"), "attack: lines that cannot be"
    assert "line-invalid" in comment.flags or number == 0
    (again,) = [draft(context(root), body="m", path="a.py", start=number, end=3)]
    # Half a range is one line; with an end below 1 it is no place.
    below = number in (0, -1, -float("inf"))
    assert again.lines == (None if below else (3, 3))
