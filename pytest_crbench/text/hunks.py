"""The hunks of a git diff, with the lines of both sides and their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .diffs import parts
from .printable import decode, printable

if TYPE_CHECKING:
    from collections.abc import Iterator


Side = Literal["left", "right"]
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


@dataclass(frozen=True)
class Hunk:
    """One hunk: its text as git writes it, and (number, text) of each line that it shows of a side.

    ``old`` and ``new`` are the file's names; None where it is not there on that side.
    """

    old: str | None
    new: str | None
    text: str
    left: tuple[tuple[int, str], ...]
    right: tuple[tuple[int, str], ...]

    @property
    def path(self) -> str:
        """The file's name: head's, or base's of a file that is removed."""
        return self.new or self.old or ""

    @property
    def header(self) -> str:
        """The line that says where it is, without the context that git adds to it."""
        found = _HEADER.match(self.text)
        return found[0] if found else ""

    @property
    def changed(self) -> str:
        """The text of its lines without their markers, of both sides, in order."""
        return "\n".join(line[1:] for line in self.text.split("\n")[1:] if line[:1] in (" ", "+", "-"))


def hunks(diff: bytes) -> tuple[tuple[Hunk, ...], tuple[str, ...]]:
    """Return the hunks of a git diff in order, and one sentence for each part that cannot be read.

    Files without lines (binary ones, new modes, mere renames) have no hunks.
    """
    found: list[Hunk] = []
    notes: list[str] = []
    for old, new, body in parts(diff):
        # Line by line, as git counts: other line ends are part of a line.
        lines = decode(body).removesuffix("\n").split("\n")
        at = 0
        while at < len(lines):
            if _HEADER.match(lines[at]):
                end, hunk = _hunk(old, new, lines, at)
                if hunk is None:
                    name = printable(new or old or "a file without a name", 200)
                    notes.append(f"{name}: a hunk does not have the lines that it says; it is left out")
                else:
                    found.append(hunk)
                at = max(end, at + 1)
            else:
                at += 1
    return tuple(found), tuple(notes)


def _hunk(old: str | None, new: str | None, lines: list[str], at: int) -> tuple[int, Hunk | None]:
    header = _HEADER.match(lines[at])
    assert header
    left_at, left_count, right_at, right_count = (1 if n is None else int(n) for n in header.groups())
    sides: dict[str, list[tuple[int, str]]] = {"left": [], "right": []}
    end = at + 1
    for marker, text in _body(lines, end):
        done = len(sides["left"]) >= left_count and len(sides["right"]) >= right_count
        if done and marker != "\\":
            break
        if marker in " -":
            sides["left"].append((left_at + len(sides["left"]), text))
        if marker in " +":
            sides["right"].append((right_at + len(sides["right"]), text))
        end += 1
    if len(sides["left"]) != left_count or len(sides["right"]) != right_count:
        return end, None
    text = "\n".join(lines[at:end])
    return end, Hunk(old, new, text, tuple(sides["left"]), tuple(sides["right"]))


def _body(lines: list[str], at: int) -> Iterator[tuple[str, str]]:
    for line in lines[at:]:
        # Some programs cut the blank off an empty context line.
        marker = line[:1] or " "
        if marker not in " +-\\":
            return
        yield marker, line[1:]


def numbered(text: str) -> list[dict[Side, int]]:
    r"""Return, for each line of a file's hunks, its number on the sides that have it.

    The index is GitHub's position: 0 is the first hunk's header, and each line below counts, later headers
    and "\ No newline" included (GitHub REST API, "Create a review comment for a pull request").
    """
    found: list[dict[Side, int]] = []
    left = right = 0
    for line in text.split("\n"):
        here: dict[Side, int] = {}
        if header := _HEADER.match(line):
            left, right = int(header[1]), int(header[3])
        else:
            # Some programs cut the blank off an empty context line.
            marker = line[:1] or " "
            if marker in " -":
                here["left"], left = left, left + 1
            if marker in " +":
                here["right"], right = right, right + 1
        found.append(here)
    return found


def positions(diff: bytes) -> dict[str, list[dict[Side, int]]]:
    """Return `numbered` of each file of a git diff that has hunks, by its old and its new name."""
    found: dict[str, list[dict[Side, int]]] = {}
    for old, new, body in parts(diff):
        rows = numbered(decode(body).removesuffix("\n")) if body else []
        found.update({name: rows for name in (old, new) if name and rows})
    return found
