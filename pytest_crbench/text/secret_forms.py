"""The forms in which programs write a credential, and taking them out of text, also those cut in two."""

from __future__ import annotations

import html
import json
import re
import shlex
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, quote_plus

from .printable import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Local endpoints take any key ("EMPTY", "none", "x"): replacing such words would garble the text.
SHORTEST = 8
#: Characters of a credential that are worth taking out of what is left of it.
_PIECE = 6
#: Where a text was shortened: what `text.clip`, `processes`, `text.printable` and pytest put there.
_CUT = re.compile("\n\\[\\.\\.\\. \\d+ (?:bytes|characters) left out \\.\\.\\.\\]\n|…|\\.{3}")

Text = TypeVar("Text", str, bytes)


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
