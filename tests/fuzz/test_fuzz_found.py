# ruff: noqa: E501
"""The smallest inputs that once broke a parser: each ended a run with an exception of nobody's, or hung it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from support.fuzz.datasets import SOUND
from support.fuzz.registry import targets
from support.fuzz.target import bounded
from support.fuzz.verdicts import honest

if TYPE_CHECKING:
    from pathlib import Path

TARGETS = targets()


def pax(**headers: str) -> bytes:
    """A tar archive with one file, of which extended headers say something."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("p/a")
        info.pax_headers = headers
        tar.addfile(info)
    return out.getvalue()


def tar_of(name: str, **fields: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        info = tarfile.TarInfo(name)
        for key, value in fields.items():
            setattr(info, key, value)
        tar.addfile(info)
    return out.getvalue()


def broken_bz2() -> bytes:
    """A zip whose bzip2 data is damaged: its check sum is another one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("p/a", b"content")
    data = bz2.compress(b"content")
    return out.getvalue().replace(data[14:20], bytes(6))


#: A file of a terabyte, of which nothing is there.
SPARSE = {
    "GNU.sparse.major": "0",
    "GNU.sparse.minor": "1",
    "GNU.sparse.map": "0,0",
    "GNU.sparse.size": str(2**40),
}


def early_zip() -> bytes:
    """A zip whose end says that its first member lies before the file's first byte."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("p/a", b"content")
    raw = bytearray(out.getvalue())
    end = raw.rindex(b"PK\5\6")
    offset = int.from_bytes(raw[end + 16 : end + 20], "little")
    raw[end + 16 : end + 20] = (offset + 200).to_bytes(4, "little")
    return bytes(raw)


def foreign(file: str) -> list[dict[str, Any]]:
    """The records of a run at head in which a module of the tree came from elsewhere."""
    found = honest(passed=False)
    return [
        {**record, "files": {"shop": file}} if record["event"] == "modules" else record for record in found
    ]


def odd_setup() -> list[dict[str, Any]]:
    """The records of a pass whose hidden test was set up well, and not."""
    return [
        {**record, "exception": " "}
        if record.get("when") == "setup" and record["test"].startswith("test_h")
        else record
        for record in honest(passed=True)
    ]


def sarif(**result: Any) -> bytes:
    return json.dumps(
        {"version": "2.1.0", "runs": [{"results": [{"message": {"text": "m"}, **result}]}]}
    ).encode()


FOUND: dict[str, tuple[str, Any]] = {
    "a kind that cannot be looked up": ("review-sarif", sarif(kind=[])),
    "a key that steers a terminal": ("review-auto", b'{"\\u001b": null}'),
    "a name in a damaged hunk that is no UTF-8": ("diff", b"diff --git a/a b/a\n@@ -1,2 +1,2 @@\nrename from \xff\n"),
    "arrays in TOML nested without end": ("instance-toml", b"x = " + b"[" * 3000),
    "a number of thousands of digits in TOML": ("instance-toml", b"x = " + b"9" * 5000),
    "a test's name that no disk can hold": (
        "instance-toml",
        SOUND.replace('"t.py"', f'"{"x" * 300}.py"').encode(),
    ),
    "a version of thousands of digits": (
        "instance-toml",
        (SOUND + f'[environment]\npython = ">={"9" * 5000}"\n').encode(),
    ),
    "the dataset's own folder as a pattern": ("dataset-toml", b'schema = 1\nname = "x"\ninstances = ["."]\n'),
    "a pattern that is none": ("dataset-toml", b'schema = 1\nname = "x"\ninstances = ["**x"]\n'),
    "the home folder of nobody": ("dataset-name", "~nobody-here/x"),
    "a home folder with a NUL": ("dataset-name", "~\0"),
    "a dataset's name that no disk can hold": ("dataset-name", "x" * 300),
    "a hidden test that is no Python": ("hidden-test-source", b"def test_it(:\n"),
    "a hidden test with a NUL": ("hidden-test-source", b"x = 1\n\0"),
    "a heading within a text": (
        "validation-record",
        (SOUND.replace('"b"', '"""\nx\n[validation]\ny\n"""'), ["AssertionError"]),
    ),
    "an exception that JSON writes as a pair": ("validation-record", (SOUND, ["𝒳", "\x7f"])),
    "a lone surrogate in a result": ("results-json", b'{"schema": "crbench-results", "schema_version": 1, "x": "\\ud800"}'),
    "a run whose instances are null": ("run-json", b'{"options": {}, "instances": null}'),
    "a run whose options are no options": ("run-json", b'{"options": {"reviewer_exit_ok": 5, "dataset": {}}}'),
    "a size of thousands of digits": ("settings", {"memory": "9" * 5000}),
    "a time-out that no clock can count": ("settings", {"test_timeout": "1e300"}),
    "a cache in the home folder of nobody": ("settings", {"cache": "~nobody-here/x"}),
    "certificates whose name no disk can hold": ("settings", {"ca_bundle": "x" * 300}),
    "a variable that cannot be called so": ("settings", {"reviewer_env": "\ud800"}),
    "a long word that is searched for a URL": ("settings", {"reviewer": "x" * 70_000}),
    "a share of thousands of digits": ("threshold", "9" * 5000),
    "a URL with half an address": ("url", "http://user:secret@[half/simple"),
    "a user's name that a query hid": ("url", "http://" * 6 + "?/'@"),
    "many users in one URL": ("url", "://" + "a@" * 50_000),
    "many schemes in one URL": ("url", "://" * 30_000),
    "a declaration that is none": ("index-html", ("text/html", b"<![")),
    "a file at half an address": (
        "index-json",
        (
            "application/vnd.pypi.simple.v1+json",
            b'{"meta": {"api-version": "1.0"}, "name": "a", "files": [{"filename": "a-1.tar.gz", "url": '
            b'"http://[", "hashes": {}}]}',
        ),
    ),
    "a digit that is no number": ("retry-after", "²"),
    "an option in place of a pin": ("uv-output", b"-r x\n"),
    "a compressed file that is damaged": ("zip", broken_bz2()),
    "a directory before the beginning of its archive": ("zip", early_zip()),
    "a sparse file as long as it says": ("sandbox-file", pax(**SPARSE)),
    "a member of less than nothing": ("sdist", gzip.compress(pax(size="-512"))),
    "a tree that is too deep": ("sdist", gzip.compress(tar_of("p/" + "d/" * 1500 + "a"))),
    "nothing in place of a tar": ("sandbox-tar", b""),
    "nothing in place of a file": ("sandbox-file", b""),
    "a name that no disk can hold, and no UTF-8": ("sandbox-tar", tar_of("p/\udcff" + "x" * 300)),
    "more tokens than there are numbers": ("model-answer", {"choices": [{"message": {}}], "usage": {"prompt_tokens": float("inf")}}),
    "an identifier that we would give": (
        "model-answer",
        {"choices": [{"message": {"tool_calls": [{"id": "call_2"}, {}, {"id": "\ud800"}, {"id": "\udfff"}]}}]},
    ),
    "a number that JSON has not": ("model-answer", {"choices": [{"message": {"reasoning_details": [float("nan")]}}]}),
    "arguments nested without end": ("tool-arguments", "[" * 5000),
    "a record that is none": ("test-records", [*honest(passed=False), {"event": "report"}]),
    "a module whose file steers a terminal": ("test-records", foreign("\0")),
    "a set-up that passed with an exception": ("test-records", odd_setup()),
    "a record that is no object": ("test-records", [*honest(passed=False), 1]),
    "a pass of a test that was not collected": ("test-records", honest(passed=True)[1:]),
    "null in place of a record": ("stage-record", b"null"),
    "a failure whose words run backwards": (
        "stage-record",
        b'{"key": "k", "value": null, "seconds": 0, "error": {"status": "reviewer_error", "message": "\xe2\x80\xaeabc", '
        b'"reason": "x"}, "seal": "", "digest": "f22d10a0f23cd917aaa22839ff5f3f338e68500cb8bb447a7bacaf836c63827f"}',
    ),
    "a record nested without end": ("stage-record", b"[" * 100_000),
    "a review of comments with half a range": ("review-record", {"comments": [{"id": "", "body": "", "lines": [1]}], "reviewer": ""}),
    "a revision with a file elsewhere": ("revision-record", {"patch": "/etc/passwd", "sha256": "0", "agent": "", "stop_reason": ""}),
    "null in place of a revision": ("revision-record", None),
    "pins in a list": ("cache-records", b"[1]"),
    "a budget beyond all numbers": ("ledger", b'{"prompt_tokens": 1e999}'),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.replace(" ", "-"))
def test_an_input_that_once_broke_a_parser(case: str, tmp_path: Path) -> None:
    name, value = FOUND[case]
    with bounded():
        TARGETS[name].check(value, tmp_path)
