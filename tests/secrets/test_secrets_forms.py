"""Credentials that are escaped, encoded, cut in two, short, or only look like credentials."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_crbench.core.errors import InfraError
from pytest_crbench.evaluation.store import Store
from pytest_crbench.host import processes
from pytest_crbench.host.files import append_line, write_atomic, write_json
from pytest_crbench.host.indexes import registry_secrets
from pytest_crbench.run.settings import read
from pytest_crbench.sandbox.engine import Kept
from pytest_crbench.text import secrets
from pytest_crbench.text.printable import clip, printable
from pytest_crbench.text.secrets import (
    REDACTED,
    in_text,
    known,
    scrub,
    scrub_value,
    scrubbed,
    scrubbed_patch,
    scrubbed_value,
)

KEY = 'k3y-"4711\\abc/def+ghi=jkl'


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PLANTED_API_KEY", KEY)
    return KEY


@given(st.text(st.characters(categories=["L", "N", "P"]), min_size=8), st.binary(), st.binary())
def test_base64_around_a_secret_is_found_wherever_it_begins(secret: str, before: bytes, after: bytes) -> None:
    data = secret.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        said = encode(before + data + after).decode()
        left = scrub(said, [secret])
        assert REDACTED in left
        # Only characters that are made of neighbouring bytes too may stay.
        assert len(left.replace(REDACTED, "")) <= len(said) - (4 * len(data) // 3 - 2)


@pytest.mark.parametrize("limit", range(20, 140, 3))
def test_no_cut_leaves_a_piece(limit: int, key: str) -> None:
    """The middle of long output is dropped as it comes: a key can stand on the edge."""
    text = ("x" * 40 + key) * 4
    pieces = [key[:6], key[-6:], key[4:12], key[10:16]]
    kept = Kept(limit)
    for place in range(0, len(text), 7):
        kept.feed(text[place : place + 7].encode())
    for shortened in (kept.result()[0], clip(text.encode(), limit)[0], printable(text, limit).encode()):
        said = scrubbed(shortened).decode()
        # Only what lies between two cuts that are nearer than a piece is left.
        assert not any(piece in said for piece in pieces[:2]), (shortened, said)


def test_a_program_that_floods_leaves_no_half_of_a_key(tmp_path: Path, key: str) -> None:
    code = "import sys; sys.stdout.write(sys.argv[1] * 20000)"
    done = processes.run(
        [sys.executable, "-c", code, "y" * 9 + key], cwd=tmp_path, env={}, timeout=60, output_limit=10_007
    )
    assert done.truncated
    write_atomic(tmp_path / "said", done.stdout)
    said = (tmp_path / "said").read_text()
    assert key[:6] not in said
    assert key[-6:] not in said
    assert said.count(REDACTED) > 100


def test_what_is_no_credential_is_left_in_peace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Or reports would turn to mush: an EMPTY key, a number, a word, a path."""
    (tmp_path / "id_rsa").touch()
    for number, value in enumerate(
        ("EMPTY", "none", "changeme", "password", "PRODUCTION", "12345678", str(tmp_path / "id_rsa"), "x" * 7)
    ):
        monkeypatch.setenv(f"PLAIN{number}_API_KEY", value)
        assert value not in known()
        assert scrubbed(f"the {value} of it") == f"the {value} of it"
    for number, value in enumerate(("Tr0ub4dor&3", "correct-horse", "a" * 16, "1234567890123456")):
        monkeypatch.setenv(f"REAL{number}_API_KEY", value)
        assert scrubbed(f"the {value} of it") == f"the {REDACTED} of it"


def test_a_key_of_several_lines_goes_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0", "BAQEFAASCBKcwggSjAgEAAo", "-----END KEY-----"]
    monkeypatch.setenv("DEPLOY_KEY", "\n".join(lines))
    said = scrubbed("first\n" + "\n".join(f"> {line}" for line in lines) + "\nlast " + " ".join(lines))
    assert "MIIE" not in said
    assert "SCBK" not in said
    assert said.startswith("first\n> -----BEGIN KEY-----")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("cmd:tool --token=abcdef-123456", "abcdef-123456"),
        ("cmd:tool --api-key 'abcdef-123456' -v", "abcdef-123456"),
        ("cmd:env MY_API_KEY=abcdef-123456 tool", "abcdef-123456"),
        ('cmd:curl -H "Authorization: Bearer abcdef-123456"', "abcdef-123456"),
        ("cmd:tool ghp_0123456789abcdefghijABCDEFGHIJ", "ghp_0123456789abcdefghijABCDEFGHIJ"),
        ("https://me:pass%2Fword1@host/simple", "pass/word1"),
        ("https://0123456789abcdef0123:x-oauth-basic@host/x.git", "0123456789abcdef0123"),
        ("http://host/v1?api-version=1&sig=abcdef-123456", "abcdef-123456"),
    ],
)
def test_credentials_in_what_a_user_writes(written: str, found: str) -> None:
    assert found in in_text(written)


@pytest.mark.parametrize(
    "written",
    [
        "cmd:tool review --base {base} --head {head} --keyword banana-split-1 --monkey banana-split-1",
        "cmd:tool --token {cwd}/token-file --max-tokens 100000000 --mode basic something-else",
        "cmd:tool --key $THE_KEY_OF_IT",
        "@category=Security:0.5",
        "https://host/simple",
    ],
)
def test_what_only_sounds_like_one(written: str) -> None:
    assert in_text(written) == ()


def test_every_door(key: str, tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", f"x {key}".encode())
    write_json(tmp_path / "b", {key: [1, {"in": json.dumps({"arguments": key})}]})
    append_line(tmp_path / "c", f"line {key}")
    error = InfraError(f"the engine said {json.dumps(key)}", reason="engine")
    assert str(error) == f'the engine said "{REDACTED}"'
    made = Store(tmp_path).stage("stage", "k", lambda: {"said": key}).unwrap()
    # What the first process goes on with is what all others read.
    assert made == Store(tmp_path).stage("stage", "k", lambda: None).unwrap() == {"said": REDACTED}
    for path in (p for p in tmp_path.rglob("*") if p.is_file()):
        assert b"k3y-" not in path.read_bytes(), path
    assert json.loads((tmp_path / "b").read_text())[REDACTED][0] == 1


def test_log_records_of_other_packages(key: str) -> None:
    from pytest_crbench.plugin.outcome import ScrubPlugin

    before = logging.getLogRecordFactory()
    plugin, stream = ScrubPlugin(), io.StringIO()
    logger, handler = logging.getLogger("planted"), logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        logger.warning("GET %s", f"http://me:{key}@host/")
        try:
            raise ValueError(key)
        except ValueError:
            logger.exception("failed")
    finally:
        logger.removeHandler(handler)
        plugin.pytest_unconfigure()
    assert logging.getLogRecordFactory() is before
    said = stream.getvalue()
    assert "k3y-" not in said
    assert f"GET http://me:{REDACTED}@host/" in said
    assert "Traceback" in said


def test_a_revision_loses_a_credential_only_from_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_KEY", "A1b2C3d4E5f6G7h8I9")
    monkeypatch.setenv("WEAK_TOKEN", "en_US.UTF-8")
    patch = b"@@ -1,2 +1,2 @@\n-old A1b2C3d4E5f6G7h8I9\n+new A1b2C3d4E5f6G7h8I9 en_US.UTF-8\n context\n"
    assert scrubbed_patch(patch) == (
        b"@@ -1,2 +1,2 @@\n-old A1b2C3d4E5f6G7h8I9\n+new [redacted] en_US.UTF-8\n context\n"
    )


def test_registries_and_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    login = base64.b64encode(b"me:registry-pass-1").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"r": {"auth": login}, "s": 1}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert registry_secrets() == (login, "registry-pass-1")
    (tmp_path / "config.json").write_text("[1")
    assert registry_secrets() == ()
    monkeypatch.setattr(secrets, "REGISTERED", {})
    monkeypatch.setenv("HANDED_OVER", "value-handed-over-1")
    given = {"index_url": "ftp://me:option-pass-1@host/", "reviewer_env": ["HANDED_OVER"]}
    with pytest.raises(Exception, match="index-url"):
        read(given.get, tmp_path)
    read({"reviewer_env": ["HANDED_OVER"]}.get, tmp_path)
    assert scrubbed("option-pass-1 value-handed-over-1") == f"{REDACTED} {REDACTED}"


def test_numbers_and_keys_of_json_stay_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBER_TOKEN", "1234567890123456")
    value = {"seconds": 1234567890123456, "said": "1234567890123456", "n": None}
    assert scrubbed_value(value) == {"seconds": 1234567890123456, "said": REDACTED, "n": None}
    assert scrub_value([True, 1.5], ["1234567890123456"]) == [True, 1.5]
