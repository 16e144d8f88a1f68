"""The shape of AACR-Bench's files (arXiv 2601.19494), as strict models, and reading one of them.

A file is a list of pull requests with their comments. Keys that are not named here are not read. The
description of a field is what an error message says was expected.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..text import plainjson
from ..text.printable import slug
from .problems import Problems, words

# Pydantic reads these annotations at run time.
from .schema import Text, stays_inside

if TYPE_CHECKING:
    from pathlib import Path

#: GitHub's names: an owner has no underscore twice in a row, so that owner__repo has one reading.
_URL = r"^https://github\.com/[A-Za-z0-9](_?[A-Za-z0-9-])*/[A-Za-z0-9._-]+/pull/[0-9]{1,10}$"
_PARTS = re.compile(r"https://github\.com/([^/]+)/([^/]+)/pull/([0-9]+)")
_COMMIT = "a full commit id (40 lower-case hex digits)"
_NUMBER = "a line number, 1 or more"

Line = Annotated[int, Field(ge=1, le=10_000_000, description=_NUMBER)]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class _Strict(BaseModel):
    # Keys that a later release of the data adds are no fault of the file.
    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class CommentEntry(_Strict):
    """One comment, as a person or a model made it and experts judged it."""

    is_ai_comment: bool = Field(description="true or false: whether a model wrote it")
    note: str = Field(pattern=r"\S", description="the text of the comment, not empty")
    path: Text = Field(description="a file of the tree: POSIX path, relative to its root")
    side: Literal["left", "right"] = Field(description='"left" or "right"')
    source_model: str = Field(default="", description="the name of the model that wrote it, or an empty text")
    from_line: Line = Field(description=_NUMBER)
    to_line: Line = Field(description=_NUMBER)
    category: Literal[
        "Code Defect", "Maintainability and Readability", "Performance", "Security Vulnerability"
    ] = Field(description="one of the four categories")
    context: Literal["Diff Level", "File Level", "Repo Level"] = Field(description="one of the three levels")

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line, in this order also where the file has them the other way round."""
        return (min(self.from_line, self.to_line), max(self.from_line, self.to_line))

    @property
    def place(self) -> tuple[str, str, tuple[int, int]]:
        """Path, side and lines."""
        return (self.path, self.side, self.lines)


class PullRequestEntry(_Strict):
    """One pull request and its comments."""

    change_line_count: int = Field(ge=0, le=10**9, description="the number of changed lines, 0 or more")
    project_main_language: Text = Field(description="the main language of the repository")
    source_commit: Commit = Field(description=_COMMIT)
    target_commit: Commit = Field(description=_COMMIT)
    url: str = Field(
        alias="githubPrUrl",
        pattern=_URL,
        description="the address of a pull request, https://github.com/OWNER/REPO/pull/NUMBER",
    )
    comments: list[CommentEntry] = Field(description="a list of comments")

    @property
    def parts(self) -> tuple[str, str, str]:
        """Owner, repository and number."""
        found = _PARTS.fullmatch(self.url)
        assert found is not None
        return (found[1], found[2], found[3])

    @property
    def id(self) -> str:
        """The instance's id, which no other pull request has: owner, two underscores, repository, number."""
        owner, repo, number = self.parts
        return slug(f"{owner}__{repo}-{number}", 200)

    @property
    def about(self) -> dict[str, Any]:
        """What must be the same wherever the pull request is named."""
        return {
            "change_line_count": self.change_line_count,
            "project_main_language": self.project_main_language,
            "source_commit": self.source_commit,
            "target_commit": self.target_commit,
        }


def read_entries(file: Path, problems: Problems) -> list[PullRequestEntry]:
    """Read one file; what is wrong with it goes to ``problems``, and the entries that are sound come back."""
    found = _parse(file, problems)
    if not isinstance(found, list):
        if found is not None:
            problems.add(file, "", found, "a list of pull requests")
        return []
    entries: list[PullRequestEntry] = []
    first: dict[str, int] = {}
    for index, raw in enumerate(found):
        entry = _entry(file, f"[{index}]", raw, problems)
        if entry is None:
            continue
        other = first.setdefault(entry.id.casefold(), index)
        if other != index:
            where = words(f"{entry.url!r}, which [{other}] has too")
            problems.add(file, f"[{index}].githubPrUrl", where, "each pull request once in a file")
        entries.append(entry)
    return entries


def _entry(file: Path, key: str, raw: object, problems: Problems) -> PullRequestEntry | None:
    if not isinstance(raw, dict):
        problems.add(file, key, raw, "a pull request: an object with githubPrUrl, comments and so on")
        return None
    try:
        entry = PullRequestEntry.model_validate(raw)
    except ValidationError as error:
        problems.add_invalid(file, PullRequestEntry, error, within=key)
        return None
    for number, comment in enumerate(entry.comments):
        if not stays_inside(comment.path):
            expected = "a file of the tree: POSIX path, relative to its root"
            problems.add(file, f"{key}.comments[{number}].path", comment.path, expected)
    return entry


def _parse(file: Path, problems: Problems) -> Any:
    """Return the JSON value of a file; None if there is none, with the reason in ``problems``."""
    try:
        value = plainjson.parse(file.read_bytes().decode("utf-8-sig"), pairs=_object)
    except OSError as error:
        problems.add(file, "", words(error.strerror or "a read error"), "a readable file")
    except UnicodeDecodeError as error:
        problems.add(file, "", words(f"a byte that is not UTF-8 at offset {error.start}"), "UTF-8 text")
    except ValueError as error:
        problems.add(file, "", words(str(error)), "JSON")
    else:
        if value is None:
            problems.add(file, "", value, "a list of pull requests")
        return value
    return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; of a key that is there twice nobody knows which value was meant."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object with the key {twice!r} twice")
    return made
