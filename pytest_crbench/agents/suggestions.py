"""Applies the suggestions of the comments to exactly the lines they name, and nothing else.

The rules: in review order, a suggestion that shares a line with an earlier one is skipped, an identical one
is applied once; of several blocks in one comment the first counts; whatever cannot be applied is skipped with
a warning and changes nothing. Deterministic; needs no model, no key and no sandbox.
"""

from __future__ import annotations

import re
import shutil
import stat
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..core.model import Revision
from ..host import trees
from ..host.trees import writable_copy
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.agent import AgentTask
    from ..core.model import ReviewComment

_BOM = b"\xef\xbb\xbf"


class UnfitError(Exception):
    """A replacement that cannot be made in this file; the message says why."""


@dataclass(frozen=True)
class Edit:
    """Replace lines ``first`` to ``last`` (1-based, inclusive) by ``text``; "" deletes them.

    A line end at the end of ``text`` does not count: with or without it, "a" is one line. A line end alone is
    one empty line.
    """

    first: int
    last: int
    text: str

    def __post_init__(self) -> None:
        # Bodies of web forms come with CRLF whatever the file has.
        text = re.sub(r"\r+(\n|\Z)", r"\1", self.text).removesuffix("\n")
        object.__setattr__(self, "text", f"{text}\n" if self.text else "")

    def overlaps(self, other: Edit) -> bool:
        """Whether both replace a line."""
        return self.first <= other.last and other.first <= self.last


def check(data: bytes, edit: Edit) -> None:
    """Make sure that an edit can be made in a file.

    Raises:
        UnfitError: no such lines, a binary file, or text that the file's encoding cannot take.
    """
    if b"\0" in data:
        raise UnfitError("the file is binary")
    count = _line_count(data)
    if not 1 <= edit.first <= edit.last:
        raise UnfitError(f"lines {edit.first}-{edit.last} are no range")
    if edit.last > count:
        raise UnfitError(f"lines {edit.first}-{edit.last} are beyond the end (the file has {count})")
    try:
        edit.text.encode()
        if not edit.text.isascii():
            data.decode()
    except UnicodeEncodeError:
        raise UnfitError("the suggestion holds a lone surrogate") from None
    except UnicodeDecodeError:
        raise UnfitError("the file is not UTF-8 and the suggestion is not ASCII") from None


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return ``data`` with ``edits`` made, bottom-up; they passed `check` and do not overlap."""
    bom, lines = _split(data)
    for edit in sorted(edits, key=lambda e: e.first, reverse=True):
        lines[edit.first - 1 : edit.last] = _replacement(lines, edit)
    return bom + b"".join(lines)


def _replacement(lines: Sequence[bytes], edit: Edit) -> list[bytes]:
    if not edit.text:
        return []
    end = _line_end(lines, edit)
    made = [line.encode() + end for line in edit.text[:-1].split("\n")]
    if not lines[edit.last - 1].endswith(b"\n"):
        made[-1] = made[-1][: -len(end)]
    return made


def _line_end(lines: Sequence[bytes], edit: Edit) -> bytes:
    """Return the line end of what is replaced, else that of the line before it, else LF."""
    for line in (lines[edit.first - 1], *lines[max(edit.first - 2, 0) : edit.first - 1]):
        if line.endswith(b"\n"):
            return b"\r\n" if line.endswith(b"\r\n") else b"\n"
    return b"\n"


def _line_count(data: bytes) -> int:
    """How many lines `_split` would give, without making them: a review may have many suggestions."""
    marked = data == _BOM
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data) and not marked)


def _split(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return the byte order mark, which is no part of line 1, and the lines as git counts them."""
    bom = _BOM if data.startswith(_BOM) else b""
    *whole, rest = data[len(bom) :].split(b"\n")
    return bom, [*(line + b"\n" for line in whole), *([rest] if rest else [])]


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
            blank = len(line) - len(line.lstrip(" "))
            content.append(line[min(blank, len(indent)) :])
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


_VERSION = 1


@dataclass
class Plan:
    """What to change: for each path its edits, by line, none over another; what was skipped, and why."""

    root: Path
    edits: dict[str, list[Edit]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("applied", "repeated", "skipped", "without_suggestion"), 0)
    )
    _contents: dict[str, bytes] = field(default_factory=dict)

    def add(self, comment: ReviewComment) -> None:
        """Take up the suggestion of one comment, or note why not."""
        text, notes = _suggestion(comment)
        for note in notes:
            self._warn(comment, note)
        if text is None:
            self.counts["skipped" if notes else "without_suggestion"] += 1
            return
        try:
            outcome = self._take(comment, text)
        except UnfitError as error:
            self._warn(comment, f"skipped: {error}")
            outcome = "skipped"
        self.counts[outcome] += 1

    def _take(self, comment: ReviewComment, text: str) -> str:
        if comment.side == "left":
            raise UnfitError("it is about the old side, whose lines are not in head")
        if comment.path is None or comment.lines is None:
            raise UnfitError("it names no lines")
        path = _clean_path(comment.path)
        edit = Edit(*comment.lines, text)
        if path not in self._contents:
            self._contents[path] = _read_regular(self.root, path)
        check(self._contents[path], edit)
        taken = self.edits.setdefault(path, [])
        # Sorted and without overlaps: only the last one that begins in time can be in the way.
        at = bisect_right(taken, edit.last, key=lambda other: other.first)
        if at and taken[at - 1].overlaps(edit):
            other = taken[at - 1]
            if other == edit:
                return "repeated"
            raise UnfitError(
                f"{path}, lines {edit.first}-{edit.last}: an earlier suggestion changes lines "
                f"{other.first}-{other.last}"
            )
        taken.insert(at, edit)
        return "applied"

    def write(self, tree: Path) -> None:
        """Make the edits in ``tree``, a writable copy of the root; files keep their modes."""
        for path, wanted in self.edits.items():
            if not wanted:
                continue
            place = tree / path
            mode = stat.S_IMODE(place.stat().st_mode)
            place.unlink()
            place.write_bytes(apply(self._contents[path], wanted))
            place.chmod(mode)

    def _warn(self, comment: ReviewComment, what: str) -> None:
        self.warnings.append(printable(f"suggestion of comment {comment.id}: {what}"))


def plan(root: Path, comments: Iterable[ReviewComment]) -> Plan:
    """Decide which suggestions are applied to the tree at ``root``; writes nothing."""
    made = Plan(root)
    for comment in comments:
        made.add(comment)
    return made


class SuggestionsAgent:
    """The coding agent that does what suggestions say to the letter."""

    name = "suggestions"
    runs_on_clean_review = False

    def __init__(self) -> None:
        self.fingerprint: Mapping[str, Any] = {"name": self.name, "version": _VERSION}

    def revise(self, task: AgentTask) -> Revision:
        """Apply the suggestions of a review; what was skipped is in the revision's warnings.

        Raises:
            UnusableRevisionError: if the patch is too large.
            InfraError: if the disk fails.
        """
        began = time.monotonic()
        made = plan(task.head.path, task.review.comments)
        patch = _capture(task, made) if made.counts["applied"] else b""
        return Revision(
            patch=patch,
            agent=self.name,
            stop_reason="finished",
            warnings=tuple(made.warnings),
            duration=time.monotonic() - began,
            usage=dict(made.counts),
        )


def _capture(task: AgentTask, made: Plan) -> bytes:
    with trees.temporary_folder() as folder:
        tree = folder / "tree"
        try:
            writable_copy(task.head.path, tree)
            made.write(tree)
        except (OSError, shutil.Error) as error:
            raise InfraError(
                f"cannot copy {task.head.path} to {tree}: {printable(str(error))}. Free some space (TMPDIR).",
                reason="disk",
            ) from error
        return task.capture(tree)


def _suggestion(comment: ReviewComment) -> tuple[str | None, list[str]]:
    """Return the suggestion of a comment, if it has one, and what is to be said about it."""
    if comment.suggestion is not None:
        return comment.suggestion, []
    found, notes = blocks(comment.body)
    if len(found) > 1:
        notes.append(f"has {len(found)} suggestion blocks; only the first counts")
    return (found[0] if found else None), notes


def _clean_path(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise UnfitError(f"{path!r} is not a path within the repository")
    if any(part.lower() == ".git" for part in parts):
        raise UnfitError(f"{path!r} is git's own")
    return "/".join(parts)


def _read_regular(root: Path, path: str) -> bytes:
    """Read a file of the tree without following a link at any step.

    Raises:
        UnfitError: it is missing, or a link or something else on the way is no folder or file.
    """
    place = root
    parts = path.split("/")
    for depth, part in enumerate(parts, 1):
        place = place / part
        try:
            mode = place.lstat().st_mode
        except (OSError, UnicodeEncodeError):
            raise UnfitError(f"there is no file {path} in head") from None
        if stat.S_ISLNK(mode):
            raise UnfitError(f"{'/'.join(parts[:depth])} is a symbolic link")
        if depth == len(parts) and not stat.S_ISREG(mode):
            raise UnfitError(f"{path} is not a regular file")
    return place.read_bytes()
