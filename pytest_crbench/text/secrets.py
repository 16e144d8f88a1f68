"""Keeping credentials out of everything that is written: by value, not by name (docs/secrets.md).

What is secret is a property of the process, as its environment is: `register` adds to what the environment
holds, and the doors through which text leaves (files, errors, logs, reports) ask `scrubbed`. A writer that
had to be handed the secrets would one day be forgotten.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
from base64 import b64encode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus

from . import urls
from .printable import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Local endpoints take any key ("EMPTY", "none", "x"): replacing such words would garble the text.
SHORTEST = 8
#: Characters of a credential that are worth taking out of what is left of it.
_PIECE = 6
#: Where a text was shortened: what `text.clip`, `processes`, `text.printable` and pytest put there.
_CUT = re.compile("\n\\[\\.\\.\\. \\d+ (?:bytes|characters) left out \\.\\.\\.\\]\n|…|\\.{3}")


@dataclass(frozen=True, repr=False)
class Forms:
    """Every form of some secrets, the longest first, as text and as bytes, and pieces that give them away."""

    texts: tuple[str, ...]
    data: tuple[bytes, ...]
    pieces: tuple[str, ...]
    data_pieces: tuple[bytes, ...]

    def may_be_in(self, text: str) -> bool:
        """Whether there is anything to look for more closely."""
        return any(piece in text for piece in self.pieces)

    def scrub(self, text: Text, redacted: str) -> Text:
        """Replace every form, and what is left of one at either end of a text and where it was shortened."""
        if isinstance(text, bytes):
            if not any(piece in text for piece in self.data_pieces):
                return text
            for form in self.data:
                text = text.replace(form, redacted.encode())
            # Latin-1 gives every byte a character of its own, and back.
            whole = text.decode("latin-1")
            cut = re.compile(_CUT.pattern.encode().decode("latin-1"))
            remains = tuple(form.decode("latin-1") for form in self.data)
            return _without_remains(whole, remains, redacted, cut).encode("latin-1")
        if not self.may_be_in(text):
            return text
        for known in self.texts:
            text = text.replace(known, redacted)
        return _without_remains(text, self.texts, redacted, _CUT)


def forms_of(secrets: Iterable[str], shortest: int = SHORTEST) -> Forms:
    """Return the forms of all secrets that have at least ``shortest`` characters."""
    found = {form for secret in secrets if len(secret) >= max(shortest, 1) for form in _forms(secret)}
    # The longest first: a secret that contains another one goes as a whole.
    texts = tuple(sorted(found, key=lambda form: (-len(form), form)))
    data = tuple(form.encode("utf-8", "surrogateescape") for form in texts)
    return Forms(texts, data, tuple(_pieces(texts)), tuple(_pieces(data)))


def _forms(secret: str) -> Iterator[str]:
    for text in dict.fromkeys((secret, clean(secret))):  # what is no UTF-8 may have become U+FFFD before
        yield text
        for escaped in _escaped(text):
            yield escaped
            # JSON in JSON (the arguments of a tool call), and as Python shows a text of JSON.
            yield from (json.dumps(escaped, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
            yield escaped.replace("\\", "\\\\")
        yield from (html.escape(text), html.escape(text, quote=False))
        yield shlex.quote(text).strip("'")
        yield " ".join(text.split()) or text
    for quoted in (
        quote(secret, safe="", errors="surrogateescape"),
        quote(secret, errors="surrogateescape"),
        quote_plus(secret, errors="surrogateescape"),
    ):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    if len(secret) >= SHORTEST:
        data = secret.encode("utf-8", "surrogateescape")
        yield data.hex()
        yield from _encoded(data)


def _escaped(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]


def _encoded(data: bytes) -> Iterator[str]:
    """Base64 of the bytes alone, and what of it stays the same whatever stands around them."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode().rstrip("=")
        for before in range(3):
            whole = encode(b"\0" * before + data).decode()
            yield whole[(0, 2, 3)[before] : 8 * (before + len(data)) // 6]


def _pieces(forms: Iterable[Text]) -> list[Text]:
    """Both ends of every form; what holds none of them holds no form and no remains of one."""
    return list(dict.fromkeys(piece for form in forms for piece in (form[:_PIECE], form[-_PIECE:])))


def _without_remains(text: str, forms: tuple[str, ...], redacted: str, cut: re.Pattern[str]) -> str:
    """Take out the beginning of a form before a cut, and the end of one after it."""
    parts: list[str] = []
    at = 0
    for gap in [*cut.finditer(text), None]:
        part = text[at : gap.start() if gap else len(text)]
        parts += [_trim_end(_trim_start(part, forms, redacted), forms, redacted), gap[0] if gap else ""]
        at = gap.end() if gap else at
    return "".join(parts)


def _trim_end(part: str, forms: tuple[str, ...], redacted: str) -> str:
    for form in forms:
        window = part[-(len(form) - 1) :] if len(form) > 1 else ""
        place = window.find(form[:_PIECE])
        while place >= 0:
            if form.startswith(window[place:]) and len(window) - place >= _PIECE:
                return part[: len(part) - (len(window) - place)] + redacted
            place = window.find(form[:_PIECE], place + 1)
    return part


def _trim_start(part: str, forms: tuple[str, ...], redacted: str) -> str:
    for form in forms:
        window = part[: len(form) - 1]
        place = window.rfind(form[-_PIECE:])
        while place >= 0:
            if form.endswith(window[: place + _PIECE]) and place + _PIECE >= _PIECE:
                return redacted + part[place + _PIECE :]
            place = window.rfind(form[-_PIECE:], 0, place + _PIECE - 1)
    return part


REDACTED = "[redacted]"
_NAMES = r"API[-_]?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?"
_CREDENTIAL = re.compile(rf"(?i)(?:^|_)(?:{_NAMES}|PASS|PAT)$")
#: Words that people put where a key must stand, and values that are no secret: one class of letters, digits.
_PLAIN = re.compile(r"[a-z]{1,15}|[A-Z]{1,15}|\d{1,15}")
#: ``--token=x``, ``API_KEY x``, ``Authorization: Bearer x``.
_GIVEN = re.compile(
    rf"""(?ix)(?<![a-z]) (?: (?:{_NAMES})["']?[=:\s] | authorization["']?[=:]\s*(?:bearer|basic|token)\s )
    \s* ["']? ([^\s"'{{}}$]{{8,}})"""
)
#: Tokens that show by their shape what they are.
_SHAPES = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|hf_\w{20,}|eyJ[\w-]{10,2000}+\.[\w-]{10,}+\.[\w-]{5,})"
)
#: The search must take no longer than the text is: no start within a word, and none of it tried twice.
_URL = re.compile(r"(?<!\w)\w++://[^\s'\"<>]+")

Text = TypeVar("Text", str, bytes)

#: The deliberate exception to "no mutable state in modules": it only grows, with what must not leave.
REGISTERED: dict[str, None] = {}


def register(values: Iterable[str]) -> None:
    """Treat ``values`` as credentials from now on, in this process."""
    REGISTERED.update(dict.fromkeys(value for value in values if value))


def known() -> tuple[str, ...]:
    """Return the credentials of this process: registered ones, and those in its environment.

    Left out is what is no credential by the look of it: under 8 characters, one plain word or number of under
    16, and the path of a file that is there. Replacing these would turn reports to mush.
    """
    found = [*REGISTERED, *within_reach(), *_urls_within_reach()]
    lines = [line.strip() for value in found if "\n" in value for line in value.splitlines()]
    kept = [value.strip() for value in found] + [line for line in lines if not line.startswith("-----")]
    return tuple(dict.fromkeys(value for value in kept if _counts(value)))


def scrubbed(text: Text) -> Text:
    """Return ``text`` without any known credential, whole or cut off where the text was shortened."""
    return _prepared(known(), SHORTEST).scrub(text, REDACTED)


def scrubbed_patch(patch: bytes) -> bytes:
    """Return a patch without known credentials in the lines that it adds.

    What it takes away or leaves was there before. A patch is measured, so only what cannot be meant as code
    counts: at least 16 characters, letters and digits.
    """
    strong = tuple(s for s in known() if len(s) >= 16 and re.search(r"\d", s) and re.search(r"[A-Za-z]", s))
    prepared = _prepared(strong, SHORTEST)
    if prepared.scrub(patch, REDACTED) == patch:
        return patch
    lines = patch.split(b"\n")
    return b"\n".join(prepared.scrub(x, REDACTED) if x.startswith(b"+") else x for x in lines)


def scrubbed_value(value: Any) -> Any:
    """Return a plain JSON value without any known credential in its texts, keys included."""
    prepared = _prepared(known(), SHORTEST)
    if not prepared.may_be_in(json.dumps(value, ensure_ascii=False, default=str)):
        return value
    return _walk(value, prepared)


def scrub(text: Text, secrets: Iterable[str], *, shortest: int = SHORTEST) -> Text:
    """Replace every secret in ``text``, also where it was escaped, quoted or encoded.

    Secrets of fewer than ``shortest`` characters are placeholders, not credentials, and are left alone.
    """
    return _prepared(tuple(secrets), shortest).scrub(text, REDACTED)


def scrub_value(value: Any, secrets: Iterable[str]) -> Any:
    """Return a plain JSON value with every secret replaced in its strings, keys included."""
    return _walk(value, _prepared(tuple(secrets), SHORTEST))


def passed_through(names: Iterable[str]) -> tuple[str, ...]:
    """Return the values of variables that a program is given by name: no kept file may hold them."""
    found = []
    for name in names:
        with suppress(UnicodeEncodeError):  # what no variable can be called
            found.append(os.environ.get(name, ""))
    return tuple(value for value in found if value)


def is_credential(name: str) -> bool:
    """Whether a variable's name says that it holds a key, token, secret or password."""
    return _CREDENTIAL.search(name) is not None


def within_reach() -> tuple[str, ...]:
    """Return the values of this process's variables that are called keys, tokens, secrets or passwords.

    What runs in this process sees all of them, whatever the user named.
    """
    return passed_through(name for name in os.environ if is_credential(name))


def in_text(text: str) -> tuple[str, ...]:
    """Return the credentials in what a user wrote: a command line, a URL."""
    found = [*_GIVEN.findall(text), *_SHAPES.findall(text)]
    found += [secret for url in _URL.findall(text) for secret in urls.secrets_in(url)]
    return tuple(dict.fromkeys(found))


def _counts(value: str) -> bool:
    if len(value) < SHORTEST or _PLAIN.fullmatch(value):
        return False
    return not (value.startswith("/") and os.path.exists(value))  # noqa: PTH110  (bytes that are no path)


def _urls_within_reach() -> list[str]:
    """Logins in URLs of the environment: proxies, indexes, endpoints."""
    return [
        secret
        for name, value in os.environ.items()
        if "://" in value
        for url in value.split()
        if "@" in url or name.endswith(("INDEX_URL", "_INDEX", "BASE_URL"))
        for secret in urls.secrets_in(url)
    ]


def _walk(value: Any, prepared: Forms) -> Any:
    if isinstance(value, str):
        return prepared.scrub(value, REDACTED)
    if isinstance(value, dict):
        return {_walk(key, prepared): _walk(item, prepared) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walk(item, prepared) for item in value]
    return value


@lru_cache(maxsize=64)
def _prepared(secrets: tuple[str, ...], shortest: int) -> Forms:
    return forms_of(secrets, shortest)
