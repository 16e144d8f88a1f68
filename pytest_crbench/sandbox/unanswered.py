"""Why no Docker engine answers, and what to do about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..host.unreachable import cause
from ..text import urls
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT = "unix:///var/run/docker.sock"


def engine_address(environ: Mapping[str, str] | None = None) -> str:
    """Return what DOCKER_HOST says, without credentials, or the address that is used without it."""
    return urls.redact((os.environ if environ is None else environ).get("DOCKER_HOST") or _DEFAULT)


def explain(error: BaseException) -> tuple[str, str]:
    """Return what went wrong when an engine was asked, naming it, and what to do, as one sentence each."""
    host = engine_address()
    why = cause(error)
    local = "://" not in host or host.startswith(("unix://", "/"))
    set_host = "set DOCKER_HOST" if host == _DEFAULT else "correct DOCKER_HOST"
    said = f"{host}: {why.said}"
    if why.kind == "absent":
        return said, f"Install and start a Docker engine, or {set_host}"
    if why.kind == "permission":
        return (
            said,
            f"Join the group of the socket ({_group(host)}), or use an engine of your own (DOCKER_HOST)",
        )
    if why.kind == "refused":
        return said, f"Start the engine: its {'socket' if local else 'port'} is not listened on"
    if why.kind == "timeout":
        return said, "Restart the engine, or look at its log: it is there but gives no answer"
    if why.kind in ("certificate", "tls"):
        return said, "Check DOCKER_TLS_VERIFY and the certificates in DOCKER_CERT_PATH"
    if why.kind in ("name", "route", "proxy"):
        return said, "Correct DOCKER_HOST, or see to it that this machine reaches it"
    text = urls.redact(printable(str(error), 200))
    if "TLS" in type(error).__name__ or "certificate" in text.lower():
        return f"{host}: {text}", "Correct DOCKER_CERT_PATH, which holds ca.pem, cert.pem and key.pem"
    if "HTTPS server" in text:
        return f"{host}: {text}", "Set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH: this engine speaks TLS only"
    return f"{host}: {text}", "Correct DOCKER_HOST: unix://PATH or tcp://HOST:PORT of a Docker engine"


def _group(host: str) -> str:
    import grp

    try:
        return grp.getgrgid(os.stat(host.removeprefix("unix://")).st_gid).gr_name  # noqa: PTH116
    except (OSError, KeyError):
        return "docker"
