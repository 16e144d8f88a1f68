"""What ``crbench doctor`` asks of the package indexes: one page of each, whose body is not read."""

from __future__ import annotations

import email.utils
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..core.finding import Finding, missing, ok, warning
from ..host.unreachable import cause
from ..text.printable import printable
from ..text.urls import redact, split_credentials

if TYPE_CHECKING:
    from ..host.indexes import IndexSettings

#: What every environment needs, so that every index should have it.
_PROJECT = "pytest"
#: Seconds to connect and to answer, and for all of it.
_TIMEOUT = (5.0, 5.0)
LIMIT = 12.0
_SKEW = 300.0
_ADVICE = {
    "proxy": "Correct HTTPS_PROXY or HTTP_PROXY, or put the index's host into NO_PROXY",
    "certificate": "Name the CA bundle that knows it: --ca-bundle, PIP_CERT or SSL_CERT_FILE",
    "tls": "Check that the address is one of TLS (https), and the proxy in between",
    "name": "Check the network, the DNS settings and the index's address (--index-url, PIP_INDEX_URL)",
    "refused": "Check the index's address and port (--index-url, PIP_INDEX_URL)",
    "route": "Connect this machine to a network, or name an index that it reaches (--index-url)",
    "timeout": "Check the network, and whether it takes a proxy (HTTPS_PROXY)",
}
_OTHER = "Check the index's address (--index-url, PIP_INDEX_URL)"


def look_at_indexes(indexes: IndexSettings) -> list[Finding]:
    """Ask every index for a page that each has, over the proxies and with the CA bundle of a run."""
    if (broken := _bundle(indexes.ca_bundle)) is not None:
        return [broken]
    found = [_ask(url, indexes, extra=n > 0) for n, url in enumerate(indexes.urls())]
    return [finding for findings in found for finding in findings]


def _bundle(path: Path | None) -> Finding | None:
    if path is None:
        return None
    try:
        ssl.create_default_context(cafile=str(path))
    except OSError as error:  # ssl.SSLError is one
        said = error.strerror or str(error)
        advice = "Name a file of PEM certificates: --ca-bundle, PIP_CERT or SSL_CERT_FILE"
        return missing("CA bundle", f"{path} cannot be used: {said}", advice)
    return None


def _ask(url: str, indexes: IndexSettings, *, extra: bool) -> list[Finding]:
    import requests
    from requests.auth import HTTPBasicAuth

    name, shown = ("extra index" if extra else "package index"), redact(url)
    if url.startswith("file://"):
        return [_folder(name, shown, url)]
    plain, login = split_credentials(url)
    auth = HTTPBasicAuth(login[0].encode(), login[1].encode()) if login else None
    verify = str(indexes.ca_bundle) if indexes.ca_bundle else True
    began = time.time()
    try:
        with requests.get(
            f"{plain.rstrip('/')}/{_PROJECT}/", auth=auth, verify=verify, timeout=_TIMEOUT, stream=True
        ) as answer:
            status, date = answer.status_code, answer.headers.get("date", "")
            hops = [redact(one.url) for one in answer.history]
    except (requests.RequestException, OSError, ValueError) as error:
        why = cause(error)
        said = why.said if why.kind != "other" else indexes.redact(printable(str(error), 200))
        return [missing(name, f"{shown}: {said}", _ADVICE.get(why.kind, _OTHER))]
    clock = _clock(date, began)
    return [_judge(name, shown, status, redirected=bool(hops), extra=extra), *([clock] if clock else [])]


def _judge(name: str, shown: str, status: int, *, redirected: bool, extra: bool) -> Finding:
    if status == 200:
        return ok(name, f"{shown} answers")
    said = f"{shown}: HTTP {status}" + (" after a redirection" if redirected else "")
    if status in (404, 410) and extra:
        return ok(name, f"{shown} answers; it does not have {_PROJECT}")
    if status in (401, 403):
        advice = (
            "Give user and password in the index's URL (--index-url, PIP_INDEX_URL) or in your netrc file"
        )
        return missing(name, f"{said}, access refused", advice)
    if status == 407:
        return missing(name, f"{said}, the proxy wants a user and a password", _ADVICE["proxy"])
    if status in (404, 410):
        return missing(name, f"{said}: it has no {_PROJECT}, which every environment needs", _OTHER)
    if status in (429, 500, 502, 503, 504):
        return warning(name, f"{said}: it is busy or out of order", "Try again later: this may pass")
    return missing(name, said, _OTHER)


def _folder(name: str, shown: str, url: str) -> Finding:
    place = Path(unquote(urlsplit(url).path))
    if place.is_dir():
        return ok(name, f"{shown} is there")
    return missing(name, f"{shown}: there is no such folder", _OTHER)


def _clock(date: str, now: float) -> Finding | None:
    try:
        off = email.utils.parsedate_to_datetime(date).timestamp() - now
    except ValueError:
        return None
    if abs(off) < _SKEW:
        return None
    advice = "Set the clock (NTP): certificates and resolutions as of a date depend on it"
    way = "behind" if off > 0 else "ahead of"
    return warning("clock", f"this machine is {abs(off) / 60:.0f} minutes {way} the package index", advice)
