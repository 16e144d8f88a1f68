"""The uv program: where it is, one run of it, and the index settings that uv and pip get."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host.eviction import Uses
from ..host.indexes import IndexSettings
from ..text.secrets import scrub

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..core.sandbox import SandboxSettings


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


#: What pip, uv and the backends they run say when an index or a proxy does not give what was asked for.
_NETWORK_FAILED = re.compile(
    r"connection (?:broken|refused|reset|aborted|error|timed)|NewConnectionError|name resolution|getaddrinfo"
    r"|SSLError|CERTIFICATE_VERIFY|ProxyError|HTTP error|No matching distribution|error sending request",
    re.IGNORECASE,
)
#: Results keep the beginning of a long reason: this much of the end of a build's log fits in.
_BUILD_TAIL = 500


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
    return scrub(IndexSettings.of(settings).redact(text, *proxies), passwords, shortest=1)


def build_failure(said: str) -> str:
    """Return the end of what a build of a package said, given pip's or uv's output; "" if no build failed.

    A build that could not get what it needs from an index is a failure of the network.
    """
    if _NETWORK_FAILED.search(said):
        return ""
    if "[end of output]" in said:
        log = said.partition("[end of output]")[0]
    elif "build backend returned an error" in said:
        log = said.rpartition("[stderr]")[2].partition("hint: This usually")[0]
    else:
        return ""
    end = "\n".join(line.strip() for line in log.strip().splitlines())[-_BUILD_TAIL:]
    hint = ' Give version = "…" in [environment].' if "unable to detect version" in log else ""
    return f"A package cannot be built.{hint} Its build ended with: {end}"


def _logins() -> dict[str, str]:
    """Logins for indexes that a configuration file of uv's names."""
    return {name: value for name, value in os.environ.items() if _LOGIN.fullmatch(name) and value}


def _passed(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def find_uv() -> str | None:
    """Return the path of the uv program that comes with the ``uv`` package, or None."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        return None


def program(purpose: str) -> str:
    """Return uv's path.

    Raises:
        InfraError: if it is missing; ``purpose`` says what cannot be done without it.
    """
    found = find_uv()
    if found is None:
        raise InfraError(
            f"cannot {purpose}: the uv program is missing. Install it (pip install uv)", reason="no-uv"
        )
    return found


def run(
    path: str,
    arguments: Sequence[str],
    settings: SandboxSettings,
    *,
    cwd: Path,
    timeout: float,
    reason: str,
    feed: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Run uv to its end, whatever status that has.

    Args:
        path: the program.
        arguments: its arguments; the first two name the command in messages.
        settings: indexes and the cache.
        cwd: an empty folder, so that no project's configuration takes part.
        timeout: seconds.
        reason: the reason word of the error for a run that does not end.
        feed: its stdin.

    Raises:
        InfraError: if it does not start or does not end in time.
    """
    Uses(settings.cache).touch("uv", "uv")
    try:
        return subprocess.run(
            [path, *arguments],
            cwd=cwd,
            env=uv_environment(settings),
            input=feed,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InfraError(
            f"uv {' '.join(arguments[:2])} did not end within {timeout:.0f} s; is the package index "
            "reachable?",
            reason=reason,
        ) from error
    except OSError as error:
        raise InfraError(f"cannot run {path}: {error.strerror}", reason="no-uv") from error
