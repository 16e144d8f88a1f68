"""Variables for the tools that build environments; the credentials in them stay with us."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..core.secrets import scrub

if TYPE_CHECKING:
    from .settings import SandboxSettings

#: Variables of the host that decide how the network and the index are reached; nothing else is passed on.
_NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
)  # fmt: skip
_PIP_ONLY = ("PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES")
_UV_ONLY = (
    "UV_KEYRING_PROVIDER", "UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES",
    "UV_INDEX_STRATEGY", "NETRC", "SSL_CERT_DIR", "SSL_CLIENT_CERT",
)  # fmt: skip
_LOGIN = re.compile(r"UV_INDEX_\w+_(USERNAME|PASSWORD)")


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
    env |= _logins()
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


def redact(text: str, settings: SandboxSettings) -> str:
    """Remove the credentials of indexes and proxies from what a tool printed."""
    proxies = [value for name, value in _passed(_NETWORK).items() if name.lower() != "no_proxy"]
    passwords = [value for name, value in _logins().items() if name.endswith("_PASSWORD")]
    return scrub(settings.indexes.redact(text, *proxies), passwords, shortest=1)


def _logins() -> dict[str, str]:
    """Logins for indexes that a configuration file of uv's names."""
    return {name: value for name, value in os.environ.items() if _LOGIN.fullmatch(name) and value}


def _passed(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if os.environ.get(name)}
