"""Paths as tools write them, turned into paths of the repository; nothing is ever guessed."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from ...text.diffs import unquoted
from ...text.printable import clean, decode
from .base import PATH_LIMIT

if TYPE_CHECKING:
    from .base import ParseContext

OUTSIDE = "outside-tree"
_DRIVE = re.compile(r"^[A-Za-z]:/")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def repository_path(raw: object, context: ParseContext) -> tuple[str | None, tuple[str, ...]]:
    """Return the POSIX path relative to the repository's root, and flags.

    None stands for no path at all. A path that is not the repository's is returned as it is, flagged
    ``outside-tree``. Accepts absolute paths below the workspace, ``./``, backslashes, git's quoting, and
    git's ``a/`` and ``b/`` where only the rest exists.
    """
    if not isinstance(raw, str) or not raw.strip():
        return None, ()
    text = clean(raw)
    if len(text) > PATH_LIMIT:
        return _shown(text[:PATH_LIMIT]), (OUTSIDE, "path-clipped")
    if posixpath.normpath(text) == text and context.known(text):
        return text, ()
    text = decode(unquoted(text.strip().encode()))
    if text == "/dev/null":
        # The new name of a deleted file: its old one is meant, where there is only one.
        return context.removed[0] if len(context.removed) == 1 else None, ("dev-null",)
    if not context.known(text):
        text = text.replace("\\", "/")
    if "://" in text and _SCHEME.match(text):
        return _shown(text), (OUTSIDE,)
    if text.startswith("/") or _DRIVE.match(text):
        return _absolute(text, context)
    text = posixpath.normpath(text)
    if text == ".":
        return None, ()
    if text == ".." or text.startswith("../"):
        return _shown(text), (OUTSIDE,)
    return _shown(_spelled(text, context)), ()


def from_uri(uri: str) -> str:
    """Return the path that a ``file:`` or relative URI names, ``%`` escapes decoded; others stay."""
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return uri
    if parts.scheme == "file":
        path = _unescape(parts.path)
        if host not in ("", "localhost"):
            return f"//{host}{path}"
        return path[1:] if _DRIVE.match(path[1:]) else path
    if _SCHEME.match(uri):
        return uri
    # A "?" or "#" that is not escaped is part of the name: tools write paths here more often than URIs.
    return _unescape(uri)


def _unescape(text: str) -> str:
    return unquote_to_bytes(clean(text)).decode("utf-8", "replace") if "%" in text else text


def _absolute(text: str, context: ParseContext) -> tuple[str | None, tuple[str, ...]]:
    text = posixpath.normpath(text)
    roots = () if context.root is None else (context.root, context.root.resolve())
    for root in dict.fromkeys(root.as_posix() for root in roots):
        if text == root:
            return None, ()
        if text.startswith(root.rstrip("/") + "/"):
            return _shown(_spelled(text[len(root.rstrip("/")) + 1 :], context)), ()
    return _shown(text), (OUTSIDE,)


def _spelled(text: str, context: ParseContext) -> str:
    if context.known(text):
        return text
    if text[:2] in ("a/", "b/") and context.known(text[2:]):
        return text[2:]
    for form in ("NFC", "NFD"):
        other = unicodedata.normalize(form, text)
        if context.known(other):
            return other
    return unicodedata.normalize("NFC", text)


def _shown(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)
