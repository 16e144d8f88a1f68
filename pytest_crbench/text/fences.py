"""Other people's text within a prompt: fenced by tags that it can neither close nor open."""

from __future__ import annotations

import re

from .printable import clean

#: Control characters, overrides of the direction, and what no human reader of a comment would see but a
#: model reads. Joiners and byte order marks stay: honest texts and files have them.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\U000e0000-\U000e0fff]"
)
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def tags(*names: str) -> re.Pattern[str]:
    """Return what finds the beginning of a tag of these names, opening or closing, for `fence`."""
    return re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(map(re.escape, names))})\b)", re.IGNORECASE)


def fence(text: str, own: re.Pattern[str]) -> str:
    """Make untrusted text safe to stand between our tags (see `tags`)."""
    return own.sub("&lt;", visible(text))


def visible(text: str) -> str:
    """Drop terminal escape sequences, replace other control characters and lone surrogates."""
    return _CONTROL.sub("\ufffd", _ESCAPE_SEQUENCE.sub("", clean(text)))


def clip(text: str, limit: int) -> str:
    """Keep head and tail of ``text`` within about ``limit`` characters, and say what is left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
