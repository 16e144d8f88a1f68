"""Comments and tasks for tests of matching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_crbench.core.matching import Matching, MatchTask
from pytest_crbench.core.model import ReviewComment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_crbench.core.model import Instance


def comment(
    name: str, lines: Any = (10, 12), body: str = "Off by one.", path: str | None = "a.py", **more: Any
) -> ReviewComment:
    """A comment; ``lines`` may be one number."""
    return ReviewComment(name, body, path, (lines, lines) if isinstance(lines, int) else lines, **more)


def task(
    references: Iterable[ReviewComment],
    comments: Iterable[ReviewComment],
    rejected: Iterable[ReviewComment] = (),
    renames: Mapping[str, str] | None = None,
) -> MatchTask:
    """A review of one pull request."""
    return MatchTask(
        "pull", tuple(references), tuple(rejected), tuple(comments), renames or {}, lambda _line: None
    )


def task_of(instance: Instance, comments: Iterable[ReviewComment]) -> MatchTask:
    """A review of an instance of a dataset."""
    return task([c.comment for c in instance.checks], comments, instance.rejected)


def matched(result: Matching) -> list[tuple[str, str]]:
    """The pairs of a result."""
    return [(m.reference, m.comment) for m in result.matches]
