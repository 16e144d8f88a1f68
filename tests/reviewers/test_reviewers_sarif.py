"""SARIF beyond what the recorded tools use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crbench.reviewers.formats import HeadFiles, ParseContext, Parsed, Unreadable, parse

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_crbench.core.model import ReviewComment


def log(*results: Any, **run: Any) -> bytes:
    whole = {"tool": {"driver": {"name": "t"}}, "results": list(results), **run}
    return json.dumps({"version": "2.1.0", "runs": [whole]}).encode()


def result(uri: str | None = "app/core.py", region: Any = None, **rest: Any) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if region is not None:
        place["region"] = region
    return {"message": {"text": "m"}, "locations": [{"physicalLocation": place}], **rest}


def read(raw: bytes, context: ParseContext) -> Parsed:
    return parse(raw, "sarif", context)


def one(raw: bytes, context: ParseContext) -> ReviewComment:
    (comment,) = read(raw, context).comments
    return comment


@pytest.mark.parametrize(
    ("uri", "path", "flags"),
    [
        ("app/core.py", "app/core.py", ()),
        ("app/t%C3%A4st.py", "app/täst.py", ()),
        ("./app/core.py", "app/core.py", ()),
        ("file:{root}/app/core.py", "app/core.py", ()),
        ("file://{root}/app/core.py", "app/core.py", ()),
        ("file://localhost{root}/app/t%C3%A4st.py", "app/täst.py", ()),
        ("file:///elsewhere/app/core.py", "/elsewhere/app/core.py", ("outside-tree",)),
        ("file:///C:/repo/app/core.py", "C:/repo/app/core.py", ("outside-tree",)),
        ("file://server/share/core.py", "//server/share/core.py", ("outside-tree",)),
        ("dir/what?.py", "dir/what?.py", ()),
        ("dir/100%.py", "dir/100%.py", ()),
    ],
)
def test_uris(uri: str, path: str, flags: tuple[str, ...], context: ParseContext) -> None:
    comment = one(log(result(uri.format(root=context.root), {"startLine": 2})), context)
    assert (comment.path, comment.flags) == (path, flags)


def test_web_addresses_are_no_files_of_the_repository(context: ParseContext) -> None:
    comment = one(log(result("https://example.org/app/core.py", {"startLine": 2})), context)
    assert comment.path is not None
    assert "outside-tree" in comment.flags


@pytest.mark.parametrize(
    ("bases", "base", "uri", "path"),
    [
        ({}, "%SRCROOT%", "app/core.py", "app/core.py"),
        ({"SRCROOT": {"uri": "file://{root}/"}}, "SRCROOT", "app/core.py", "app/core.py"),
        ({"APP": {"uri": "file://{root}/app/"}}, "APP", "core.py", "app/core.py"),
        ({"ROOT": {"uri": "file:///build/agent/"}}, "ROOT", "app/core.py", "app/core.py"),
        (
            {"ROOT": {"uri": "file:///build/"}, "APP": {"uri": "app/", "uriBaseId": "ROOT"}},
            "APP",
            "core.py",
            "app/core.py",
        ),
        ({"A": {"uriBaseId": "B"}, "B": {"uriBaseId": "A"}}, "A", "core.py", "core.py"),
        ({"A": {"uri": "x/", "uriBaseId": "A"}}, "A", "core.py", None),
    ],
)
def test_base_ids(bases: Any, base: str, uri: str, path: str | None, context: ParseContext) -> None:
    bases = json.loads(json.dumps(bases).replace("{root}", str(context.root)))
    item = result(uri, {"startLine": 1})
    item["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] = base
    comment = one(log(item, originalUriBaseIds=bases), context)
    if path is not None:
        assert (comment.path, comment.flags) == (path, ())


def test_artifacts_by_index(context: ParseContext) -> None:
    item = result(None, {"startLine": 1})
    item["locations"][0]["physicalLocation"]["artifactLocation"] = {"index": 1}
    artifacts = [{"location": {"uri": "x"}}, {"location": {"uri": "app/core.py"}}]
    assert one(log(item, artifacts=artifacts), context).path == "app/core.py"


@pytest.mark.parametrize(
    ("region", "lines"),
    [
        ({"startLine": 3}, (3, 3)),
        ({"startLine": 3, "endLine": 5}, (3, 5)),
        ({"startLine": 3, "endLine": 5, "endColumn": 1}, (3, 4)),
        ({"startLine": 3, "endLine": 3, "endColumn": 1}, (3, 3)),
        ({"charOffset": 11, "charLength": 3}, (2, 2)),
        ({"charOffset": 0, "charLength": 12}, (1, 2)),
        ({"byteOffset": 10}, (2, 2)),
        ({"charOffset": 10**9}, None),
        ({"charOffset": -1}, None),
        ({}, None),
        (None, None),
    ],
)
def test_regions(region: Any, lines: Any, context: ParseContext) -> None:
    comment = one(log(result("app/core.py", region)), context)
    assert comment.lines == lines
    assert comment.level == ("inline" if lines else "file")


def test_results_without_a_place_are_general(context: ParseContext) -> None:
    assert one(log({"message": {"text": "m"}, "locations": []}), context).level == "general"
    assert one(log({"message": {"text": "m"}}), context).level == "general"


def test_further_places_are_told(context: ParseContext) -> None:
    item = result("app/core.py", {"startLine": 1})
    item["locations"] += result("app/t%C3%A4st.py", {"startLine": 2})["locations"]
    assert one(log(item), context).body == "m\n\nAlso at app/täst.py:2"


RULES = {
    "driver": {
        "name": "t",
        "rules": [
            {
                "id": "R1",
                "defaultConfiguration": {"level": "error"},
                "messageStrings": {"default": {"text": "{0} hides {1}, {{2}} {7}"}},
                "shortDescription": {"text": "short"},
            }
        ],
        "globalMessageStrings": {"shared": {"text": "shared {0}"}},
    },
    "extensions": [{"name": "e", "rules": [{"id": "X1", "defaultConfiguration": {"level": "note"}}]}],
}


@pytest.mark.parametrize(
    ("change", "body", "rule", "level"),
    [
        (
            {"ruleId": "R1", "message": {"id": "default", "arguments": ["a", "b"]}},
            "a hides b, {2} {7}",
            "R1",
            "error",
        ),
        ({"ruleIndex": 0, "message": {"id": "shared", "arguments": ["a"]}}, "shared a", "R1", "error"),
        ({"rule": {"id": "R1"}, "message": {"id": "missing"}}, "short", "R1", "error"),
        ({"ruleId": "R1/2", "message": {"text": "has {0}"}}, "has {0}", "R1/2", "error"),
        ({"ruleId": "R1", "level": "note"}, "m", "R1", "note"),
        ({"rule": {"index": 0, "toolComponent": {"index": 0}}}, "m", "X1", "note"),
        ({"ruleId": "unknown"}, "m", "unknown", "warning"),
        ({"ruleIndex": 99}, "m", None, "warning"),
        ({"message": {"markdown": "**m**"}}, "**m**", None, "warning"),
        ({"message": {}}, "", None, "warning"),
    ],
)
def test_rules_and_messages(
    change: Any, body: str, rule: str | None, level: str, context: ParseContext
) -> None:
    comment = one(log({**result(), **change}, tool=RULES), context)
    assert (comment.body, comment.rule, comment.severity) == (body, rule, level)


def fix(*replacements: Any, uri: str = "app/core.py") -> dict[str, Any]:
    return {"artifactChanges": [{"artifactLocation": {"uri": uri}, "replacements": list(replacements)}]}


def part(region: Any, text: str | None) -> dict[str, Any]:
    return {"deletedRegion": region} | ({} if text is None else {"insertedContent": {"text": text}})


COLUMNS = {"startLine": 6, "startColumn": 10, "endLine": 6, "endColumn": 12}


@pytest.mark.parametrize(
    ("fixes", "lines", "suggestion", "flags"),
    [
        ([fix(part(COLUMNS, "is"))], (6, 6), "    if x is None:\n", ()),
        ([fix(part({"startLine": 6}, "    pass"))], (6, 6), "    pass\n", ()),
        ([fix(part({"startLine": 6, "endLine": 7, "endColumn": 1, "startColumn": 1}, None))], (6, 6), "", ()),
        ([fix(part({"startLine": 5, "endLine": 6}, "x"))], (5, 6), "x\n", ("range-widened",)),
        ([fix(part({"charOffset": 45, "charLength": 2}, "is"))], (6, 6), "    if x is None:\n", ()),
        (
            [fix(part(COLUMNS, "is")), fix(part(COLUMNS, "!="))],
            (6, 6),
            "    if x is None:\n",
            ("several-suggestions",),
        ),
        (
            [
                fix(
                    part(COLUMNS, "is"),
                    part({"startLine": 2, "startColumn": 1, "endLine": 3, "endColumn": 1}, None),
                )
            ],
            (2, 6),
            "\n\ndef name(x):\n    if x is None:\n",
            ("range-widened",),
        ),
        ([fix(part({**COLUMNS, "endColumn": 400}, "is"))], (6, 6), None, ("suggestion-lost",)),
        ([fix(part(COLUMNS, "is"), uri="app/t%C3%A4st.py")], (6, 6), None, ("suggestion-lost",)),
        ([{"artifactChanges": []}], (6, 6), None, ("suggestion-lost",)),
        ([{}], (6, 6), None, ("suggestion-lost",)),
        ([3], (6, 6), None, ("suggestion-lost",)),
    ],
)
def test_fixes(fixes: Any, lines: Any, suggestion: str | None, flags: Any, context: ParseContext) -> None:
    comment = one(log(result("app/core.py", {"startLine": 6}, fixes=fixes)), context)
    assert (comment.lines, comment.suggestion, comment.flags) == (lines, suggestion, flags)


def test_utf16_columns(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = '\N{PILE OF POO}' == None\n")
    context = ParseContext(tmp_path, HeadFiles(lambda: tmp_path))
    for kind, column in (("utf16CodeUnits", 10), ("unicodeCodePoints", 9)):
        region = {"startLine": 1, "startColumn": column, "endColumn": column + 2}
        raw = log(
            result("a.py", {"startLine": 1}, fixes=[fix(part(region, "is"), uri="a.py")]), columnKind=kind
        )
        assert one(raw, context).suggestion == "x = '\N{PILE OF POO}' is None\n"


def test_a_distant_fix_is_not_this_comments_suggestion(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x\n" * 50)
    context = ParseContext(tmp_path, HeadFiles(lambda: tmp_path))
    raw = log(result("a.py", {"startLine": 40}, fixes=[fix(part({"startLine": 1}, "y"), uri="a.py")]))
    comment = one(raw, context)
    assert (comment.lines, comment.suggestion, comment.flags) == ((40, 40), None, ("suggestion-lost",))


def test_crlf_files_give_suggestions_with_plain_newlines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"a\r\nb == None\r\nc\r\n")
    context = ParseContext(tmp_path, HeadFiles(lambda: tmp_path))
    region = {"startLine": 2, "startColumn": 3, "endColumn": 5}
    raw = log(result("a.py", {"startLine": 2}, fixes=[fix(part(region, "is"), uri="a.py")]))
    assert one(raw, context).suggestion == "b is None\n"


def test_no_findings_are_skipped_and_counted(context: ParseContext) -> None:
    raw = log(
        result(suppressions=[{"kind": "inSource"}]),
        result(suppressions=[{"kind": "external", "status": "rejected"}]),
        result(suppressions=[]),
        result(kind="pass"),
        result(baselineState="absent"),
        result(kind="fail"),
    )
    parsed = read(raw, context)
    assert (len(parsed.comments), parsed.noted) == (3, {"skipped": 3})
    assert any("3 results" in warning for warning in parsed.warnings)


def test_clean_is_a_run_with_an_empty_list(context: ParseContext) -> None:
    assert read(log(), context).comments == ()
    assert read(log(invocations=[{"executionSuccessful": True}]), context).comments == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b'{"runs": []}',
        b'{"version": "2.1.0", "runs": []}',
        b'{"version": "2.1.0", "runs": [{}]}',
        b'{"version": "2.1.0", "runs": [{"results": null}]}',
        b'{"version": "2.1.0", "runs": [3]}',
        b'{"version": "2.1.0", "runs": [{"results": [3]}]}',
        b'{"version": "2.1.0", "runs": [{"results": [], "invocations": [{"executionSuccessful": false}]}]}',
    ],
)
def test_no_result_is_not_clean(raw: bytes, context: ParseContext) -> None:
    with pytest.raises(Unreadable):
        read(raw, context)


def test_findings_of_a_run_that_failed_count_with_a_warning(context: ParseContext) -> None:
    parsed = read(log(result(), invocations=[{"executionSuccessful": False}]), context)
    assert len(parsed.comments) == 1
    assert parsed.warnings == ("sarif: the tool says that it did not finish",)
