"""Text from foreign programs, made safe to store, send and print."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def decode(data: bytes) -> str:
    """Decode bytes of unknown origin; what is not UTF-8 becomes U+FFFD, line ends stay as they are."""
    return data.decode("utf-8", errors="replace")


def clean(text: str) -> str:
    """Replace lone surrogates: one of them in a report ends a whole xdist run (pytest-xdist#1157)."""
    return _SURROGATE.sub("\ufffd", text)


def printable(text: str, limit: int = 300) -> str:
    """One line for a terminal: no escape sequences, no bidirectional overrides, at most ``limit`` long."""
    line = " ".join(_CONTROL.sub(" ", clean(text)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def clip(data: bytes, limit: int) -> tuple[bytes, bool]:
    """Keep head and tail of ``data`` within about ``limit`` bytes; says whether something was left out."""
    if len(data) <= limit:
        return data, False
    half = limit // 2
    gap = b"\n[... %d bytes left out ...]\n" % (len(data) - 2 * half)
    return data[:half] + gap + data[len(data) - half :], True


def slug(text: str, limit: int = 80) -> str:
    """Reduce any text to ``[A-Za-z0-9._-]`` for a file or container name; never empty, never dots alone."""
    reduced = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:limit]
    return reduced or "x"
