"""What is left of a review that lost its beginning, its end or a bracket is never taken for the review."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.fuzz.target import bounded

from pytest_crbench.reviewers.formats import ParseContext, Unreadable, parse

ONE = {"path": "calc.py", "line": 13, "body": "Divides by zero."}
TWO = {"path": "other.py", "line": 1, "body": "Why 2?"}
LINES = json.dumps(ONE) + "\n" + json.dumps(TWO)
PAGES = json.dumps([ONE], indent=1) + "\n" + json.dumps([TWO])


def bodies(text: str, format: str, context: ParseContext) -> list[str]:
    return [comment.body for comment in parse(text.encode(), format, context).comments]


@pytest.mark.parametrize("text", [LINES, PAGES], ids=["lines", "pages"])
@pytest.mark.parametrize("format", ["native", "github", "auto"])
def test_a_lost_beginning_is_noticed_wherever_it_is_cut(
    text: str, format: str, context: ParseContext
) -> None:
    """What was cut off leaves the end of a line or of a page before what still parses."""
    second = text.index("\n{" if text is LINES else "\n[")
    for cut in range(1, second):
        with pytest.raises(Unreadable):
            parse(text[cut:].encode(), format, context)
    assert bodies(text[second:], format, context) == ["Why 2?"]


@pytest.mark.parametrize("format", ["native", "auto"])
@pytest.mark.parametrize(
    "text",
    [
        "x" + LINES[1:],
        LINES.replace('{"path": "other.py"', '{x"path": "other.py"'),
        'Use {", "severity": "high", "line": 3}\n' + json.dumps(TWO),
        '{"body": "cut {"}'[9:] + "\n" + json.dumps(TWO),
        json.dumps([ONE]) + "\n]",
        json.dumps([ONE]) + "\n{\n",
        json.dumps(ONE) + '\nx"pa',
        json.dumps([ONE]) + '\nx{"pa',
        "1. ```jsxn\n" + json.dumps(ONE) + "\n```\n```json\n" + json.dumps(TWO) + "\n```\n",
    ],
)
def test_pieces_beside_a_document_make_it_unreadable(text: str, format: str, context: ParseContext) -> None:
    with pytest.raises(Unreadable):
        parse(text.encode(), format, context)


@pytest.mark.parametrize("format", ["native", "auto"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[12:00:01] starting\n[1/3] asked\n", "\n[12:00:09] done {ok}\n"),
        ("- [x] read\n- [ ] tests\n\n", "\n\nThat is all (see [1])."),
        ("The code:\n\n```python\nif x:\n    d = {'a': [1]}\n```\n\nfails.\n", ""),
        ('Before:\n```python\npost(url, json={"body": text, "to": [1]})\n```\n', ""),
        ('`d["x"]` may be missing, and {"k": 1} is logged.\n\n```json\n', "\n```\n"),
        ("<think>Let me look.\nHm.</think>\n", ""),
    ],
)
def test_prose_with_brackets_is_prose(before: str, after: str, format: str, context: ParseContext) -> None:
    text = before + json.dumps({"comments": [ONE]}) + after
    assert bodies(text, format, context) == ["Divides by zero."]


def test_linters_formats_are_read_in_fences_and_after_a_log(context: ParseContext) -> None:
    run: dict[str, Any] = {"results": [{"message": {"text": "m"}}]}
    sarif = {"version": "2.1.0", "runs": [run]}
    rdjson = {"diagnostics": [{"message": "m", "location": {"path": "a"}}]}
    for format, log in (("sarif", sarif), ("rdjson", rdjson)):
        for text in (f"```json\n{json.dumps(log)}\n```", f"[INFO] start\n{json.dumps(log, indent=1)}\n"):
            for name in (format, "auto"):
                assert bodies(text, name, context) == ["m"]
    run["results"] = []
    with pytest.raises(Unreadable, match="may be an apology"):
        parse(f"Sorry.\n{json.dumps(sarif)}".encode(), "sarif", context)
    run["invocations"] = [{"executionSuccessful": True}]
    assert bodies(f"Nothing found.\n{json.dumps(sarif)}", "sarif", context) == []


@pytest.mark.parametrize(
    ("format", "document"),
    [
        ("native", {"comments": [], "completed": False}),
        ("github", {"comments": [], "error": "429 from the endpoint"}),
        ("rdjson", {"diagnostics": [], "errors": ["no such folder"]}),
    ],
)
def test_a_tool_that_says_it_failed_has_no_clean_review(
    format: str, document: Any, context: ParseContext
) -> None:
    with pytest.raises(Unreadable, match="no clean review"):
        parse(json.dumps(document).encode(), format, context)


@pytest.mark.parametrize("key", ["filename", "file_path", "startLineNumber", "lineStart", "original_line"])
def test_a_place_under_another_name_is_refused(key: str, context: ParseContext) -> None:
    item = {"path": "a.py", "body": "b", key: 3}
    if key.startswith("file"):
        del item["path"]
    with pytest.raises(Unreadable, match=f"gives its place as {key}"):
        parse(json.dumps([item]).encode(), "native", context)
    assert bodies(json.dumps([{**ONE, key: None, "original": "x = 1"}]), "native", context)


def test_replies_may_come_before_what_they_answer(context: ParseContext) -> None:
    reply = {"id": 8, "in_reply_to_id": 7, **ONE, "body": "Done."}
    parsed = parse(json.dumps([reply, {"id": 7, **ONE, "line": 12}]).encode(), "github", context)
    assert [(c.body, c.replies) for c in parsed.comments] == [("Divides by zero.", ("Done.",))]


def test_a_position_knows_the_side_of_its_line(context: ParseContext) -> None:
    diff = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -5,3 +8,3 @@\n one\n-two\n+zwei\n three\n"
    with_diff = ParseContext(context.root, context.head, diff=diff)
    items = [{"path": "a.py", "body": "b", "position": 1, "side": "LEFT"}]
    items += [{"path": "a.py", "body": "b", "position": 2, "side": "RIGHT"}]
    parsed = parse(json.dumps(items).encode(), "github", with_diff)
    assert [(c.lines, c.side) for c in parsed.comments] == [((5, 5), "left"), ((6, 6), "left")]


def test_many_positions_in_a_large_diff_take_no_time(context: ParseContext) -> None:
    rows = "\n".join(f"+line {number}" for number in range(30_000))
    diff = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,30000 @@\n{rows}\n".encode()
    with_diff = ParseContext(context.root, context.head, diff=diff)
    items = [{"path": "a.py", "body": "b", "position": 30_000 - number} for number in range(15_000)]
    raw = json.dumps(items).encode()
    with bounded():
        assert parse(raw, "github", with_diff).comments[0].lines == (30_000, 30_000)


def test_lines_in_keys_of_another_format_are_refused(context: ParseContext) -> None:
    for place in ({"start_line": 5, "end_line": 6}, {"lines": [5, 6]}):
        raw = json.dumps([{"path": "a.py", "body": "b", "side": "RIGHT", **place}]).encode()
        with pytest.raises(Unreadable, match="native format"):
            parse(raw, "github", context)


def test_an_outside_failure_is_read_beside_a_log(context: ParseContext) -> None:
    text = 'asked "m" for a review\n{"outside_failure": "429 from the endpoint"}\n'
    assert parse(text.encode(), "native", context).outside == "429 from the endpoint"


@pytest.mark.parametrize(
    "line",
    [
        "<think></think>" * 50_000,
        '"}' + " " * 10**6 + "x",
        '" ' * 10**6,
        '"}' * 10**6,
        "`" * 10**6,
        "[" * 10**6,
    ],
)
def test_long_lines_of_prose_take_no_time(line: str, context: ParseContext) -> None:
    with bounded(), pytest.raises(Unreadable):
        parse(f"Review:\n{line}\n[]\n".encode(), "native", context)


def test_many_fences_after_a_long_line_take_no_time(context: ParseContext) -> None:
    text = "x" * 500_000 + "\n" + "```json\n[{}]\n```\n" * 20_000
    with bounded(), pytest.raises(Unreadable):
        parse(text.encode(), "native", context)
