"""What every review format shares: the context it is read in, and what reading gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...core.errors import ReviewerError
from ...text.hunks import positions
from .edits import Lines

if TYPE_CHECKING:
    from pathlib import Path

    from ...core.model import ReviewComment, Side

#: Larger outputs are refused before any parser sees them.
INPUT_LIMIT = 16 * 1024 * 1024
#: No system has longer paths, in characters.
PATH_LIMIT = 4096
#: Comments of one review that are read; more are refused, not dropped.
COMMENT_LIMIT = 20_000
#: Characters that the comments of one review may hold together: a short input can name one long text often.
TEXT_LIMIT = 64 * 1024 * 1024


class Unreadable(ReviewerError):
    """Output that is not what its format promises; the only error that a parser raises."""

    def __init__(self, message: str, *, reason: str = "unreadable") -> None:
        super().__init__(message, reason=reason)


class HeadFiles:
    """The files of the pull request's head, for telling paths and expressing edits as whole lines.

    ``provide`` returns the root of a pristine head tree; it is called once, and only if a file is asked for.
    """

    def __init__(self, provide: Callable[[], Path]) -> None:
        self._provide = provide
        self._texts: dict[str, str | None] = {}
        self._lines: dict[str, Lines | None] = {}
        self._found: dict[str, Path | None] = {}

    @cached_property
    def root(self) -> Path:
        """The tree's root on the host."""
        return self._provide().resolve()

    def exists(self, path: str) -> bool:
        """Whether head has a regular file (or a link to one inside the tree) at this relative path."""
        return self._find(path) is not None

    def text(self, path: str) -> str | None:
        """The file's text with its line ends as they are; None if there is none or it is not UTF-8."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def line_count(self, path: str) -> int | None:
        """How many lines the file has; None if it cannot be read as text."""
        lines = self.lines(path)
        return None if lines is None else lines.count

    def lines(self, path: str) -> Lines | None:
        """The file's text with the places of its lines; None if it cannot be read as text."""
        if path not in self._lines:
            text = self.text(path)
            self._lines[path] = None if text is None else Lines(text)
        return self._lines[path]

    def _find(self, path: str) -> Path | None:
        if path not in self._found:
            self._found[path] = self._look(path)
        return self._found[path]

    def _look(self, path: str) -> Path | None:
        if not 0 < len(path) <= PATH_LIMIT or "\0" in path or path.startswith("/") or ".." in path.split("/"):
            return None
        try:
            found = (self.root / path).resolve()
            inside = found.is_relative_to(self.root) and found.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, not encodable, a loop of links
            return None
        return found if inside else None

    def _read(self, path: str) -> str | None:
        found = self._find(path)
        try:
            return None if found is None else found.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


class Room:
    """Counts the comments of one review and their texts while they are read, so that a flood ends early."""

    def __init__(self, limit: int = COMMENT_LIMIT) -> None:
        self.limit = limit
        self.taken = 0
        self.characters = 0

    def take(self) -> None:
        """Count one comment.

        Raises:
            Unreadable: if that is one too many.
        """
        self.taken += 1
        if self.taken > self.limit:
            raise Unreadable(
                f"the review has more than the {self.limit} comments that are read. Let the tool report only "
                "what is about the change."
            )

    def add(self, text: str | None) -> None:
        """Count the text of a comment or of a suggestion.

        Raises:
            Unreadable: if all together are too long.
        """
        self.characters += len(text or "")
        if self.characters > TEXT_LIMIT:
            raise Unreadable(
                f"the comments of the review hold more than {TEXT_LIMIT} characters together, more than are "
                "read. Let the tool report only what is about the change."
            )


@dataclass(frozen=True)
class ParseContext:
    """Where a review was made.

    ``root`` is the workspace's path as the tool saw it, if that is known: absolute
    paths below it are the repository's. ``removed`` are the paths that the pull request deletes, ``diff`` is
    its ``git diff``, which places comments that name a position in it.
    """

    root: Path | None
    head: HeadFiles
    removed: tuple[str, ...] = ()
    diff: bytes = b""
    room: Room = field(default_factory=Room)

    @cached_property
    def positions(self) -> Mapping[str, Sequence[Mapping[Side, int]]]:
        """The places of the diff as GitHub counts them (`text.hunks.positions`)."""
        return positions(self.diff)

    def known(self, path: str) -> bool:
        """Whether either side of the pull request is known to have this path."""
        return path in self.removed or self.head.exists(path)


class Remark(NamedTuple):
    """What a parser has to say of an output, in words; ``times`` counts it by ``kind``.

    A remark without a kind gives nothing up, and is not counted.
    """

    text: str
    kind: str = ""
    times: int = 1


@dataclass(frozen=True)
class Parsed:
    """What a parser found, and what it had to give up or found unusual."""

    comments: tuple[ReviewComment, ...]
    remarks: tuple[Remark, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    #: What failed outside the tool, in its own words: then there is no review.
    outside: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The remarks in words."""
        return tuple(remark.text for remark in self.remarks)

    @property
    def noted(self) -> Mapping[str, int]:
        """The remarks, counted by kind."""
        counts: Counter[str] = Counter()
        for remark in self.remarks:
            if remark.kind:
                counts[remark.kind] += remark.times
        return dict(counts)


#: Reads raw output; raises `Unreadable` and nothing else.
Parser: TypeAlias = Callable[[bytes, ParseContext], Parsed]
