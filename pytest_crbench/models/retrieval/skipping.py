"""Which files of a repository are worth finding, and why the others are not."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

#: Bytes; what is larger is data, or was written by a program.
HUGE = 512 * 1024
#: Characters of a line; the mean of a file beyond which it was not written to be read.
_MEAN_LINE = 200
_LONGEST_LINE = 10_000
_BEGINNING = 1_500
_NAMES = re.compile(
    r"(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|pdm\.lock|"
    r"Pipfile\.lock|Cargo\.lock|composer\.lock|Gemfile\.lock|go\.sum|packages\.lock\.json|"
    r".*\.min\.(js|css)|.*\.map|.*_pb2(_grpc)?\.pyi?|.*\.pb\.(go|cc|h)|.*\.g\.(cs|dart)|.*\.designer\.cs)",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bdo not (edit|modify)\b.*\bgenerated\b|"
    r"\bgenerated\b.*\bdo not (edit|modify)\b|\bauto-?generated (file|code|by|from)\b|"
    r"\bthis (file|code) (is|was|has been) (automatically |auto-)?generated\b",
    re.IGNORECASE | re.DOTALL,
)


def reason(path: str, mode: str, content: bytes) -> str:
    """Say why a file is not indexed, in one word; "" if it is.

    ``link``, ``empty``, ``huge`` (more than 512 KiB), ``binary`` (holds a NUL byte), ``generated`` (by its
    name, by what it says of itself in its first lines, or because its lines are too long to be read).
    """
    if mode == "120000":
        return "link"
    if not content.strip():
        return "empty"
    if len(content) > HUGE:
        return "huge"
    if b"\0" in content:
        return "binary"
    if _NAMES.fullmatch(PurePosixPath(path).name) or _is_generated(content):
        return "generated"
    return ""


def _is_generated(content: bytes) -> bool:
    lines = content.split(b"\n")
    if len(content) / len(lines) > _MEAN_LINE or max(map(len, lines)) > _LONGEST_LINE:
        return True
    return bool(_MARKS.search(content[:_BEGINNING].decode("utf-8", "replace")))
