"""Keeping credentials out of everything that is written: by value, not by name."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from .text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED = "[redacted]"
#: Local endpoints take any key ("EMPTY", "none", "x"): replacing such words would garble the text.
_SHORTEST = 8
_CREDENTIAL = re.compile(r"(?i)(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")

Text = TypeVar("Text", str, bytes)


def scrub(text: Text, secrets: Iterable[str], *, shortest: int = _SHORTEST) -> Text:
    """Replace every secret in ``text``, also where it was escaped for JSON or quoted for a URL.

    Secrets of fewer than ``shortest`` characters are placeholders, not credentials, and are left alone.
    """
    for form in _forms(secrets, shortest):
        if isinstance(text, bytes):
            text = text.replace(form.encode("utf-8", "surrogateescape"), REDACTED.encode())
        else:
            text = text.replace(form, REDACTED)
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


def passed_through(names: Iterable[str]) -> tuple[str, ...]:
    """Return the values of variables that a program is given by name: no kept file may hold them."""
    return tuple(os.environ[name] for name in names if os.environ.get(name))


def within_reach() -> tuple[str, ...]:
    """Return the values of this process's variables that are called keys, tokens, secrets or passwords.

    What runs in this process sees all of them, whatever the user named.
    """
    return passed_through(name for name in os.environ if _CREDENTIAL.search(name))


def _forms(secrets: Iterable[str], shortest: int) -> list[str]:
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) < max(shortest, 1):
            continue
        text = clean(secret)
        # JSON may be written in ASCII or not; what is no UTF-8 may have become U+FFFD before.
        escaped = {json.dumps(s, ensure_ascii=a)[1:-1] for s in (secret, text) for a in (True, False)}
        forms |= {secret, *escaped, quote(secret, safe="", errors="surrogateescape")}
    # The longest first: a secret that contains another one goes as a whole.
    return sorted(forms, key=lambda form: (-len(form), form))
