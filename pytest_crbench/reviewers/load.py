"""From what a user names to a reviewer."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..text.printable import printable
from .host import ReviewerOptions

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ..core.enclosure import Enclosure
    from ..core.reviewer import Reviewer

__all__ = ["GROUP", "ReviewerOptions", "load"]

#: Entry points of this group are reviewers under their names.
GROUP = "pytest_crbench.reviewers"
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_WAYS = (
    "Name it as human, human:bare, none, cmd:PROGRAM ARGUMENTS, file:reviews/{instance}.json, "
    "module:attribute, llm:none, llm:bm25, llm:embedding or llm:agent."
)


def is_driven_by_model(spec: str) -> bool:
    """Whether a spec names a reviewer that needs a model, which `load` does not make."""
    return spec.strip().partition(":")[0] == "llm"


def load(spec: str, options: ReviewerOptions | None = None, enclosure: Enclosure | None = None) -> Reviewer:
    """Return the reviewer that ``spec`` names (see docs/writing-a-reviewer.md).

    Relative names are relative to the current folder. ``enclosure`` is where a program runs, if not here.

    Raises:
        UsageError: if it names nothing; says what is known, and what may have been meant.
    """
    from .formats import PARSERS

    options = options or ReviewerOptions()
    options.check(tuple(PARSERS))
    spec = spec.strip()
    kind, colon, rest = spec.partition(":")
    if enclosure is not None and not (colon and kind == "cmd"):
        raise UsageError(
            f"--crbench-reviewer-image is for programs; --crbench-reviewer={printable(spec)} is none. Write "
            "cmd:PROGRAM ARGUMENTS, or leave the image out"
        )
    if spec in ("human", "human:bare", "none"):
        return _builtin(spec)
    if colon and kind in ("human", "none"):
        raise UsageError(
            f"--crbench-reviewer={printable(spec)}: {kind!r} takes no {printable(rest)!r}. {_WAYS}"
        )
    if kind in ("cmd", "file"):
        if not rest.strip():
            raise UsageError(f"--crbench-reviewer={printable(spec)}: nothing follows {kind!r}. {_WAYS}")
        return _template(kind, rest.strip(), options, enclosure)
    if _DRIVE.match(spec) or (not colon and ("/" in spec or "\\" in spec)):
        raise UsageError(
            f"--crbench-reviewer={printable(spec)}: this is a path. Write cmd:{printable(spec)} to run "
            "a program, or file:… for reviews made elsewhere."
        )
    if _ATTRIBUTE.fullmatch(spec):
        from .python import python_reviewer

        return python_reviewer(spec, spec, options, Path.cwd())
    return _registered(spec, options)


def _builtin(spec: str) -> Reviewer:
    from .builtin import HumanReviewer, NoReviewer

    return NoReviewer() if spec == "none" else HumanReviewer(suggestions=spec == "human")


def _template(kind: str, template: str, options: ReviewerOptions, enclosure: Enclosure | None) -> Reviewer:
    if kind == "cmd":
        from .command import command_reviewer

        return command_reviewer(template, options, Path.cwd(), enclosure)
    from .builtin import file_reviewer

    return file_reviewer(template, options, Path.cwd())


def _registered(name: str, options: ReviewerOptions) -> Reviewer:
    from ..host.programs import search_path
    from .python import python_reviewer

    known = _entry_points()
    found = known.get(name)
    if found is not None:
        if options.version is None and found.dist is not None:
            # An installed release vouches for its code, unless it is installed to be edited.
            options = replace(options, version=None if _editable(found) else found.dist.version)
        return python_reviewer(name, found.value, options, Path.cwd())
    names = ["human", "none", *known]
    hint = ""
    prefix = re.match(r"(\w+):", name)
    if near := get_close_matches(name.partition(":")[0], [*names, "cmd", "file"], 1):
        hint = f" Did you mean {near[0]!r}?"
    elif prefix is None and name and shutil.which(name.split()[0], path=search_path()):
        hint = f" There is a program {printable(name.split()[0])!r}: write cmd:{printable(name)}."
    registered = (
        f"Registered are {', '.join(sorted(known))}." if known else "None is registered by a package."
    )
    raise UsageError(
        f"--crbench-reviewer: there is no reviewer {printable(name)!r}.{hint} {_WAYS} {registered}"
    )


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _editable(entry: EntryPoint) -> bool:
    record = entry.dist.read_text("direct_url.json") if entry.dist is not None else None
    return record is not None and '"editable"' in record
