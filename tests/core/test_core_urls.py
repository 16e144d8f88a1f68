"""URLs lose their secrets, whatever these are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_crbench.text.urls import origin, public, redact, secrets_in, split_credentials, with_credentials


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@h/x", "https://h/x"),
        ("https://token@h/x", "https://h/x"),
        ("https://u:p@w@h/x", "https://h/x"),
        ("get https://u:p@h/x and ssh://git@h2:22/y", "get https://h/x and ssh://h2:22/y"),
        ("https://h/x?X-Signature=abc#frag", "https://h/x"),
        ("fatal: 'https://u:p@h/x?sig=1' not found", "fatal: 'https://h/x' not found"),
        ("git@host:team/x.git", "git@host:team/x.git"),
        ("what?", "what?"),
        ("/a/b", "/a/b"),
    ],
)
def test_redact(text, shown):
    assert redact(text) == shown


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="/"), min_size=1))
def test_no_password_survives(password):
    assert redact(f"https://user:{password}@host.example/simple") == "https://host.example/simple"


def test_split_and_origin():
    assert split_credentials("https://u%40x:p%2Fw@h:8/x?y") == ("https://h:8/x?y", ("u@x", "p/w"))
    assert split_credentials("https://h/x") == ("https://h/x", None)
    assert origin("https://H/x") == origin("https://h:443/") == ("https", "h", 443)
    assert origin("http://h/x") != origin("https://h/x")


def test_what_a_url_carries_in_confidence() -> None:
    url = "https://me:p%40ssword1@host:8/v1/?api-key=abcdefgh"
    assert public(url) == "https://host:8/v1"
    assert secrets_in(url) == ("p@ssword1", "p%40ssword1", "bWU6cEBzc3dvcmQx", "api-key=abcdefgh", "abcdefgh")
    assert secrets_in("https://t0ken@host/")[0] == "t0ken"
    assert secrets_in("https://host/simple") == ()


def test_credentials_are_put_in_where_there_are_none() -> None:
    assert with_credentials("https://h:8/x?y", "u@x", "p/w") == "https://u%40x:p%2Fw@h:8/x?y"
    assert with_credentials("https://h/x", "t", "") == "https://t@h/x"
    assert with_credentials("https://own@h/x", "u", "p") == "https://own@h/x"
    assert with_credentials("https://h/x", "", "") == "https://h/x"


def test_what_is_shown_of_a_url_has_nothing_more_to_strip() -> None:
    for text in ("http://x?/'@a?b", "http://" * 6 + "?/'@", "'".join(["http://x?/"] * 20) + "@y?z"):
        shown = redact(text)
        assert redact(shown) == shown, text
    assert redact("http://x?/'@a?b") == "http://a"
