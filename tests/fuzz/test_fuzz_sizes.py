"""Input of megabytes that is made to be slow or large to read takes bounded time and memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.fuzz.reviews import read, read_in_every_format
from support.fuzz.target import bounded

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds of CPU time, for all formats together.
LIMIT = 20.0


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
def test_hostile_sizes_take_bounded_time(raw: bytes, tmp_path: Path) -> None:
    with bounded(LIMIT):
        read_in_every_format(raw, tmp_path)


#: Lines of a file of half a megabyte in head, which reviews may name.
LINES = 20_000


def sarif(results: list[Any], **run: Any) -> bytes:
    return json.dumps({"version": "2.1.0", "runs": [{"results": results, **run}]}).encode()


def place(**region: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": "big.py"}, "region": region}}


def rdjson(count: int, suggestions: list[Any], **end: int) -> bytes:
    span = {"start": {"line": 1}, "end": end}
    item = {"message": "m", "location": {"path": "big.py", "range": span}, "suggestions": suggestions}
    return json.dumps({"diagnostics": [item] * count}).encode()


def change(line: int, column: int) -> dict[str, Any]:
    at = {"line": line, "column": column}
    return {"range": {"start": at, "end": at}, "text": "x"}


#: Short inputs that name much: each took minutes, or gigabytes.
NAMED = {
    "one long message, many times": (
        "sarif",
        lambda: sarif(
            [{"ruleIndex": 0, "message": {"id": "m"}}] * 15_000,
            tool={"driver": {"rules": [{"messageStrings": {"m": {"text": "x" * 4_000_000}}}]}},
        ),
    ),
    "one long argument, many times": (
        "sarif",
        lambda: sarif([{"message": {"text": "{0}" * 500_000, "arguments": ["x" * 1_000_000]}}] * 3),
    ),
    "many results of many rules": (
        "sarif",
        lambda: sarif(
            [{"ruleId": f"r{n}", "message": {"text": "m"}} for n in range(15_000)],
            tool={"driver": {"rules": [{"id": f"r{n}"} for n in range(15_000, 0, -1)]}},
        ),
    ),
    "many offsets into a large file": (
        "sarif",
        lambda: sarif(
            [
                {"message": {"text": "m"}, "locations": [place(byteOffset=400_000 + n, byteLength=1)]}
                for n in range(15_000)
            ]
        ),
    ),
    "many suggestions for a large file": (
        "rdjson",
        lambda: rdjson(1000, [change(9, 1), change(9, 2)] * 50, line=20),
    ),
    "suggestions that repeat a large file": ("rdjson", lambda: rdjson(15_000, [change(9, 1)], line=2000)),
}


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.replace(" ", "-"))
def test_a_short_review_that_names_much_stays_small(case: str, tmp_path: Path) -> None:
    name, make = NAMED[case]
    (tmp_path / "head").mkdir()
    (tmp_path / "head" / "big.py").write_text("value = 'é' # some text\n" * LINES)
    with bounded(LIMIT):
        read(name, make(), tmp_path)
