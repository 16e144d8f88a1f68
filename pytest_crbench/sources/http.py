"""Reading from a package index over HTTP: patient, bounded in time and size, silent about credentials."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import requests
import urllib3
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth

from ..core.errors import InfraError
from ..host.unreachable import seconds_asked
from ..text.urls import origin, redact, split_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import IO

T = TypeVar("T")

_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_ABSENT = frozenset({404, 410})
_CHUNK = 256 * 1024


@dataclass(frozen=True)
class Patience:
    """How long to try: requests, seconds altogether, and seconds without a byte."""

    attempts: int = 6
    total: float = 300.0
    connect: float = 15.0
    silence: float = 60.0
    #: The first pause in seconds; each later one is twice as long, up to 30 s.
    pause: float = 0.5


class _Passing(Exception):
    """A failure that may pass; ``after`` is how many seconds the server asks to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


@dataclass(frozen=True)
class Page:
    """A small document: content type, body, and the URL that it came from in the end (no credentials)."""

    content_type: str
    body: bytes
    url: str


class _Credentials(AuthBase):
    """Basic credentials, each for its own origin only; for other places what the user's netrc says."""

    def __init__(self, known: Mapping[tuple[str, str, int | None], tuple[str, str]]) -> None:
        self.known = known

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = request.url or ""
        found = self.known.get(origin(url)) or get_netrc_auth(url)
        if found is None:
            return request
        user, password = found
        signed: requests.PreparedRequest = HTTPBasicAuth(user.encode(), password.encode())(request)
        return signed


@dataclass
class Client:
    """One connection pool; use it as a context manager."""

    ca_bundle: Path | None
    log: Callable[[str], None]
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        self._session = requests.Session()
        self._known: dict[tuple[str, str, int | None], tuple[str, str]] = {}
        if self.ca_bundle is not None and not self.ca_bundle.exists():
            raise InfraError(
                f"the CA bundle {self.ca_bundle} does not exist; correct PIP_CERT, SSL_CERT_FILE or "
                "REQUESTS_CA_BUNDLE.",
                reason="ca-bundle",
            )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._session.close()

    def page(self, url: str, accept: str, limit: int = 128 * 1024**2) -> Page | None:
        """Read a document; None if the server says that there is none.

        Raises:
            InfraError: if it cannot be had in time, or is longer than ``limit`` bytes.
        """

        def read(response: requests.Response, deadline: float) -> Page:
            pieces: list[bytes] = []
            for piece in response.iter_content(_CHUNK):
                pieces.append(piece)
                _check(deadline, sum(map(len, pieces)), limit)
            kind = response.headers.get("content-type", "text/html")
            return Page(kind, b"".join(pieces), split_credentials(response.url)[0])

        return self._patiently(url, {"Accept": accept}, read)

    def download(self, url: str, stream: IO[bytes], limit: int = 1024**3) -> bool:
        """Write a file's bytes, as they are, to a seekable stream; False if the server says there is none.

        Raises:
            InfraError: if it cannot be had in time, or is longer than ``limit`` bytes.
        """

        def read(response: requests.Response, deadline: float) -> bool:
            stream.seek(0)
            stream.truncate()
            written = 0
            # Undecoded: some servers label a .tar.gz as Content-Encoding: gzip.
            for piece in response.raw.stream(_CHUNK, decode_content=False):
                written += len(piece)
                _check(deadline, written, limit)
                stream.write(piece)
            return True

        return self._patiently(url, {"Accept-Encoding": "identity"}, read) or False

    def _patiently(
        self, url: str, headers: dict[str, str], read: Callable[[requests.Response, float], T]
    ) -> T | None:
        """Try until it succeeds, the server refuses, or patience is at its end."""
        plain, credentials = split_credentials(url)
        if credentials is not None:
            self._known[origin(plain)] = credentials
        deadline = time.monotonic() + self.patience.total
        for attempt in range(1, self.patience.attempts + 1):
            try:
                return self._once(plain, headers, read, deadline)
            except _Passing as failure:
                pause = min(self.patience.pause * 2 ** (attempt - 1), 30.0) * random.uniform(0.75, 1.25)
                pause = max(pause, failure.after or 0.0)
                late = time.monotonic() + pause > deadline
                if late or attempt == self.patience.attempts:
                    asked = f"; it asks to wait {failure.after:.0f} s" if late and failure.after else ""
                    raise InfraError(
                        f"{redact(plain)}: {failure}{asked}. Gave up after {attempt} attempt(s). Check the "
                        "network and the index (PIP_INDEX_URL, PIP_CERT, HTTPS_PROXY), then run again.",
                        reason="unreachable",
                    ) from None
                self.log(f"{redact(plain)}: {failure}; trying again in {pause:.1f} s")
                time.sleep(pause)
        raise AssertionError("unreachable")

    def _once(
        self,
        url: str,
        headers: dict[str, str],
        read: Callable[[requests.Response, float], T],
        deadline: float,
    ) -> T | None:
        timeout = (self.patience.connect, self.patience.silence)
        verify = str(self.ca_bundle) if self.ca_bundle else True
        try:
            with self._session.get(
                url,
                headers=headers,
                auth=_Credentials(self._known),
                timeout=timeout,
                verify=verify,
                stream=True,
            ) as response:
                status = response.status_code
                if status in _ABSENT:
                    return None
                if status in _PASSING:
                    raise _Passing(f"HTTP {status}", seconds_asked(response.headers.get("retry-after")))
                if status != 200:
                    raise _refused(url, status)
                return read(response, deadline)
        except requests.exceptions.SSLError as error:
            raise InfraError(
                f"{redact(url)}: the certificate is not trusted ({redact(str(error))}). Name your CA bundle "
                "with PIP_CERT or SSL_CERT_FILE.",
                reason="certificate",
            ) from None
        except (
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
            requests.exceptions.ContentDecodingError,
            urllib3.exceptions.HTTPError,
        ) as error:
            raise _Passing(f"{type(error).__name__} ({redact(str(error))[:200]})") from None
        except requests.exceptions.RequestException as error:
            raise InfraError(
                f"{redact(url)}: {type(error).__name__} ({redact(str(error))[:200]}). Check PIP_INDEX_URL.",
                reason="unreachable",
            ) from None


def _refused(url: str, status: int) -> InfraError:
    if status in (401, 403):
        advice = "Give the index's user and password in its URL (PIP_INDEX_URL) or in your netrc file"
        return InfraError(f"{redact(url)}: HTTP {status}, access refused. {advice}.", reason="refused")
    return InfraError(f"{redact(url)}: HTTP {status}. Check PIP_INDEX_URL.", reason="unreachable")


def _check(deadline: float, size: int, limit: int) -> None:
    if time.monotonic() > deadline:
        raise _Passing("still not complete when its time was up")
    if size > limit:
        raise InfraError(f"the index sent more than {limit} bytes; nothing was kept.", reason="too-large")
