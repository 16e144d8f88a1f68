"""The process that a ``module:attribute`` reviewer runs in: ``python -m pytest_crbench.reviewers.child``.

Arguments: ``check SPEC CWD``, or ``review SPEC REQUEST OUT``. A callable may hang, crash or exit;
here it takes only this process with it.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import OutsideFailure
from ..core.model import PullRequest, Review, ReviewComment
from ..core.reviewer import ReviewerKind
from ..core.status import OUTSIDE_EXIT
from ..text.printable import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Exit status for a callable that is not there or cannot be called; 1 is left to what it raises itself.
NOT_THERE = 3
#: Exit status for a `ReviewerKind`, which is no callable itself.
KIND = 4


class NotThereError(Exception):
    """The specification names nothing that can be called."""


def main(arguments: Sequence[str]) -> int:
    """Check that a callable is there, or call it and write what it returns as native JSON."""
    command, spec = arguments[0], arguments[1]
    request = json.loads(Path(arguments[2]).read_text("utf-8"))
    sys.path[:] = request["sys_path"]
    try:
        reviewer = find(spec)
    except NotThereError as error:
        print(error, file=sys.stderr)
        return NOT_THERE
    if command == "check":
        return KIND if isinstance(reviewer, ReviewerKind) else 0
    try:
        said = reviewer(PullRequest(**request["pull_request"]), Path(request["workspace"]))
        document = native(said)
    except OutsideFailure as error:
        print(error, file=sys.stderr)
        return OUTSIDE_EXIT
    Path(arguments[3]).write_text(clean(json.dumps(document, ensure_ascii=False, indent=1)), "utf-8")
    return 0


def find(spec: str) -> Callable[[PullRequest, Path], Any]:
    """Import ``module:attribute``; a class, or a factory without parameters, is called to get the reviewer.

    Raises:
        NotThereError: if there is no such thing. What the module itself raises while it is imported goes on.
    """
    module_name, _, attribute = spec.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise NotThereError(f"there is no module {error.name!r}") from error
        raise
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotThereError(f"{getattr(found, '__name__', found)!r} has no attribute {part!r}")
        found = getattr(found, part)
    if inspect.isclass(found) or (inspect.isroutine(found) and not inspect.signature(found).parameters):
        found = found()
    if not callable(found) and not isinstance(found, ReviewerKind):
        raise NotThereError(f"{spec!r} is a {type(found).__name__}, which cannot be called")
    return found  # type: ignore[no-any-return]


#: What a callable may say beside its comments (docs/writing-a-reviewer.md).
_KEPT = ("usage", "outside_failure", "error", "errors", "completed")


def native(said: Any) -> dict[str, Any]:
    """Turn what a callable returned into our own JSON.

    Raises:
        TypeError: if it is neither a Review nor an iterable of comments; None is no clean review.
    """
    document: dict[str, Any] = {}
    if isinstance(said, Review):
        document["usage"] = dict(said.usage)
        said = said.comments
    elif isinstance(said, dict) and ("comments" in said or said.get("outside_failure")):
        document = {key: said[key] for key in _KEPT if key in said}
        said = said.get("comments", ())
    if said is None or isinstance(said, str | bytes | dict) or not hasattr(said, "__iter__"):
        raise TypeError(
            f"the reviewer returned {type(said).__name__}; a Review or an iterable of ReviewComment (or of "
            "dicts) is expected, an empty one for no findings"
        )
    document["comments"] = [_plain(comment, number) for number, comment in enumerate(said)]
    return document


def _plain(comment: Any, number: int) -> dict[str, Any]:
    if isinstance(comment, dict):
        return comment
    if isinstance(comment, ReviewComment):
        fields = asdict(comment)
        return {
            key: value for key, value in fields.items() if value is not None and key not in ("id", "flags")
        }
    raise TypeError(f"comment {number} is a {type(comment).__name__}, no ReviewComment and no dict")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
