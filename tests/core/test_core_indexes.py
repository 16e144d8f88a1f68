"""One reading of the variables that name indexes and certificates, and no credential of theirs shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_crbench.host.indexes import IndexSettings

if TYPE_CHECKING:
    from pathlib import Path


def test_settings_from_the_environment():
    read = IndexSettings.from_environment
    assert read({}) == IndexSettings(None, (), None)
    assert read({}).urls()[0].startswith("https://")
    assert read({"PIP_INDEX_URL": "https://a/simple"}).urls() == ("https://a/simple",)
    values = {
        "PIP_INDEX_URL": "https://a/simple",
        "UV_INDEX_URL": "https://b/simple",
        "UV_DEFAULT_INDEX": "main=https://u:p=w@c/simple",
        "PIP_EXTRA_INDEX_URL": "https://d/simple https://e/simple",
        "UV_EXTRA_INDEX_URL": "https://e/simple",
        "UV_INDEX": "other=https://f/simple?x=1",
        "PIP_CERT": "",
        "SSL_CERT_FILE": "/ca.pem",
        "REQUESTS_CA_BUNDLE": "/other.pem",
    }
    settings = read(values)
    assert settings.index_url == "https://u:p=w@c/simple"
    assert settings.extra_index_urls == ("https://f/simple?x=1", "https://e/simple", "https://d/simple")
    assert str(settings.ca_bundle) == "/ca.pem"


def test_the_first_certificates_that_are_there_or_else_the_first_named(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("x")
    values = {"PIP_CERT": "/absent", "SSL_CERT_FILE": str(bundle), "REQUESTS_CA_BUNDLE": "/other"}
    assert IndexSettings.from_environment(values).ca_bundle == bundle
    bundle.unlink()
    assert str(IndexSettings.from_environment(values).ca_bundle) == "/absent"


def test_what_is_given_comes_before_variables(tmp_path: Path) -> None:
    values = {"UV_DEFAULT_INDEX": "https://a", "PIP_CERT": "/ca.pem", "UV_INDEX": "https://b"}
    found = IndexSettings.from_environment(values, index_url="https://mine", ca_bundle=tmp_path)
    assert found == IndexSettings("https://mine", ("https://b",), tmp_path)


def test_a_named_index_has_its_login_in_variables_of_its_own() -> None:
    values = {
        "UV_DEFAULT_INDEX": "our-main=https://a/simple",
        "UV_INDEX_OUR_MAIN_USERNAME": "me",
        "UV_INDEX_OUR_MAIN_PASSWORD": "p/w",
        "UV_INDEX": "two=https://b/simple https://c/simple?x=y://z",
    }
    found = IndexSettings.from_environment(values)
    assert found.urls() == ("https://me:p%2Fw@a/simple", "https://b/simple", "https://c/simple?x=y://z")


def test_credentials_are_removed_from_what_is_shown() -> None:
    some = IndexSettings("https://me:s3cret%2F@host/simple/", ("https://t0ken@other/simple",))
    said = (
        "tried https://me:s3cret%2F@host/simple, then s3cret/ and s3cret%2F, t0ken, http://x:y@z/, proxypass"
    )
    shown = some.redact(said, "http://proxy:proxypass@p:3128")
    for secret in ("s3cret", "t0ken", "x:y", "proxypass"):
        assert secret not in shown
        assert secret not in repr(some)
    assert "host/simple" in shown
    assert some.public() == ["https://host/simple", "https://other/simple"]
    assert IndexSettings().public() == [""]
