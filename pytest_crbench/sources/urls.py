"""URLs without their secrets."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit, urlunsplit

_USERINFO = re.compile(r"(?<=://)[^/\s@]*@")
_QUERY = re.compile(r"(://[^\s?#'\"]*)[?#][^\s'\"]*")


def redact(text: str) -> str:
    """Strip user, password, query and fragment from every URL in a text; a query may be a signature."""
    # A password may hold an unescaped "@": repeated until none is left.
    while True:
        shorter = _USERINFO.sub("", text)
        if shorter == text:
            return _QUERY.sub(r"\1", text)
        text = shorter


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL without user and password, and these, percent-decoded (None if it has none)."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    return urlunsplit(parts._replace(netloc=host)), (unquote(user), unquote(password))


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port: what credentials are bound to."""
    parts = urlsplit(url)
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default
