"""Keeping credentials out of everything that is written: by value, not by name."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

_REDACTED = "[redacted]"
#: Local endpoints take any key ("EMPTY", "none", "x"): replacing such words would garble the text.
_SHORTEST = 8

Text = TypeVar("Text", str, bytes)


def scrub(text: Text, secrets: Iterable[str]) -> Text:
    """Replace every secret in ``text``, also where it was escaped for JSON or quoted for a URL.

    Secrets of fewer than 8 characters are placeholders, not credentials, and are left alone.
    """
    for form in _forms(secrets):
        if isinstance(text, bytes):
            text = text.replace(form.encode("utf-8", "surrogateescape"), _REDACTED.encode())
        else:
            text = text.replace(form, _REDACTED)
    return text


def scrub_value(value: Any, secrets: Iterable[str]) -> Any:
    """Return a plain JSON value with every secret replaced in its strings, keys included."""
    known = tuple(secrets)
    if isinstance(value, str):
        return scrub(value, known)
    if isinstance(value, dict):
        return {scrub(str(key), known): scrub_value(item, known) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrub_value(item, known) for item in value]
    return value


def public_url(url: str) -> str:
    """Return ``url`` without user, password, query and fragment: fit for results and messages."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def split_login(url: str) -> tuple[str, str | None]:
    """Return ``url`` without its ``user:password@``, and that as the value of a Basic authorization."""
    parts = urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    bare = urlunsplit((parts.scheme, host, parts.path, parts.query, parts.fragment))
    return bare, b64encode(unquote(login).encode()).decode() if login else None


def secrets_in_url(url: str) -> tuple[str, ...]:
    """Return what a URL carries in confidence: its password, in both forms, and its query."""
    parts = urlsplit(url)
    password = unquote(parts.password) if parts.password else None
    return tuple(part for part in (password, split_login(url)[1], parts.query) if part)


def _forms(secrets: Iterable[str]) -> list[str]:
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) < _SHORTEST:
            continue
        forms |= {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}
    # The longest first: a secret that contains another one goes as a whole.
    return sorted(forms, key=lambda form: (-len(form), form))
