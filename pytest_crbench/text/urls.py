"""URLs without their secrets."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

#: A password may hold an unescaped "@".
_USERINFO = re.compile(r"(?<=://)(?:[^/\s@]*@)+")
_WORD = re.compile(r"[^\s'\"]+")
_ROUNDS = 8
_QUERY = re.compile(r"[?#]")


def problem(url: str) -> str:
    """Return why no function here can take a URL, without showing it; "" if they can."""
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        reason = str(error).partition("'")[0].strip()
        return f"invalid URL ({reason}); expected http://… or https://…"
    return ""


def redact(text: str) -> str:
    """Strip user, password, query and fragment from every URL in a text; a query may be a signature."""
    # What a query hid may be a user's name once that is gone: until nothing is left to strip. Each round
    # shortens the text; more than a few are of somebody's making.
    for _ in range(_ROUNDS):
        before, text = text, _WORD.sub(_without_query, _USERINFO.sub("", text))
        if text == before:
            return text
    return _WORD.sub(lambda word: word[0].partition("://")[0], text)


def _without_query(word: re.Match[str]) -> str:
    before, scheme, rest = word[0].partition("://")
    return before + scheme + _QUERY.split(rest, maxsplit=1)[0]


def public(url: str) -> str:
    """Return one URL as `redact` does, without a slash at its end: fit for results and keys."""
    parts = _split(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL without user and password, and these, percent-decoded (None if it has none)."""
    parts = _split(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    return urlunsplit(parts._replace(netloc=host)), (unquote(user), unquote(password))


def with_credentials(url: str, user: str, password: str) -> str:
    """Return the URL with user and password in it; one that has some keeps its own."""
    bare, known = split_credentials(url)
    if known is not None or not (user or password):
        return url
    parts = _split(bare)
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))


def basic(credentials: tuple[str, str]) -> str:
    """Return user and password as HTTP's Basic authorization spells them."""
    return b64encode(":".join(credentials).encode()).decode()


def secrets_in(url: str) -> tuple[str, ...]:
    """Return what a URL carries in confidence: its password (or a token without one) and its query.

    The password comes as it is, as the URL quotes it, and as a Basic authorization; of the query also each
    value. A user's name of 16 characters with digits counts as a token.
    """
    try:
        parts = _split(url)
    except ValueError:  # brackets that are no IPv6 address
        return ()
    _, credentials = split_credentials(url)
    found = [parts.query]
    if credentials is not None:
        user, password = credentials
        raw = parts.netloc.rpartition("@")[0].partition(":")
        found = [password or user, raw[2] or raw[0], basic(credentials), *found]
        if len(user) >= 16 and any(map(str.isdigit, user)):
            found += [user, raw[0]]
    found += [value for _, value in parse_qsl(parts.query) if len(value) >= 8]
    return tuple(dict.fromkeys(part for part in found if part))


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port: what credentials are bound to."""
    parts = _split(url)
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default


def _split(url: str) -> SplitResult:
    """Take a URL apart, also one that is none: what it may hold in confidence must be found all the same."""
    try:
        return urlsplit(url)
    except ValueError:
        scheme, _, rest = url.partition("://")
        rest, _, fragment = rest.partition("#")
        rest, _, query = rest.partition("?")
        authority, slash, path = rest.partition("/")
        return SplitResult(scheme, authority, slash + path, query, fragment)
