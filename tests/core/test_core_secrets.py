"""Credentials are taken out by value, in every form in which programs write them."""

from __future__ import annotations

import json

import pytest

from pytest_crbench.text.secrets import passed_through, scrub, scrub_value, within_reach


def test_secrets_go_in_every_form() -> None:
    secret = 'ab"c\\d/ef=gh'
    text = f"{secret} {json.dumps(secret)} ab%22c%5Cd%2Fef%3Dgh"
    assert scrub(text, [secret]) == '[redacted] "[redacted]" [redacted]'
    assert scrub(text.encode(), [secret]) == b'[redacted] "[redacted]" [redacted]'
    assert scrub_value({"a": [f"x{secret}", 1, None]}, [secret]) == {"a": ["x[redacted]", 1, None]}


def test_placeholders_are_not_secrets() -> None:
    assert scrub("an EMPTY list, none", ["EMPTY", "none", ""]) == "an EMPTY list, none"


def test_a_secret_within_another() -> None:
    assert scrub("secret-key-long", ["secret-key", "secret-key-long"]) == "[redacted]"


def test_json_that_is_no_ascii_and_bytes_that_are_no_text() -> None:
    secret = 'schlüssel-"1'
    for ascii_only in (True, False):
        said = json.dumps(secret, ensure_ascii=ascii_only)
        assert scrub(said, [secret]) == '"[redacted]"'
        assert scrub(said.encode(), [secret]) == b'"[redacted]"'
    odd = "not-utf-8-\udcff"
    assert scrub(b"x not-utf-8-\xff x", [odd]) == b"x [redacted] x"
    assert scrub("x not-utf-8-\ufffd x", [odd]) == "x [redacted] x"


def test_how_short_a_secret_may_be_is_the_callers_choice() -> None:
    assert scrub("user:pw@", ["pw", ""], shortest=1) == "user:[redacted]@"


def test_values_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    credentials = ("MY_API_KEY", "HF_TOKEN", "AWS_SECRET", "db_password")
    others = ("MONKEY", "TOKENIZERS_PARALLELISM", "KEYBOARD")
    for name in (*credentials, *others):
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.delenv("NOT_SET", raising=False)
    assert passed_through(["MONKEY", "NOT_SET"]) == ("value of MONKEY",)
    found = set(within_reach())
    assert found >= {f"value of {name}" for name in credentials}
    assert not found & {f"value of {name}" for name in others}
