"""Finding the ``suggestion`` blocks of a comment's Markdown body."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")
_NAME = re.compile(r"^suggestion(?::-(\d+)\+(\d+))?$")


def blocks(body: str) -> tuple[list[str], list[str]]:
    """Return the texts of all suggestion blocks, and what is wrong with those that were left out.

    A block within another fenced block is not one. GitLab's ``suggestion:-1+2`` moves the lines that are
    replaced; a suggestion is applied to exactly the lines that its comment names, so only ``-0+0`` is taken.
    """
    found: list[str] = []
    wrong: list[str] = []
    fence = indent = ""
    name: str | None = None
    content: list[str] = []
    for line in body.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if not fence:
            if match and not ("`" in match[2] and "`" in match[3]):
                indent, fence, name, content = match[1], match[2], match[3].strip(), []
        elif match and match[2].startswith(fence) and not match[3].strip():
            _close(name or "", content, found, wrong)
            fence = ""
        else:
            content.append(_outdent(line, len(indent)))
    if fence and _NAME.match(name or ""):
        wrong.append("its suggestion block has no end")
    return found, wrong


def _close(name: str, content: list[str], found: list[str], wrong: list[str]) -> None:
    match = _NAME.match(name)
    if match is None:
        return
    if (match[1] or "0", match[2] or "0") != ("0", "0"):
        wrong.append(f"its block {name!r} names other lines than the comment")
        return
    found.append("".join(f"{line}\n" for line in content))


def _outdent(line: str, columns: int) -> str:
    blank = len(line) - len(line.lstrip(" "))
    return line[min(blank, columns) :]
