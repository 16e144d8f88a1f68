"""Text from foreign programs, made safe to store, send, print and put into Markdown."""

from __future__ import annotations

import re

#: Characters of a verdict's reason: what to do next stands at a message's end, and must not be cut off.
REASON_LIMIT = 800
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: Takes no room or is a blank of another kind: what differs only in these looks the same to a reader.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
#: What CI services take as a command to them, wherever it stands in a line of a log: Azure Pipelines (and
#: GitHub's old form), TeamCity, GitLab's folds.
_COMMAND = re.compile(r"#(?=#(?:\w+)?\[)|(?<=#)#(?=teamcity\[)|(?<=section)_(?=(?:start|end):\d)")
#: GitHub's commands, where a line begins with them.
_FIRST = re.compile(r"(?<!\S)::(?=[A-Za-z])")


def decode(data: bytes) -> str:
    """Decode bytes of unknown origin; what is not UTF-8 becomes U+FFFD, line ends stay as they are."""
    return data.decode("utf-8", errors="replace")


def clean(text: str) -> str:
    """Replace lone surrogates: one of them in a report ends a whole xdist run (pytest-xdist#1157)."""
    return _SURROGATE.sub("\ufffd", text)


def harmless(text: str) -> str:
    """The same text over any number of lines, without what steers a terminal or cannot be seen."""
    return _INVISIBLE.sub("\ufffd", _CONTROL.sub(" ", clean(text)))


def printable(text: str, limit: int = 300) -> str:
    """One line for a terminal or the log of a CI job, at most ``limit`` long.

    No escape sequences, no bidirectional overrides, nothing invisible, and nothing that a CI service would
    take as a command to it.
    """
    line = " ".join(_CONTROL.sub(" ", clean(text)).split())
    line = inert(_INVISIBLE.sub("\ufffd", line))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def inert(line: str) -> str:
    """Return a line in which CI services find no command to them; the same text to a reader."""
    return _FIRST.sub(": :", _COMMAND.sub(lambda found: found[0] + " ", line))


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


_MARKUP = re.compile(r"""[\\`*_{}\[\]<>()#|~!&@:$"'^=]""")


def escaped(text: str, limit: int = 300) -> str:
    """One line of text with every character that Markdown or HTML could read as a sign as an entity.

    CommonMark never takes an entity for structure, so this holds in table cells and link texts too.
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", printable(text, limit))


def code(text: str, limit: int = 300) -> str:
    """One line of text as a code span, for everywhere but table cells; "" stays ""."""
    line = printable(text, limit)
    if not line:
        return ""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or line.startswith(" ") else ""
    return f"{fence}{space}{line}{space}{fence}"


def many(count: int, noun: str) -> str:
    """``1 check``, ``2 checks``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
