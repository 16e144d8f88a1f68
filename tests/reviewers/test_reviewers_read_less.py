"""Outputs that real tools and models write, of which a lenient reader would take a part for the review."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crbench.core.model import ReviewComment
from pytest_crbench.core.records import from_row
from pytest_crbench.evaluation.records import comment_to, review_counts
from pytest_crbench.reviewers.child import native
from pytest_crbench.reviewers.formats import ParseContext, Unreadable, parse
from pytest_crbench.reviewers.reading import read_review

if TYPE_CHECKING:
    from pathlib import Path

CALC = {"path": "calc.py", "line": 13, "side": "RIGHT", "body": "Divides by zero."}
OTHER = {"path": "other.py", "line": 1, "side": "RIGHT", "body": "Why 2?"}
OURS = {"path": "calc.py", "line": 13, "body": "Divides by zero."}
SUGGESTED = "Divides by zero.\n\n```suggestion\n    return total / count or None\n```\n"
#: Two hunks of one file: the second hunk's header counts as a position.
DIFF = b"""diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,3 +1,4 @@
 one
+two
 three
 four
@@ -10,3 +11,4 @@
 eleven
-twelve
+twelfe
+thirteen
 fourteen
"""


def places(text: str, format: str, context: ParseContext) -> list[Any]:
    return [(c.path, c.lines) for c in parse(text.encode(), format, context).comments]


def test_a_damaged_document_in_a_fence_gives_none_of_its_comments(context: ParseContext) -> None:
    """A raw line break in the first body: the second comment alone parses."""
    items = [{**OURS, "body": "Divides by zero.@Return None."}, {**OURS, "line": 18}, {**OTHER, "line": 1}]
    text = json.dumps({"comments": items}, indent=2).replace("@", "\n")
    for shown in (f"Here is my review:\n\n```json\n{text}\n```\n", text, f"Sure!\n{text}\n"):
        for name in ("native", "auto", "github"):
            with pytest.raises(Unreadable, match="does not parse"):
                parse(shown.encode(), name, context)


@pytest.mark.parametrize(
    "text",
    [
        "Error: rate limit exceeded (429), giving up\n[]\n",
        "I'm sorry, I cannot access the files.\n\n```json\n[]\n```\n",
        '{"comments": [], "error": "429 from the endpoint"}',
        '{"comments": [], "errors": ["no such folder"]}',
        'I found nothing I could read.\n{"comments": []}',
    ],
)
@pytest.mark.parametrize("format", ["native", "auto"])
def test_an_apology_around_an_empty_list_is_no_clean_review(
    text: str, format: str, context: ParseContext
) -> None:
    with pytest.raises(Unreadable, match=r"an empty review among other text|reports an error"):
        parse(text.encode(), format, context)


@pytest.mark.parametrize("format", ["github", "auto"])
def test_pages_of_a_client_are_one_review(format: str, context: ParseContext) -> None:
    wanted = [("calc.py", (13, 13)), ("other.py", (1, 1))]
    assert places(json.dumps([CALC]) + json.dumps([OTHER]), format, context) == wanted
    assert places(json.dumps([[CALC], [OTHER]]), format, context) == wanted
    assert places(json.dumps([CALC]) + "\n" + json.dumps([OTHER]) + "\n", format, context) == wanted


@pytest.mark.parametrize("name", ["native", "auto"])
def test_fences_that_models_write(name: str, context: ParseContext) -> None:
    document = json.dumps({"comments": [OURS]})
    for text in (
        f"```json {document}```",
        f"Preamble\n```json\n{document}```\n",
        f"~~~\n{document}\n~~~\n",
        f"```json\n{document}",
    ):
        assert places(text, name, context) == [("calc.py", (13, 13))], text


def test_github_in_a_fence_is_told_by_its_keys(context: ParseContext) -> None:
    item = {"path": "calc.py", "line": None, "original_line": 13, "side": "RIGHT", "body": "b"}
    assert places(f"```json\n{json.dumps([item])}\n```\n", "auto", context) == [("calc.py", (13, 13))]


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0-csd.2.beta.2019-01-24", None])
def test_sarif_of_another_version_is_refused(version: str | None, context: ParseContext) -> None:
    place = {"resultFile": {"uri": "calc.py", "region": {"startLine": 13}}}
    results = [{"ruleId": "r", "message": "Divides by zero.", "locations": [place]}]
    log = {"version": version, "runs": [{"tool": {"name": "x"}, "results": results}]}
    with pytest.raises(Unreadable, match=r"only 2\.1\.0 is read.*convert"):
        parse(json.dumps(log).encode(), "sarif", context)


def test_sarif_without_results_says_that_none_were_computed(context: ParseContext) -> None:
    with pytest.raises(Unreadable, match="no results were computed"):
        parse(b'{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "t"}}}]}', "sarif", context)


@pytest.mark.parametrize("kind", ["toolConfigurationNotifications", "toolExecutionNotifications"])
def test_sarif_of_a_tool_that_scanned_nothing(kind: str, context: ParseContext) -> None:
    def log(level: str, *results: Any) -> bytes:
        said = [{"level": level, "message": {"text": "No such file or directory"}}]
        run = {"results": results, "invocations": [{"executionSuccessful": True, kind: said}]}
        return json.dumps({"version": "2.1.0", "runs": [run]}).encode()

    assert parse(log("note"), "sarif", context).comments == ()
    with pytest.raises(Unreadable, match="reports an error \\(No such file or directory\\)"):
        parse(log("error"), "sarif", context)
    parsed = parse(log("error", {"message": {"text": "m"}}), "sarif", context)
    assert parsed.warnings == ("sarif: the tool reports an error (No such file or directory)",)


def test_sarif_below_the_address_of_a_forge(context: ParseContext) -> None:
    place = {"artifactLocation": {"uri": "app/core.py", "uriBaseId": "SRCROOT"}, "region": {"startLine": 6}}
    change = {
        "artifactLocation": place["artifactLocation"],
        "replacements": [
            {
                "deletedRegion": {"startLine": 6, "startColumn": 1, "endLine": 6, "endColumn": 1},
                "insertedContent": {"text": "    x = x or 0\n"},
            }
        ],
    }
    result = {
        "message": {"text": "m"},
        "locations": [{"physicalLocation": place}],
        "fixes": [{"artifactChanges": [change]}],
    }
    root = {"SRCROOT": {"uri": "https://example.org/x/blob/0123abc/"}}
    run = {"results": [result], "originalUriBaseIds": root}
    (comment,) = parse(json.dumps({"version": "2.1.0", "runs": [run]}).encode(), "sarif", context).comments
    assert (comment.path, comment.lines, comment.flags) == ("app/core.py", (6, 6), ())
    assert comment.suggestion == "    x = x or 0\n    if x == None:\n"


@pytest.mark.parametrize(
    ("place", "lines", "side", "flags"),
    [
        ({"position": 2}, (2, 2), "right", ()),
        ({"position": 8}, (12, 12), "right", ()),
        ({"position": 7}, (11, 11), "left", ()),
        ({"position": 6}, (11, 11), "right", ()),
        ({"position": 5}, None, "right", ("position-unknown",)),
        ({"position": 0}, None, "right", ("position-unknown",)),
        ({"position": 4}, (4, 4), "right", ()),
        ({"position": 99}, None, "right", ("position-unknown",)),
        ({"position": None, "original_position": 9}, (13, 13), "right", ("outdated",)),
        ({"position": 1, "diff_hunk": "@@ -10,3 +11,4 @@\n eleven\n-twelve\n+twelfe"}, (12, 12), "right", ()),
        ({"position": 1, "diff_hunk": "@@ -10,3 +11,4 @@\n eleven\n-twelve"}, (11, 11), "left", ()),
    ],
)
def test_github_positions(
    place: dict[str, Any], lines: Any, side: str, flags: tuple[str, ...], context: ParseContext
) -> None:
    """Counted below the file's first hunk header; position 5 of this diff is the second hunk's header."""
    with_diff = ParseContext(context.root, context.head, diff=DIFF)
    raw = json.dumps([{"path": "calc.py", "body": SUGGESTED, **place}]).encode()
    (comment,) = parse(raw, "github", with_diff).comments
    if lines and side == "right":
        assert comment.suggestion == "    return total / count or None\n"
    known = tuple(flag for flag in comment.flags if flag != "suggestion-unplaced")
    assert (comment.lines, comment.side, known) == (lines, side, flags)


def test_replies_are_conversation(context: ParseContext) -> None:
    thread = [
        {"id": 7, **CALC},
        {"in_reply_to_id": 7, **CALC, "body": "Done, thanks!"},
        {"in_reply_to_id": 1, **CALC, "body": "Resolved in abc123."},
        {"in_reply_to_id": 2, **OTHER, "body": "To a comment that was deleted."},
    ]
    parsed = parse(json.dumps(thread).encode(), "github", context)
    (comment,) = parsed.comments
    assert comment.replies == ("Done, thanks!", "Resolved in abc123.")
    assert parsed.noted == {"lost-reply": 1}
    assert from_row(ReviewComment, comment_to(comment)) == comment


def test_what_was_given_up_is_counted_by_kind(project: Any, tmp_path: Path) -> None:
    items = [
        {"path": "/etc/passwd", "line": 1, "body": "a"},
        {"path": "/etc/group", "line": 1, "body": "b"},
        {"path": "app/core.py", "line": 2, "side": "left", "body": "c", "suggestion": "x\n"},
        {"path": "app/core.py", "line": 2, "body": ""},
    ]
    task = project.task(tmp_path / "run")
    text = f"My review.\n```json\n{json.dumps(items)}\n```\n"
    review = read_review(
        text.encode(), format="native", task=task, workspace=None, reviewer="r", raw_name=None
    )
    assert review_counts(review)["noted"] == {
        "empty-body": 1,
        "in-prose": 1,
        "outside-tree": 2,
        "suggestion-unplaced": 1,
    }


@pytest.mark.parametrize(
    "damaged",
    [
        "<path>a.py</path><note>one</note><notesplit/><note>no path</note><end/>",
        "<path>a.py</path><note>one</note><notesplit/><path>b.py</path><note>cut o",
        "<path>a.py</path><note>one</note><notesplit/>",
        "<path>a.py</path><note>one</note><notes",
        "<path>a.py</path><ide>right</side><note>one</note><end/>",
        "<path>a.py</path><note>0</note><notesplit/><path>a.py</path><side>right/side><note>one</note>"
        "side>right</side><note>two</note><end/>",
        "<path>a.py</path><note>one/note><path>b.py</path>note>two</note><end/>",
        "ote>\n<path>a.py</path><note>one</note><end/>",
        "\n<notesplit/><path>a.py</path><note>one</note><end/>",
        "<path>a.py</path><note>one</note><end/><path>b.py</path><note>two</note>",
    ],
)
def test_a_tagged_file_that_lacks_a_tag_is_no_review(damaged: str, context: ParseContext) -> None:
    whole = "Words before.\n<path>a.py</path>\n<note>one</note><end/> and after"
    assert [c.body for c in parse(whole.encode(), "tagged", context).comments] == ["one"]
    with pytest.raises(Unreadable, match="lack a tag"):
        parse(damaged.encode(), "tagged", context)


def test_an_outside_failure_after_a_log_line_is_one(context: ParseContext) -> None:
    parsed = parse(b'starting\n{"outside_failure": "429 from the endpoint"}\n', "native", context)
    assert parsed.outside == "429 from the endpoint"


@pytest.mark.parametrize("format", ["native", "github", "auto"])
def test_a_draft_in_a_models_thoughts_is_no_review(format: str, context: ParseContext) -> None:
    draft, final = json.dumps([{**CALC, "body": "draft"}]), json.dumps([CALC])
    thought = f"<think>\nMaybe:\n{draft}\n</think>\n"
    assert places(thought + final, format, context) == [("calc.py", (13, 13))]
    for text in (thought + "I cannot do that.", thought.replace("</think>", "")):
        with pytest.raises(Unreadable):
            parse(text.encode(), format, context)


@pytest.mark.parametrize("word", ["sarif", "json"])
def test_two_logs_in_fences_are_not_one_of_them(word: str, context: ParseContext) -> None:
    log = json.dumps({"version": "2.1.0", "runs": [{"results": [{"message": {"text": "a"}}]}]})
    with pytest.raises(Unreadable, match="2 JSON documents"):
        parse(f"```json\n{log}\n```\n```{word}\n{log}\n```\n".encode(), "sarif", context)


def test_what_a_callable_says_of_its_failure_is_kept() -> None:
    for said in ({"comments": [], "error": "429"}, {"outside_failure": "429"}):
        assert native(said) == {"comments": [], **said}
