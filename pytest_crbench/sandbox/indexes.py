"""Package index settings for what builds environments; their credentials stay with us."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .settings import SandboxSettings

#: Variables of the host that decide how the network and the index are reached; nothing else is passed on.
_NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
)  # fmt: skip
_PIP_ONLY = ("PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES")
_UV_ONLY = (
    "UV_INDEX", "UV_KEYRING_PROVIDER", "UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_HTTP_TIMEOUT",
    "UV_INDEX_STRATEGY", "NETRC", "SSL_CERT_DIR", "SSL_CLIENT_CERT",
)  # fmt: skip
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def uv_environment(settings: SandboxSettings) -> dict[str, str]:
    """Environment of a ``uv`` process: a small one, plus index, proxy and CA settings."""
    env = _passed(_NETWORK + _UV_ONLY)
    env |= {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "UV_CACHE_DIR": str(settings.cache / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
    }
    env |= {
        name: value
        for name, value in os.environ.items()
        if re.fullmatch(r"UV_INDEX_\w+_(USERNAME|PASSWORD)", name)
    }
    if settings.ca_bundle is not None:
        env["SSL_CERT_FILE"] = str(settings.ca_bundle)
    if settings.index_url:
        env["UV_DEFAULT_INDEX"] = settings.index_url
    if settings.extra_index_urls:
        env["UV_EXTRA_INDEX_URL"] = " ".join(settings.extra_index_urls)
    return env


def pip_environment(settings: SandboxSettings, ca_bundle: str | None) -> dict[str, str]:
    """Variables for a ``pip`` process; ``ca_bundle`` is the bundle's path where pip runs."""
    env = _passed(_NETWORK + _PIP_ONLY)
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_NO_CACHE_DIR": "1"}
    if ca_bundle is not None:
        env |= {"PIP_CERT": ca_bundle, "SSL_CERT_FILE": ca_bundle, "REQUESTS_CA_BUNDLE": ca_bundle}
    if settings.index_url:
        env["PIP_INDEX_URL"] = settings.index_url
    if settings.extra_index_urls:
        env["PIP_EXTRA_INDEX_URL"] = " ".join(settings.extra_index_urls)
    return env


def public(settings: SandboxSettings) -> list[str]:
    """Return the index URLs without their credentials: they take part in what is cached."""
    urls = [settings.index_url or "", *settings.extra_index_urls]
    return [_CREDENTIALS.sub("", url) for url in urls]


def redact(text: str, settings: SandboxSettings) -> str:
    """Remove index and proxy credentials from what a tool printed."""
    for secret in _secrets(settings):
        text = text.replace(secret, "***")
    return _CREDENTIALS.sub("***@", text)


def _secrets(settings: SandboxSettings) -> list[str]:
    urls = [settings.index_url or "", *settings.extra_index_urls]
    urls += [os.environ[name] for name in (*_NETWORK, "UV_INDEX") if os.environ.get(name)]
    found = [value for url in urls for value in (urlsplit(url).password,) if value]
    found += [v for n, v in os.environ.items() if re.fullmatch(r"UV_INDEX_\w+_PASSWORD", n) and v]
    # A token is often given as the user name, without a password.
    found += [p.username for p in map(urlsplit, urls) if p.username and not p.password]
    return sorted(found, key=len, reverse=True)


def _passed(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if os.environ.get(name)}
