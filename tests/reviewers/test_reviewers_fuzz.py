# ruff: noqa: E501
"""No parser raises anything but Unreadable, or takes long, whatever it is given."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_crbench.reviewers.formats import PARSERS, HeadFiles, ParseContext, Parsed, Unreadable, parse

FIXTURES = Path(__file__).parents[2] / "fixtures/tool-outputs"
REAL = [path.read_bytes() for path in sorted(FIXTURES.glob("*.*if")) + sorted(FIXTURES.glob("*.json"))]
SMALL = [
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
ODD: Any = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1,
        2**70,
        1e308,
        float("nan"),
        "",
        "\ud800",
        "a.py",
        "/dev/null",
        "%",
        "file://[",
        [],
        {},
        [[]],
        {"": ""},
    ]
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ParseContext:
    root = tmp_path_factory.mktemp("head")
    (root / "a.py").write_text("one\ntwo é\nthree\n")
    return ParseContext(root, HeadFiles(lambda: root))


def survives(raw: bytes, context: ParseContext) -> None:
    for format in PARSERS:
        began = time.process_time()
        try:
            parsed = parse(raw, format, context)
        except Unreadable:
            continue
        finally:
            assert time.process_time() - began < 5
        assert isinstance(parsed, Parsed)
        for comment in parsed.comments:
            json.dumps([comment.path, comment.body, comment.suggestion, comment.rule]).encode()
            (comment.body + (comment.path or "") + (comment.suggestion or "")).encode()  # no lone surrogate


fuzzed = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@fuzzed
@given(raw=st.binary(max_size=400))
def test_arbitrary_bytes(raw: bytes, context: ParseContext) -> None:
    survives(raw, context)


@fuzzed
@given(data=st.data())
def test_mutated_bytes_of_real_files(data: st.DataObject, context: ParseContext) -> None:
    raw = bytearray(data.draw(st.sampled_from(REAL + SMALL)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        cut = data.draw(st.sampled_from([0, 1, 5, 50, 10**6]))
        raw[at : at + cut] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b'"', b"{", b"]", b"\\ud800", b"9" * 20])
        )
    survives(bytes(raw), context)


@fuzzed
@given(data=st.data())
def test_mutated_values_of_real_documents(data: st.DataObject, context: ParseContext) -> None:
    """Well-formed JSON whose values are of the wrong kind, at any depth."""
    documents = [json.loads(raw) for raw in REAL + SMALL if raw[:1] in b"[{" and raw.count(b"}\n{") == 0]
    value = data.draw(st.sampled_from(documents))
    for _ in range(data.draw(st.integers(1, 3))):
        value = mutated(value, data)
    survives(json.dumps(value).encode(), context)


def mutated(value: Any, data: st.DataObject) -> Any:
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], mutated(value[at], data), *value[at + 1 :]]
    return data.draw(ODD)


@pytest.mark.parametrize(
    "raw",
    [
        b"[\n" * 500_000,
        b'{"a":\n' * 300_000,
        b'["\n' * 500_000,
        b"[1,\n" * 500_000,
        b"[\n" + b"[],\n" * 400_000,
        b"[" + b"1," * 900 + b"\n" + b"[1,\n" * 200_000,
        b"```json\n" * 500_000,
        b"```suggestion\n" * 200_000,
        b'[{"body": "' + b"```suggestion\\n" * 100_000 + b'"}]',
        b'[{"body": "' + b" " * 1_000_000 + b"```suggestion" + b"\\n" * 100_000 + b'"}]',
        b'[{"path": "' + b"a/" * 500_000 + b'", "body": "b", "line": 1}]',
        b'[{"path": "' + b"../" * 500_000 + b'", "body": "b", "line": 1}]',
        b'[{"path": "\\"' + b"\\\\303" * 200_000 + b'\\"", "body": "b", "line": 1}]',
        b"9" * 1_000_000,
        b"<a " * 500_000,
        b"\xff\xfe" + b"\x00\xd8" * 100_000,
        b'[{"body": "b", "line": 1' + b"0" * 4000 + b"}]",
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_hostile_sizes_take_bounded_time(raw: bytes, context: ParseContext) -> None:
    survives(raw, context)
