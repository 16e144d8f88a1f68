"""Each format's rules, on small documents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crbench.reviewers.formats import PARSERS, HeadFiles, ParseContext, Parsed, Unreadable, parse
from pytest_crbench.reviewers.formats.edits import Edit, Lines, as_lines
from pytest_crbench.scoring.matching.meaning import said

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crbench.core.model import ReviewComment


def read(document: Any, format: str, context: ParseContext) -> Parsed:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return parse(raw, format, context)


def one(document: Any, format: str, context: ParseContext) -> ReviewComment:
    (comment,) = read(document, format, context).comments
    return comment


def native(context: ParseContext, **item: Any) -> ReviewComment:
    return one([{"body": "b", **item}], "native", context)


# --- places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "wanted", "flags"),
    [
        ("app/core.py", "app/core.py", ()),
        ("./app//core.py", "app/core.py", ()),
        ("a/app/core.py", "app/core.py", ()),
        ("b/app/core.py", "app/core.py", ()),
        ("a/new/file.py", "a/new/file.py", ()),
        ("a/gone.py", "gone.py", ()),
        ("app\\core.py", "app/core.py", ()),
        ('"app/t\\303\\244st.py"', "app/täst.py", ()),
        ('"b/app/t\\303\\244st.py"', "app/täst.py", ()),
        ("app/ta\u0308st.py", "app/täst.py", ()),
        ("ne\u0308w.py", "nëw.py", ()),
        ("/etc/passwd", "/etc/passwd", ("outside-tree",)),
        ("../../x.py", "../../x.py", ("outside-tree",)),
        ("app/../../x.py", "../x.py", ("outside-tree",)),
        ("C:\\repo\\app\\core.py", "C:/repo/app/core.py", ("outside-tree",)),
        ("/somewhere/else/app/core.py", "/somewhere/else/app/core.py", ("outside-tree",)),
        ("/dev/null", "gone.py", ("dev-null",)),
        ("x\x1b[31m.py", "x\ufffd[31m.py", ()),
        ("x\ud800.py", "x\ufffd.py", ()),
    ],
)
def test_paths(path: str, wanted: str, flags: tuple[str, ...], context: ParseContext) -> None:
    comment = native(context, path=path, line=1)
    assert (comment.path, comment.flags, comment.level) == (wanted, flags, "inline")


def test_paths_below_the_workspace(context: ParseContext) -> None:
    assert native(context, path=f"{context.root}/app/core.py", line=1).path == "app/core.py"
    assert native(context, path=f"{context.root}-other/x.py", line=1).flags == ("outside-tree",)


def test_a_directory_named_a_is_not_stripped(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.py").touch()
    (tmp_path / "x.py").touch()
    assert native(ParseContext(tmp_path, HeadFiles(lambda: tmp_path)), path="a/x.py", line=1).path == "a/x.py"


def test_dev_null_with_several_deletions_names_no_file(context: ParseContext) -> None:
    comment = native(replace(context, removed=("a", "b")), path="/dev/null", line=3)
    assert (comment.path, comment.level, comment.flags) == (None, "general", ("dev-null", "no-path"))


@pytest.mark.parametrize(
    ("given", "lines", "level", "flags"),
    [
        ({"line": 3}, (3, 3), "inline", ()),
        ({"lines": [3, 5]}, (3, 5), "inline", ()),
        ({"lines": [3]}, (3, 3), "inline", ()),
        ({"lines": 3}, (3, 3), "inline", ()),
        ({"lines": []}, None, "file", ()),
        ({"start_line": 3, "end_line": 5}, (3, 5), "inline", ()),
        ({"start_line": 3, "line": 5}, (3, 5), "inline", ()),
        ({"start_line": 3}, (3, 3), "inline", ()),
        ({"line": 5, "end_line": 6}, (5, 6), "inline", ()),
        ({"end_line": 5, "start_line": 0}, None, "file", ("line-invalid",)),
        ({"lines": [0, 5]}, None, "file", ("line-invalid",)),
        ({"lines": [-3, 5]}, None, "file", ("line-invalid",)),
        ({"lines": [0, 0]}, None, "file", ()),
        ({"lines": [1153, 1144]}, (1144, 1153), "inline", ("range-swapped",)),
        ({"line": 0}, None, "file", ()),
        ({"line": None}, None, "file", ()),
        ({}, None, "file", ()),
        ({"line": -4}, None, "file", ("line-invalid",)),
        ({"line": "7"}, (7, 7), "inline", ()),
        ({"line": 7.0}, (7, 7), "inline", ()),
        ({"line": "seven"}, None, "file", ("line-invalid",)),
        ({"line": True}, None, "file", ("line-invalid",)),
        ({"line": 10**30}, None, "file", ("line-invalid",)),
        ({"line": {"a": 1}}, None, "file", ("line-invalid",)),
        ({"line": 3, "level": "file"}, None, "file", ()),
        ({"line": 3, "level": "general"}, None, "general", ()),
    ],
)
def test_lines(
    given: dict[str, Any], lines: Any, level: str, flags: tuple[str, ...], context: ParseContext
) -> None:
    comment = native(context, path="app/core.py", **given)
    assert (comment.lines, comment.level, comment.flags) == (lines, level, flags)


@pytest.mark.parametrize(
    ("given", "side", "flags"),
    [(None, "right", ()), ("LEFT", "left", ()), ("right", "right", ()), ("both", "right", ("side-unknown",))],
)
def test_sides(given: Any, side: str, flags: tuple[str, ...], context: ParseContext) -> None:
    comment = native(context, path="app/core.py", line=1, side=given)
    assert (comment.side, comment.flags) == (side, flags)


# --- bodies and suggestions --------------------------------------------------------------------------------


def test_huge_bodies_keep_head_and_tail(context: ParseContext) -> None:
    comment = native(context, body="start " + "x" * 10**6 + " end")
    assert len(comment.body) < 70_000
    assert comment.body.startswith("start")
    assert comment.body.endswith("end")
    assert comment.flags == ("clipped",)


def test_hostile_characters_in_a_body(context: ParseContext) -> None:
    comment = native(context, body="a\0b\x1b[2J\ud800 \u202ec", severity="\x1bHIGH", rule="R\0")
    assert comment.body == "a\ufffdb\ufffd[2J\ufffd \u202ec"
    assert comment.flags == ("control-characters", "bidi")
    assert (comment.severity, comment.rule) == ("\ufffdhigh", "R\ufffd")


@pytest.mark.parametrize(
    ("body", "rest", "suggestion"),
    [
        ("Do.\n```suggestion\nx = 1\n```", "Do.", "x = 1\n"),
        ("Do.\r\n```suggestion\r\nx = 1\r\ny\r\n```\r\nSo.", "Do.\n\nSo.", "x = 1\ny\n"),
        ("```suggestion\n```", "", ""),
        ("```suggestion\n\n```", "", "\n"),
        ("````suggestion\n```\ncode\n```\n````", "", "```\ncode\n```\n"),
        ("- Do\n  ```suggestion\n  x = 1\n    y\n  ```", "- Do", "x = 1\n  y\n"),
        ("```suggestion:-1+2\nx\n```", "```suggestion:-1+2\nx\n```", None),
        ("```suggestion\nnever closed", "```suggestion\nnever closed", None),
        ("```python\nx\n```", "```python\nx\n```", None),
    ],
)
@pytest.mark.parametrize("format", ["native", "github"])
def test_suggestion_blocks(
    body: str, rest: str, suggestion: str | None, format: str, context: ParseContext
) -> None:
    comment = one([{"path": "app/core.py", "line": 2, "body": body}], format, context)
    assert (comment.body, comment.suggestion) == (rest, suggestion)


def test_the_first_of_several_suggestions_is_taken_and_said(context: ParseContext) -> None:
    comment = native(
        context, path="app/core.py", line=2, body="```suggestion\na\n```\nor\n```suggestion\nb\n```"
    )
    assert (comment.suggestion, comment.flags) == ("a\n", ("several-suggestions",))
    assert "b" in comment.body


@pytest.mark.parametrize("place", [{"line": 2, "side": "left"}, {}, {"line": 2, "path": "/etc/passwd"}])
def test_a_suggestion_without_lines_of_head_stays_readable(place: Any, context: ParseContext) -> None:
    comment = native(context, **{"path": "app/core.py", "suggestion": "x = 1\n", **place})
    assert comment.suggestion is None
    assert "suggestion-unplaced" in comment.flags
    assert comment.body == "b\n\n```suggestion\nx = 1\n```"
    # Matching compares the words: a reference that is quoted with its suggestion must match.
    assert said(comment) == "b"


@pytest.mark.parametrize(
    "place",
    [
        {"startLine": 5},
        {"line": 1, "start_line": 2, "end_line": 3},
        {"lines": [1, 2, 3]},
        {"line": 1, "from": 3},
    ],
)
def test_other_spellings_of_a_place_are_refused_by_name(place: Any, context: ParseContext) -> None:
    with pytest.raises(Unreadable, match=r"comment 0 gives its place as .*Write lines"):
        native(context, path="app/core.py", **place)


# --- native ------------------------------------------------------------------------------------------------

ITEM = {"path": "app/core.py", "line": 6, "body": "b"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"comments": [ITEM]}),
        json.dumps([ITEM], indent=2),
        json.dumps(ITEM) + "\n",
        "\ufeff" + json.dumps([ITEM]),
        f"Here is my review:\n\n```json\n{json.dumps([ITEM], indent=1)}\n```\nHope it helps!",
        f"```\n{json.dumps([ITEM])}\n```\nand again\n```\n{json.dumps([ITEM])}\n```",
        f"[INFO] starting\n{json.dumps({'comments': [ITEM]})}\n",
        f"I looked at it (see [1]).\n{json.dumps(ITEM)}\nDone {{}}.",
    ],
)
@pytest.mark.parametrize("format", ["native", "auto"])
def test_native_as_programs_write_it(text: str, format: str, context: ParseContext) -> None:
    comment = one(text.encode(), format, context)
    assert (comment.path, comment.lines, comment.body) == ("app/core.py", (6, 6), "b")


def test_native_lines_and_utf16(context: ParseContext) -> None:
    text = "\n".join(json.dumps({**ITEM, "line": n}) for n in (1, 2, 3))
    for raw in (text.encode(), text.encode("utf-16"), text.replace("\n", "\r\n\r\n").encode()):
        assert [c.lines for c in read(raw, "native", context).comments] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"comments": []}',
        "  []\n",
        "```json\n[]\n```",
        'Nothing to say.\n{"comments": [], "completed": true}',
    ],
)
@pytest.mark.parametrize("format", ["native", "auto"])
def test_native_clean(text: str, format: str, context: ParseContext) -> None:
    assert read(text.encode(), format, context).comments == ()


@pytest.mark.parametrize(
    "text",
    [
        "No issues.",
        "The list x = [] is empty, and so is my review",
        "null",
        "3",
        '"fine"',
        "[3]",
        "[null]",
        '[{"path": "a.py", "line": 3}]',
        '[{"body": 3}]',
        '{"comments": {}}',
        '{"comments": null}',
        '{"error": "rate limited"}',
        '[{"body": "b", "suggestion": 3}]',
        '[{"body": "b", "level": "line"}]',
        '[{"body": "b"}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '[{"body": "b", "line": ' + "9" * 10_000 + "}]",
        '[{"body": "one"}]\ntext\n[{"body": "two"}]',
        "<html>502 Bad Gateway</html>",
    ],
)
@pytest.mark.parametrize("format", ["native", "auto"])
def test_native_unreadable(text: str, format: str, context: ParseContext) -> None:
    with pytest.raises(Unreadable) as caught:
        read(text.encode(), format, context)
    assert caught.value.reason == "unreadable"
    assert len(str(caught.value)) < 1000


def test_unknown_keys_are_said_and_usage_is_taken(context: ParseContext) -> None:
    document = {
        "comments": [{**ITEM, "confidence": 3}],
        "usage": {"tokens": 3, "cost": 0.5, "bad": "x", "nan": float("nan"), "flag": True},
    }
    parsed = read(document, "native", context)
    assert parsed.warnings == ("keys that mean nothing here were ignored: confidence",)
    assert parsed.usage == {"tokens": 3.0, "cost": 0.5}


# --- github ------------------------------------------------------------------------------------------------


def test_github_comments(context: ParseContext) -> None:
    review = {
        "body": "In general fine.",
        "event": "COMMENT",
        "comments": [
            {
                "path": "app/core.py",
                "line": 6,
                "start_line": 5,
                "side": "RIGHT",
                "start_side": "RIGHT",
                "body": "r",
            },
            {"path": "app/core.py", "line": 7, "side": "LEFT", "body": "l"},
            {"path": "app/core.py", "subject_type": "file", "line": 1, "body": "f"},
            {"path": "app/core.py", "line": None, "original_line": 4, "original_start_line": 3, "body": "o"},
            {"path": "app/core.py", "position": 4, "body": "p"},
            {
                "path": "app/core.py",
                "line": 7,
                "start_line": 6,
                "side": "RIGHT",
                "start_side": "LEFT",
                "body": "t",
            },
        ],
    }
    for format in ("github", "auto"):
        found = [(c.body, c.level, c.lines, c.side, c.flags) for c in read(review, format, context).comments]
        assert found == [
            ("In general fine.", "general", None, "right", ()),
            ("r", "inline", (5, 6), "right", ()),
            ("l", "inline", (7, 7), "left", ()),
            ("f", "file", None, "right", ()),
            ("o", "inline", (3, 4), "right", ("outdated",)),
            ("p", "file", None, "right", ("position-unknown",)),
            ("t", "inline", (7, 7), "right", ("two-sided",)),
        ]


def test_github_lines_of_json(context: ParseContext) -> None:
    raw = b'{"path": "a", "line": 1, "body": "x", "side": "RIGHT"}\n{"path": "a", "line": 2, "body": "y"}\n'
    assert [c.body for c in read(raw, "auto", context).comments] == ["x", "y"]


@pytest.mark.parametrize("document", [{"message": "Not Found", "status": "404"}, [3], [{"path": "a"}], 3])
def test_github_unreadable(document: Any, context: ParseContext) -> None:
    with pytest.raises(Unreadable):
        read(document, "github", context)


def test_both_formats_at_once_are_not_settled(context: ParseContext) -> None:
    with pytest.raises(Unreadable, match="both"):
        read([{**ITEM, "side": "LEFT", "severity": "high"}], "auto", context)


# --- rdjson ------------------------------------------------------------------------------------------------


def span(a: Any, b: Any = None) -> dict[str, Any]:
    def position(p: Any) -> dict[str, int]:
        return {"line": p} if isinstance(p, int) else {"line": p[0], "column": p[1]}

    return {"start": position(a)} | ({} if b is None else {"end": position(b)})


def diagnostic(place: Any, *suggestions: tuple[Any, str], path: str = "app/core.py") -> dict[str, Any]:
    return {
        "message": "m",
        "location": {"path": path, "range": place},
        "suggestions": [{"range": r, "text": t} for r, t in suggestions],
    }


@pytest.mark.parametrize(
    ("item", "lines", "suggestion", "flags"),
    [
        (
            diagnostic(span((6, 8), (6, 12)), (span((6, 10), (6, 12)), "is")),
            (6, 6),
            "    if x is None:\n",
            (),
        ),
        (diagnostic(span((6, 1), (7, 1)), (span((6, 1), (7, 1)), "")), (6, 6), "", ()),
        (diagnostic(span(6), (span(6), "    pass")), (6, 6), "    pass\n", ()),
        (diagnostic(span(6, 7), (span(6, 7), "    pass\n")), (6, 7), "    pass\n", ()),
        (diagnostic(span(6, 7), (span(6, 7), "")), (6, 7), "", ()),
        (
            diagnostic(span(1), (span((3, 1)), "import re\n")),
            (1, 3),
            "import os\nimport sys\nimport re\n\n",
            ("range-widened",),
        ),
        (
            diagnostic(span(6), (span((6, 8), (6, 9)), "y"), (span((99, 1)), "z")),
            (6, 6),
            None,
            ("suggestion-lost",),
        ),
        (
            diagnostic(span(6), (span((6, 8), (6, 9)), "y"), (span((6, 10), (6, 12)), "is")),
            (6, 6),
            "    if y is None:\n",
            (),
        ),
        (diagnostic(span(6), (span(6), "one"), (span(6), "two")), (6, 6), "one\n", ("several-suggestions",)),
        (diagnostic(span(2), (span((99, 1)), "x")), (2, 2), None, ("suggestion-lost",)),
        (diagnostic(span(2), (span((6, 99)), "x")), (2, 2), None, ("suggestion-lost",)),
        (diagnostic(span(2), (span(2), "x"), path="not/there.py"), (2, 2), None, ("suggestion-lost",)),
        # bytes of UTF-8: the 1 of b = 1 in: a = "äö"; b = 1
        (
            diagnostic(span(1), (span((1, 17), (1, 18)), "2"), path="app/täst.py"),
            (1, 1),
            'a = "äö"; b = 2\n',
            (),
        ),
        (
            diagnostic(span(1), (span((1, 7), (1, 8)), "2"), path="app/täst.py"),
            (1, 1),
            None,
            ("suggestion-lost",),
        ),
    ],
)
def test_rdjson_suggestions(
    item: Any, lines: Any, suggestion: str | None, flags: tuple[str, ...], context: ParseContext
) -> None:
    comment = one({"diagnostics": [item]}, "rdjson", context)
    assert (comment.lines, comment.suggestion, comment.flags) == (lines, suggestion, flags)


def test_ruff_counts_characters(context: ParseContext) -> None:
    item = diagnostic(span(1), (span((1, 15), (1, 16)), "2"), path="app/täst.py")
    comment = one({"diagnostics": [item], "source": {"name": "ruff"}}, "rdjson", context)
    assert comment.suggestion == 'a = "äö"; b = 2\n'


def test_rdjson_severity_rule_and_end(context: ParseContext) -> None:
    document = {
        "severity": "WARNING",
        "diagnostics": [
            {"message": "a", "location": {"path": "x", "range": span((2, 3), (4, 1))}, "severity": 1},
            {"message": "b", "location": {"path": "x"}, "code": {"value": "R1"}},
            {"message": "c"},
        ],
    }
    found = [(c.lines, c.level, c.severity, c.rule) for c in read(document, "rdjson", context).comments]
    assert found == [
        ((2, 3), "inline", "error", None),
        (None, "file", "warning", "R1"),
        (None, "general", "warning", None),
    ]


def test_rdjsonl(context: ParseContext) -> None:
    raw = b"\n".join(json.dumps(diagnostic(span(n))).encode() for n in (1, 2)) + b"\n\n"
    for format in ("rdjsonl", "auto"):
        assert [c.lines for c in read(raw, format, context).comments] == [(1, 1), (2, 2)]
        assert read(b'{"diagnostics": []}\n', format, context).comments == ()


# --- checkstyle --------------------------------------------------------------------------------------------


def test_checkstyle(context: ParseContext) -> None:
    raw = b"""<?xml version="1.0" encoding="utf-8"?>
<checkstyle version="8.0"><file name="app/core.py">
<error line="6" column="3" severity="Error" message="a &lt; b" source="R.one"/>
<error severity="warning" message="whole"/></file><file name="./gone.py"/>
</checkstyle>"""
    for format in ("checkstyle", "auto"):
        found = [
            (c.path, c.lines, c.level, c.severity, c.rule, c.body)
            for c in read(raw, format, context).comments
        ]
        assert found == [
            ("app/core.py", (6, 6), "inline", "error", "R.one", "a < b"),
            ("app/core.py", None, "file", "warning", None, "whole"),
        ]
    assert read(b"<checkstyle/>", "auto", context).comments == ()


@pytest.mark.parametrize(
    "raw",
    [
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><checkstyle>&b;</checkstyle>',
        b'<!DOCTYPE checkstyle SYSTEM "file:///etc/passwd"><checkstyle/>',
        b"<checkstyle>",
        b"<testsuite/>",
        b'<checkstyle><file name="a.py"><erxor line="1" message="m"/></file></checkstyle>',
        b"<a>" * 50_000,
        b"nothing",
        b'<?xml version="1.0" encoding="no-such"?><checkstyle/>',
    ],
)
def test_checkstyle_unreadable(raw: bytes, context: ParseContext) -> None:
    with pytest.raises(Unreadable):
        read(raw, "checkstyle", context)


# --- shared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", PARSERS)
def test_nothing_at_all_is_empty(format: str, context: ParseContext) -> None:
    for raw in (b"", b" \r\n\t"):
        with pytest.raises(Unreadable) as caught:
            parse(raw, format, context)
        assert caught.value.reason == "empty"


@pytest.mark.parametrize("format", PARSERS)
def test_more_than_the_limit_is_refused(format: str, context: ParseContext) -> None:
    with pytest.raises(Unreadable):
        parse(b"[" + b" " * (17 * 1024 * 1024) + b"]", format, context)


def test_head_files_stay_in_the_tree(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "tree/link").symlink_to(tmp_path / "secret")
    (tmp_path / "tree/loop").symlink_to("loop")
    head = HeadFiles(lambda: tmp_path / "tree")
    for path in ("../secret", "link", "loop", str(tmp_path / "secret"), "", "x\0y", "n" * 5000, "\ud800"):
        assert not head.exists(path)
        assert head.text(path) is None


def test_edits_that_join_or_overlap() -> None:
    text = "one\ntwo\nthree\n"
    joined = as_lines(Lines(text), [Edit(3, 4, "")], (1, 1))
    assert joined is not None
    assert (joined.lines, joined.text) == ((1, 2), "onetwo\n")
    assert as_lines(Lines(text), [Edit(0, 3, "a"), Edit(2, 4, "b")], (1, 1)) is None
    appended = as_lines(Lines(text), [Edit(14, 14, "four\n")], (3, 3))
    assert appended is not None
    assert (appended.lines, appended.text) == ((3, 3), "three\nfour\n")
    assert Lines("a\r\nb").offset(1, 3) is None
    assert Lines("a\r\nb").offset(2, 2) == 4
    assert Lines("").count == 0
