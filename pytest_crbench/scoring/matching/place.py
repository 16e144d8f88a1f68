"""Where comments are, and which of them are at one place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...core.errors import UsageError
from ...core.matching import LONGEST, lines_of
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...core.model import ReviewComment, Side

FileLevel = Literal["nothing", "file"]
#: The distance of two comments that only share a file: more than any tolerance.
FILE_DISTANCE = 1_000_000
_MOST_TOLERANCE = 10_000


class Candidate(NamedTuple):
    """A reference and a comment, by id, that are at one place; ``distance`` in lines."""

    reference: str
    comment: str
    distance: int


@dataclass(frozen=True)
class Rules:
    """What counts as one place.

    ``line_tolerance``: lines from the end of one range to the beginning of the next that are still one
    place; neighbouring lines are 1 apart. ``file_level``: what comments without lines match.

    Raises:
        UsageError: if the tolerance is so large that lines mean nothing.
    """

    line_tolerance: int = 1
    file_level: FileLevel = "nothing"

    def __post_init__(self) -> None:
        if not 0 <= self.line_tolerance <= _MOST_TOLERANCE:
            raise UsageError(
                f"--crbench-matching line-tolerance={printable(str(self.line_tolerance), 40)}: expected "
                f"at most {_MOST_TOLERANCE:,}; file-level=file matches comments without lines"
            )


class Place(NamedTuple):
    """A place that can be looked up: ``path`` on ``side``, and the file's path at head.

    ``lines`` is None for a comment about its whole file.
    """

    path: str
    side: Side
    file: str
    lines: tuple[int, int] | None


class Renames:
    """Paths of files that a pull request renames, on both sides; made of the head path of each base path."""

    def __init__(self, head_of: Mapping[str, str]) -> None:
        self._head_of = dict(head_of)
        self._base_of = {head: base for base, head in sorted(head_of.items(), reverse=True)}

    def on_side(self, path: str, side: Side) -> str:
        """Return the name that the file has on ``side``, whichever of its names ``path`` is."""
        known, others = (self._base_of, self._head_of) if side == "right" else (self._head_of, self._base_of)
        # A path that is a name on this side means that file, also where the other side had one of that name.
        return path if path in known else others.get(path, path)

    def at_head(self, path: str, side: Side) -> str:
        """Return the head path of the file that a comment on ``side`` means by ``path``."""
        here = self.on_side(path, side)
        return here if side == "right" else self._head_of.get(here, here)


def place_of(comment: ReviewComment, renames: Renames) -> Place | None:
    """Return where a comment is; None if it names no file."""
    if comment.path is None or not comment.path.strip():
        return None
    path = renames.on_side(comment.path, comment.side)
    return Place(path, comment.side, renames.at_head(comment.path, comment.side), lines_of(comment))


def distance(one: tuple[int, int], other: tuple[int, int]) -> int:
    """Lines from the end of the one range to the beginning of the other; 0 if they share a line."""
    return max(0, one[0] - other[1], other[0] - one[1])


def is_placeless(comment: ReviewComment) -> bool:
    """Whether a comment names no lines of a file that could be looked at."""
    return comment.path is None or not comment.path.strip() or lines_of(comment) is None


def candidates(
    references: Sequence[ReviewComment],
    comments: Iterable[ReviewComment],
    renames: Mapping[str, str],
    rules: Rules,
) -> list[Candidate]:
    """Return every pair of a reference and a comment that are at one place, in the order of the comments.

    Takes time in proportion to the comments and the pairs, not to their product.
    """
    known = Renames(renames)
    index = _Index(references, known, rules)
    return [pair for comment in comments for pair in index.near(comment)]


class _Index:
    """References by file, side and first line."""

    def __init__(self, references: Sequence[ReviewComment], renames: Renames, rules: Rules) -> None:
        self._renames, self._rules = renames, rules
        placed: dict[tuple[str, Side], list[tuple[int, int, str]]] = defaultdict(list)
        #: By file: the references without lines, and all.
        self._whole: dict[str, list[str]] = defaultdict(list)
        self._in_file: dict[str, list[str]] = defaultdict(list)
        for reference in references:
            place = place_of(reference, renames)
            if place is None:
                continue
            self._in_file[place.file].append(reference.id)
            if place.lines is None:
                self._whole[place.file].append(reference.id)
            else:
                placed[place.path, place.side].append((*place.lines, reference.id))
        self._placed = {where: sorted(found) for where, found in placed.items()}
        self._firsts = {where: [first for first, _, _ in found] for where, found in self._placed.items()}

    def near(self, comment: ReviewComment) -> Iterator[Candidate]:
        """Yield the pairs of one comment."""
        place = place_of(comment, self._renames)
        if place is None:
            return
        if place.lines is not None:
            yield from self._by_lines(comment.id, place, place.lines)
        if self._rules.file_level == "file":
            # A comment with lines meets only what has none; a comment without lines meets all.
            named = self._in_file if place.lines is None else self._whole
            for reference in named.get(place.file, ()):
                yield Candidate(reference, comment.id, FILE_DISTANCE)

    def _by_lines(self, comment: str, place: Place, lines: tuple[int, int]) -> Iterator[Candidate]:
        where = (place.path, place.side)
        firsts = self._firsts.get(where)
        if not firsts:
            return
        first, last = lines
        tolerance = self._rules.line_tolerance
        # No reference here spans more than LONGEST lines, so none that begins earlier reaches this far.
        start = bisect_left(firsts, first - tolerance - LONGEST + 1)
        end = bisect_right(firsts, last + tolerance)
        for low, high, reference in self._placed[where][start:end]:
            away = distance((low, high), lines)
            if away <= tolerance:
                yield Candidate(reference, comment, away)
