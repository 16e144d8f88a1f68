"""Input of megabytes that is made to be slow or large to read takes bounded time and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.fuzz.reviews import read_in_every_format
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
