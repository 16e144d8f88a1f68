"""From raw output to a Review: parse, normalise, and say in warnings what was unusual."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.errors import outside_failure
from ..core.model import Review
from ..host import digest
from ..host.programs import filling, private_folder
from ..text.diffs import DiffMap
from .formats import HeadFiles, ParseContext, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ..core.model import ReviewComment
    from ..core.reviewer import ReviewTask
    from .formats import Parsed

    InDiff = Callable[[str, str, tuple[int, int] | None], bool]


def normalise(comments: Iterable[ReviewComment], *, in_diff: InDiff) -> tuple[ReviewComment, ...]:
    """Give every comment its flags and a stable id; as many come out as go in, in the same order.

    ``in_diff`` gets a path, a side and lines; None asks for the file as a whole. An id depends on the
    comment's content alone; equal comments are numbered in order.
    """
    return identified(flagged(comments, in_diff=in_diff))


def flagged(comments: Iterable[ReviewComment], *, in_diff: InDiff) -> tuple[ReviewComment, ...]:
    """Flag what lies ``outside-diff``, lines that only the other side shows, and every ``duplicate``."""
    seen: set[tuple[object, ...]] = set()
    result = []
    for comment in comments:
        flags = list(comment.flags)
        if comment.path is not None and "outside-tree" not in flags:
            flags += _misplaced(comment, comment.path, in_diff)
        same = (comment.path, comment.lines, comment.side, " ".join(comment.body.split()).casefold())
        if same in seen:
            flags.append("duplicate")
        seen.add(same)
        result.append(replace(comment, flags=tuple(dict.fromkeys(flags))))
    return tuple(result)


def _misplaced(comment: ReviewComment, path: str, in_diff: InDiff) -> list[str]:
    if in_diff(path, comment.side, comment.lines):
        return []
    other = "left" if comment.side == "right" else "right"
    elsewhere = comment.lines is not None and in_diff(path, other, comment.lines)
    return ["outside-diff", "other-side"] if elsewhere else ["outside-diff"]


def identified(comments: Iterable[ReviewComment]) -> tuple[ReviewComment, ...]:
    """Give ids made of the content; the second equal comment ends in ``-2``, and so on."""
    count: Counter[str] = Counter()
    result = []
    for comment in comments:
        content = [comment.path, comment.lines, comment.side, comment.level, comment.body]
        name = digest.of([*content, comment.suggestion, comment.severity, comment.rule])[:12]
        count[name] += 1
        result.append(replace(comment, id=name if count[name] == 1 else f"{name}-{count[name]}"))
    return tuple(result)


def read_review(
    raw: bytes,
    *,
    format: str,
    task: ReviewTask,
    workspace: Path | None,
    reviewer: str,
    raw_name: str | None,
    duration: float = 0.0,
) -> Review:
    """Read a reviewer's raw output as a review.

    Args:
        raw: the output.
        format: a name of `formats.PARSERS`.
        task: what was reviewed.
        workspace: the path under which the tool saw the repository, if that is known.
        reviewer: its short name.
        raw_name: the file in the task's folder that holds ``raw``.
        duration: seconds that the tool took.

    Raises:
        ReviewerError: if the output is empty or unreadable.
        InfraError: if no copy of the workspace can be made to look things up in, or ``reviewer-outside``.
    """
    diff = DiffMap(task.diff)
    with pristine(task) as head:
        parsed = parse(raw, format, ParseContext(workspace, head, diff.removed, task.diff))
        if parsed.outside:
            raise outside_failure("reviewer", reviewer, parsed.outside)
        return review_of(
            parsed, task=task, diff=diff, head=head, reviewer=reviewer, raw_name=raw_name, duration=duration
        )


def review_of(
    parsed: Parsed,
    *,
    task: ReviewTask,
    diff: DiffMap,
    head: HeadFiles,
    reviewer: str,
    raw_name: str | None,
    duration: float,
) -> Review:
    """Make a review of what was parsed: comments get flags and ids, and what is unusual is a warning.

    Raises:
        InfraError: if no copy of the workspace can be made to look things up in.
    """
    comments = [_current_name(comment, diff) for comment in parsed.comments]
    if task.repository:
        comments = [_beyond(comment, head) for comment in comments]
    found = normalise(comments, in_diff=task.shows)
    return Review(
        comments=found,
        reviewer=reviewer,
        raw=raw_name,
        warnings=(*parsed.warnings, *diff.notes, *flag_warnings(found)),
        duration=duration,
        usage=parsed.usage,
        noted=parsed.noted,
    )


@contextmanager
def pristine(task: ReviewTask) -> Iterator[HeadFiles]:
    """Give the files of head, from a copy that no tool has touched; made only if a file is asked for."""
    with ExitStack() as stack:

        def provide() -> Path:
            folder = stack.enter_context(private_folder())
            if not task.repository:
                return folder  # no file is known
            with filling(folder):
                task.checkout(folder / "tree")
            return folder / "tree"

        yield HeadFiles(provide)


def flag_warnings(comments: Sequence[ReviewComment]) -> tuple[str, ...]:
    """Count the flags of a review's comments, one line each."""
    counts = Counter(flag for comment in comments for flag in comment.flags)
    return tuple(f"{n} of {len(comments)} comments: {flag}" for flag, n in sorted(counts.items()))


def _current_name(comment: ReviewComment, diff: DiffMap) -> ReviewComment:
    """The old path of a renamed file is the same file: head's side is spoken of under head's name."""
    new = diff.renames.get(comment.path or "")
    if new is None or comment.side == "left":
        return comment
    return replace(comment, path=new, flags=(*comment.flags, "old-name"))


def _beyond(comment: ReviewComment, head: HeadFiles) -> ReviewComment:
    if (
        comment.path is None
        or comment.lines is None
        or comment.side == "left"
        or "outside-tree" in comment.flags
    ):
        return comment
    count = head.line_count(comment.path)
    if count is None or comment.lines[1] <= count:
        return comment
    return replace(comment, flags=(*comment.flags, "beyond-file"))
