"""From what a user names to a reviewer."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.registry import origin
from ..core.reviewer import REVIEWERS, ReviewerKind
from ..core.settings import Settings
from ..text.printable import printable
from .host import check

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

    from ..core.enclosure import Enclosure
    from ..core.reviewer import Reviewer

    Make = Callable[[str, Settings, Path | None, Enclosure | None], Reviewer]

_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_WAYS = (
    "Name it as human, human:bare, none, cmd:PROGRAM ARGUMENTS, file:reviews/{instance}.json, "
    "module:attribute, llm:none, llm:bm25, llm:embedding or llm:agent."
)


class _Own(ReviewerKind):
    """A reviewer of this package."""

    def __init__(self, make: Make, *, runs_program: bool = False) -> None:
        self._make = make
        self.runs_program = runs_program

    def make(
        self, argument: str, settings: Settings, run: Path | None, enclosure: Enclosure | None
    ) -> Reviewer:
        return self._make(argument, settings, run, enclosure)


def _human(argument: str, *_rest: object) -> Reviewer:
    from .builtin import HumanReviewer

    if argument not in ("", "bare"):
        raise _refused(f"human:{argument}", f"'human' takes no {printable(argument)!r}. {_WAYS}")
    return HumanReviewer(suggestions=not argument)


def _none(argument: str, *_rest: object) -> Reviewer:
    from .builtin import NoReviewer

    if argument:
        raise _refused(f"none:{argument}", f"'none' takes no {printable(argument)!r}. {_WAYS}")
    return NoReviewer()


def _command(template: str, settings: Settings, run: Path | None, enclosure: Enclosure | None) -> Reviewer:
    from .command import command_reviewer

    if not template:
        raise _refused("cmd:", f"nothing follows 'cmd'. {_WAYS}")
    return command_reviewer(template, settings, Path.cwd(), enclosure)


def _file(template: str, settings: Settings, *_rest: object) -> Reviewer:
    from .builtin import file_reviewer

    if not template:
        raise _refused("file:", f"nothing follows 'file'. {_WAYS}")
    return file_reviewer(template, settings, Path.cwd())


def _llm(mode: str, settings: Settings, run: Path | None, *_rest: object) -> Reviewer:
    from .llm import make_llm_reviewer

    return make_llm_reviewer(f"llm:{mode}", settings, run)


HUMAN, NONE, FILE, LLM = _Own(_human), _Own(_none), _Own(_file), _Own(_llm)
COMMAND = _Own(_command, runs_program=True)


def load(
    spec: str,
    settings: Settings | None = None,
    enclosure: Enclosure | None = None,
    run: Path | None = None,
) -> Reviewer:
    """Return the reviewer that ``spec`` names (see docs/writing-a-reviewer.md).

    Relative names are relative to the current folder. ``run`` is the folder of the run, which holds the
    budget of models. ``enclosure`` is where a program runs, if not here.

    Raises:
        UsageError: if it names nothing; says what is known, and what may have been meant.
    """
    from .python import python_reviewer

    settings = settings or Settings()
    check(settings)
    spec = spec.strip()
    word, colon, argument = spec.partition(":")
    if enclosure is not None and not (colon and word == "cmd") and word not in REVIEWERS.foreign():
        raise _not_a_program(spec)
    if word in REVIEWERS.own:
        return _made(word, argument.strip(), settings, run, enclosure)
    if _DRIVE.match(spec) or (not colon and ("/" in spec or "\\" in spec)):
        raise _refused(
            spec,
            f"this is a path. Write cmd:{printable(spec)} to run a program, or file:… for reviews made "
            "elsewhere.",
        )
    if (entry := REVIEWERS.entry(word)) is not None:
        versioned = settings
        if settings.reviewer_version is None and entry.dist is not None and not _editable(entry):
            # An installed release vouches for its code, unless it is installed to be edited.
            versioned = replace(settings, reviewer_version=entry.dist.version)
        found = python_reviewer(word, entry.value, versioned, Path.cwd(), origin(entry))
        if found is None:
            return _made(word, argument, settings, run, enclosure)
        if enclosure is not None:
            raise _not_a_program(spec)
        return found
    if _ATTRIBUTE.fullmatch(spec):
        found = python_reviewer(spec, spec, settings, Path.cwd())
        if found is None:
            said = "this makes reviewers: register it as an entry point (docs/writing-a-reviewer.md)"
            raise _refused(spec, said)
        return found
    raise _unknown(spec)


def _made(
    word: str, argument: str, settings: Settings, run: Path | None, enclosure: Enclosure | None
) -> Reviewer:
    if enclosure is not None and not REVIEWERS.get(word).runs_program:
        raise _not_a_program(word)
    made = REVIEWERS.use(word, lambda kind: kind.make(argument, settings, run, enclosure))
    if not isinstance(made, str):
        return made
    if made.strip().partition(":")[0] not in REVIEWERS.own:
        raise _refused(word, f"it stands for {printable(made)!r}, which is no reviewer of this package")
    return load(made, settings, enclosure, run)


def _refused(spec: str, why: str) -> UsageError:
    return UsageError(f"--crbench-reviewer={printable(spec)}: {why}")


def _not_a_program(spec: str) -> UsageError:
    return UsageError(
        f"--crbench-reviewer-image is for programs; --crbench-reviewer={printable(spec)} is none. Write "
        "cmd:PROGRAM ARGUMENTS, or leave the image out"
    )


def _unknown(spec: str) -> UsageError:
    from ..host.programs import search_path

    known, hint = REVIEWERS.foreign(), ""
    if near := get_close_matches(spec.partition(":")[0], REVIEWERS.names(), 1):
        hint = f" Did you mean {near[0]!r}?"
    elif ":" not in spec and spec and shutil.which(spec.split()[0], path=search_path()):
        hint = f" There is a program {printable(spec.split()[0])!r}: write cmd:{printable(spec)}."
    registered = f"Registered are {', '.join(known)}." if known else "None is registered by a package."
    return UsageError(
        f"--crbench-reviewer: there is no reviewer {printable(spec)!r}.{hint} {_WAYS} {registered}"
    )


def _editable(entry: EntryPoint) -> bool:
    record = entry.dist.read_text("direct_url.json") if entry.dist is not None else None
    return record is not None and '"editable"' in record
