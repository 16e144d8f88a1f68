# ruff: noqa: E501, PTH
"""What tools write in each review format, nearly right, about a small head tree."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from .shapes import anything, json_text, sometimes, table
from .source import Maker, Source, either, listed, one_of, text, whole

HEAD = {"a.py": "one\ntwo é 𝒳\nthree\n", "b/é.py": "x = 1\r\ny = 2\r\n", "empty": "", "no-end": "a\nb"}
DIFF = (
    b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-2\n+two\n three\n"
    b"diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
)
PATH = one_of(
    *HEAD, "gone.py", "./a.py", "b/../a.py", "b\\é.py", "none.py", "b/e\u0301.py", '"b/\\303\\251.py"'
)
LINE = whole(1, 4)
BODY = either(one_of("It is wrong.", "x\n\n```suggestion\ny\n```\n", "~~~suggestion\n~~~"), text)
_COLUMN = whole(1, 9)
_OFFSET = whole(0, 20)


def _native() -> Maker:
    comment = table(
        {
            "body": BODY, "path": PATH, "line": LINE, "lines": listed(sometimes(LINE), 3), "end_line": LINE,
            "side": one_of("right", "left", "RIGHT", "old"), "suggestion": text, "severity": text, "rule": text,
            "level": one_of("inline", "file", "general"),
        }
    )  # fmt: skip
    rows = listed(sometimes(comment, 30), 4)
    usage = table({"tokens": whole(0, 9), "cost": sometimes(whole(0, 9), 3)})
    return json_text(either(rows, table({"comments": rows, "usage": usage}, 20)))


def _github() -> Maker:
    side = one_of("RIGHT", "LEFT")
    comment = table(
        {
            "body": BODY, "path": PATH, "line": LINE, "start_line": LINE, "original_line": LINE, "side": side,
            "start_side": side, "position": LINE, "subject_type": one_of("line", "file"),
        }
    )  # fmt: skip
    review = table({"body": BODY, "comments": listed(comment, 3), "event": one_of("COMMENT")}, 20)
    return json_text(either(listed(sometimes(either(comment, review), 30), 4), review))


def _rdjson(*, lines: bool) -> Maker:
    position = table({"line": LINE, "column": _COLUMN}, 5)
    span = table({"start": position, "end": position})
    item = table(
        {
            "message": BODY, "location": table({"path": PATH, "range": span}),
            "severity": one_of(1, 0, 2, 3, "ERROR"), "code": table({"value": text}),
            "suggestions": listed(table({"range": span, "text": text}), 3),
        }
    )  # fmt: skip
    if lines:
        rows = listed(json_text(sometimes(item, 30)), 4)
        return lambda s: b"\n".join(rows(s))
    items = listed(sometimes(item, 30), 4)
    source = table({"name": one_of("ruff", "x")})
    return json_text(table({"diagnostics": items, "severity": one_of("INFO"), "source": source}, 20))


def _sarif() -> Maker:
    region = table(
        {
            "startLine": LINE, "endLine": LINE, "startColumn": _COLUMN, "endColumn": _COLUMN,
            "charOffset": _OFFSET, "charLength": _OFFSET, "byteOffset": _OFFSET, "byteLength": _OFFSET,
        },
        2,
    )  # fmt: skip
    place = table({"uri": PATH, "uriBaseId": one_of("ROOT", "LOOP"), "index": whole(-1, 2)}, 4)
    location = table({"physicalLocation": table({"artifactLocation": place, "region": region})})
    replacement = table({"deletedRegion": region, "insertedContent": table({"text": text})})
    change = table({"artifactLocation": place, "replacements": listed(replacement, 2)})
    message = table({"text": BODY, "id": one_of("default"), "arguments": listed(text, 2)}, 4)
    result = table(
        {
            "message": message, "locations": listed(location, 2), "ruleId": one_of("R", "R/1", "Q"),
            "ruleIndex": whole(-1, 2), "level": one_of("error", "note"), "kind": one_of("fail", "pass"),
            "suppressions": listed(table({"status": one_of("rejected")}), 1),
            "fixes": listed(table({"artifactChanges": listed(change, 2)}), 2),
        }
    )  # fmt: skip
    strings = one_of({"default": {"text": "{0} {1} {{x}}"}}, {"default": "no"})
    rule = table({"id": one_of("R", "Q"), "messageStrings": strings})
    tool = table({"driver": table({"rules": listed(rule, 3), "globalMessageStrings": anything})})
    bases = one_of(
        {"ROOT": {"uri": "file:///x/"}}, {"LOOP": {"uri": "a/", "uriBaseId": "LOOP"}}, {"ROOT": {"uri": "%"}}
    )
    run = table(
        {
            "results": listed(sometimes(result, 30), 3), "tool": tool, "originalUriBaseIds": bases,
            "artifacts": listed(table({"location": place}), 2), "columnKind": one_of("utf16CodeUnits", "x"),
            "invocations": listed(table({"executionSuccessful": one_of(True, False)}), 1),
        },
        20,
    )  # fmt: skip
    return json_text(table({"version": one_of("2.1.0"), "runs": listed(run, 2, 1)}, 20))


def _checkstyle(source: Source) -> bytes:
    def element(name: str, fields: dict[str, Maker], inner: str) -> str:
        values = table(fields)(source)
        written = "".join(
            f" {key}={quoteattr(str(value)[:80_000])}" for key, value in values.items() if key.isidentifier()
        )
        return f"<{name}{written}>{inner}</{name}>"

    def error() -> str:
        return element(
            "error", {"line": sometimes(LINE), "message": BODY, "severity": text, "source": text}, ""
        )

    files = [
        element("file", {"name": PATH}, "".join(error() for _ in range(source.below(3))))
        for _ in range(source.below(3))
    ]
    encoding = source.pick(["utf-8", "utf-16", "rot13", "x", "ascii", "latin-1", "utf-7", "idna"])
    head = source.pick(
        ["", "", f'<?xml version="1.0" encoding="{encoding}"?>', '<!DOCTYPE x [<!ENTITY a "aa">]>']
    )
    return (head + element("checkstyle", {}, "".join(files))).encode("utf-8", "surrogatepass")


def _tagged(fields: dict[str, Maker]) -> Maker:
    """Blocks in tags, with now and then a tag that is missing, doubled, or spelled as models spell it."""
    prose = one_of("", "\n", "Here is my review:\n", "```xml\n", "```\n", "<think>", "</think>", "<!--")

    def element(source: Source, name: str, content: str) -> str:
        opening = source.pick([f"<{name}>", f"<{name}>", f"<{name}>", f"< {name.upper()} >", "", f"<{name}"])
        closing = source.pick([f"</{name}>", f"</{name}>", f"</{name}>", f"</ {name} >", "", f"<{name}>"])
        return opening + content + closing

    def make(source: Source) -> bytes:
        out = []
        for _ in range(source.below(5)):
            out.append(prose(source))
            names = list(fields)
            if source.chance(5):
                names.remove(source.pick(names))
            out += [element(source, name, str(fields[name](source))) for name in names]
            out.append(source.pick(["<notesplit/>", "<notesplit>", "", "<notesplit", "</notesplit>"]))
        out.append(source.pick(["<end/>", "<END />", "", "<end", "<end/><note>more</note>"]))
        return "".join(out).encode("utf-8", "surrogatepass")

    return make


_SIDE = one_of("right", "left", " RIGHT\n", "both", "")
_QUOTED = either(
    one_of(
        "+two", " one\n-2\n+two\n three", "```diff\n+two\n```", "t w o", "x", "\n\n", "@@ -1,3 +1,3 @@\n+two"
    ),
    text,
)
_NUMBER = one_of("1", "2", "0", "-1", "x", "99999999999999999999", "1-2", "")

GRAMMARS: dict[str, Maker] = {
    "native": _native(),
    "github": _github(),
    "sarif": _sarif(),
    "rdjson": _rdjson(lines=False),
    "rdjsonl": _rdjson(lines=True),
    "checkstyle": _checkstyle,
    "tagged": _tagged({"path": PATH, "side": _SIDE, "from": _NUMBER, "to": _NUMBER, "note": BODY}),
    "tagged-hunk": _tagged({"diff": _QUOTED, "side": _SIDE, "note": BODY}),
}

#: A small review in each format.
SAMPLES = [
    b"<path>a.py</path> <side>right</side> <from>1</from> <to>2</to>\n<note>It is wrong.</note>\n<notesplit/>\n<end/>",
    b'{"diagnostics": [{"message": "m", "location": {"path": "a.py", "range": {"start": {"line": 1, "column": 2},'
    b' "end": {"line": 2}}}, "suggestions": [{"range": {"start": {"line": 1}}, "text": "x"}], "severity": 1}]}',
    b'<checkstyle><file name="a.py"><error line="1" message="m" severity="e" source="s"/></file></checkstyle>',
    b'[{"path": "a.py", "line": 2, "body": "b\\n```suggestion\\nx\\n```", "side": "LEFT", "subject_type": "line"}]',
    b'{"comments": [{"path": "a.py", "lines": [2, 1], "body": "b", "suggestion": ""}], "usage": {"t": 1}}',
    b'prose\n```json\n[{"path": "a.py", "body": "b"}]\n```\n',
    b'{"message": "m", "location": {"path": "a.py"}}\n{"message": "n", "location": {}}\n',
    b'{"version": "2.1.0", "runs": [{"columnKind": "utf16CodeUnits", "results": [{"message": {"text": "m"}, "fixes": ['
    b'{"artifactChanges": [{"artifactLocation": {"uri": "a.py"}, "replacements": [{"deletedRegion": {"startLine": 1,'
    b'"startColumn": 1, "endLine": 2, "endColumn": 1}}]}]}], "locations": [{"physicalLocation": {"artifactLocation":'
    b'{"uri": "a.py"}, "region": {"startLine": 1}}}]}]}]}',
]
