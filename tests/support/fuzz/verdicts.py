# ruff: noqa: E501
"""What the process of a hidden test may write: lines in the recorder's pipe, records, a result."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pytest_crbench.core.errors import StageError
from pytest_crbench.core.runner import Observation
from pytest_crbench.core.status import Status
from pytest_crbench.scoring.tests.decide import check_head, verdict_of
from pytest_crbench.scoring.tests.inside.supervise import Records
from pytest_crbench.scoring.tests.observe import observe
from pytest_crbench.scoring.tests.pytest_runner import unseal

from .shapes import altered, anything, sometimes, table
from .source import Maker, Source, either, listed, one_of, text
from .target import Target, refused

_FILES = ("test_p1.py", "test_f1.py", "test_h.py", "test_p2.py", "test_f2.py")
_SEAL = "ab" * 32
_KEY = b"k" * 32


def targets() -> list[Target]:
    """All that comes back out of a sandbox in which somebody else's code ran."""
    return [
        Target(
            "test-records", either(_records, altered([honest(passed=True), honest(passed=False)])), _observe
        ),
        Target("recorder-lines", _lines, _take),
        Target("sealed-result", _sealed, _open),
    ]


def honest(*, passed: bool) -> list[dict[str, Any]]:
    """The records of a run that nobody bends."""
    tests = [f"{name}::test_it" for name in _FILES]
    found: list[dict[str, Any]] = [{"event": "collected", "tests": tests}]
    for test in tests:
        fails = "_f" in test or ("_h" in test and not passed)
        error = "AssertionError" if fails else ""
        report = {"event": "report", "test": test, "xfail": False, "message": ""}
        found += [
            {**report, "when": "setup", "outcome": "passed", "exception": ""},
            {"event": "called", "test": test},
            {"event": "returned", "test": test, "raised": error, "patched": []},
            {**report, "when": "call", "outcome": "failed" if fails else "passed", "exception": error},
            {**report, "when": "teardown", "outcome": "passed", "exception": ""},
        ]
    return [
        *found,
        {"event": "modules", "files": {"shop": "/workspace/shop/__init__.py"}, "executed": []},
        {"event": "finished", "exitstatus": 1},
    ]


def _records(source: Source) -> Any:
    test = either(one_of(*(f"{name}::test_it" for name in _FILES)), text)
    record: Maker = table(
        {
            "event": either(one_of("report", "called", "returned", "collected", "modules", "finished", "collect-error"), text),
            "test": test, "when": either(one_of("setup", "call", "teardown"), text), "outcome": one_of("passed", "failed", "skipped"),
            "xfail": one_of(False, True), "exception": either(one_of("", "AssertionError"), text), "message": text,
            "raised": text, "patched": listed(text, 2), "tests": listed(test, 3), "files": table({"shop": text, "os": text}), "file": test,
        },
        20,
    )  # fmt: skip
    found = honest(passed=source.chance(2))
    for _ in range(source.below(4)):
        at = source.below(len(found) + 1)
        found[at : at + source.below(3)] = [
            sometimes(record, 8, anything)(source) for _ in range(source.below(3))
        ]
    return found


def _observe(records: Any, _folder: Path) -> None:
    """Records of any shape give an observation; only those of an honest run give a pass.

    An exception here would take a check out of the rate, which is worth as much as a pass.
    """
    if not isinstance(records, list):
        return
    result = {
        "returncode": 1,
        "timed_out": False,
        "records": records,
        "forged": 0,
        "output": "",
        "seconds": 1.0,
        "limits": [],
        "installed": [],
    }
    found = observe(
        result, hidden="test_h.py", must_pass=("test_p1.py", "test_p2.py"), must_fail=("test_f1.py", "test_f2.py"),
        expected=frozenset({"test_it"}), tops=("shop",), roots=("/workspace",), oom=False,
    )  # fmt: skip
    assert isinstance(found, Observation)
    for part in (found.bent, found.exception, found.message):
        part.encode()
        assert len(part) < 2000
    json.dumps(dict(found.foreign or {}))
    with refused(StageError):
        status, _reason = verdict_of(found)
        if status is Status.PASSED:
            assert _whole(records), "a pass without the records of a pass"
    with refused(StageError):
        check_head(found)


def _whole(records: list[Any]) -> bool:
    """Whether the records hold every step of the hidden test, the call of every canary, and the end."""
    wanted = [
        {key: value for key, value in record.items() if key not in ("message", "exitstatus")}
        for record in honest(passed=True)
        if record.get("test", "").startswith("test_h")
        or record.get("when") == "call"
        or record["event"] in ("collected", "finished")
    ]
    return all(any(isinstance(r, dict) and one.items() <= r.items() for r in records) for one in wanted)


def _line(source: Source, number: int) -> bytes:
    body = json.dumps(sometimes(lambda s: [number, {"event": text(s)}], 3, anything)(source)).encode()
    if source.chance(5):
        body = source.pick([b"[" * 3000, b"", b"{", b"[0]", b"[0, {}, 1]", b"\xff", b"9" * 5000])
    own = hashlib.blake2b(key=_KEY, digest_size=16)
    own.update(body)
    mac = source.pick([own.hexdigest().encode(), own.hexdigest().encode(), b"0" * 32, b"", b"\xff"])
    return mac + source.pick([b" ", b" ", b"", b"  "]) + body


def _lines(source: Source) -> list[bytes]:
    raw = b"\n".join(_line(source, number) for number in range(source.below(6))) + source.pick([b"\n", b""])
    cut = source.below(len(raw) + 1)
    return [raw[:cut], raw[cut:]]


def _take(chunks: list[bytes], _folder: Path) -> None:
    """Each line is kept as a record, or counted as forged; none ends the thread that reads."""
    read_end, write_end = os.pipe()
    os.close(write_end)
    kept = Records(read_end, _KEY, 4096)
    kept.thread.join()
    os.close(read_end)
    for chunk in chunks:
        kept.feed(chunk)
    lines = b"".join(chunks).count(b"\n")
    # More for what is too long to be the beginning of a line.
    assert 0 <= len(kept.kept) + kept.forged - lines <= len(chunks)
    assert all(isinstance(record, dict) for record in kept.kept)


def _sealed(source: Source) -> tuple[bytes, bytes]:
    body = json.dumps(anything(source)).encode()
    seal = hashlib.blake2b(body, key=bytes.fromhex(_SEAL), digest_size=32).hexdigest().encode()
    raw = bytearray(seal + b"\n" + body)
    for _ in range(source.below(3)):
        raw[source.below(len(raw))] = source.below(256)
    if source.chance(6):
        raw = raw[: source.below(len(raw))]
    return seal + b"\n" + body, bytes(raw)


def _open(value: tuple[bytes, bytes], _folder: Path) -> None:
    """A result with one changed byte is nobody's."""
    sound, raw = value
    found = unseal(raw, _SEAL)
    assert found is None or raw == sound
