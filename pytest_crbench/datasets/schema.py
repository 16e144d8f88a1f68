"""The shape of ``instance.toml`` and ``dataset.toml``: strict models, published as JSON Schemas in docs/.

``python -m pytest_crbench.datasets.schema DOCS`` writes both schemas into the folder DOCS. The description
of a field is what an error message says was expected, so each is a noun phrase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Pydantic reads these annotations at run time.
from ..core.model import Category, Kind, Level, Side  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Sequence

SLUG = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
RELATIVE = r"^[^/\x00\\][^\x00\\]*$"

Slug = Annotated[str, Field(pattern=SLUG)]
Text = Annotated[str, Field(min_length=1)]
Specifier = Annotated[str, Field(min_length=1, max_length=200)]
Relative = Annotated[str, Field(pattern=RELATIVE)]
Commit = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Url = Annotated[str, Field(pattern=r"^[^-\s\x00][^\x00\n]*$")]

_COMMIT = "a full commit id (40 or 64 lower-case hex digits)"
_FOLDER = "a folder, relative to the instance's folder"
_PATCH = "a patch file (unified diff), relative to the instance's folder"
_URL = "the URL of a git repository, or a path that starts with ./ or ../, relative to the instance's folder"


def stays_inside(path: str) -> bool:
    """Whether a POSIX path leads to a place below the folder that it is relative to."""
    return not path.startswith("/") and "\0" not in path and "\\" not in path and ".." not in path.split("/")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ArtifactTable(_Strict):
    """One archive of the package index."""

    file: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+!-]*\.(tar\.gz|zip|whl)$",
        description="the file name of an archive on the index (.tar.gz, .zip or .whl)",
    )
    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="the SHA-256 of the archive, 64 lower-case hex digits"
    )


class PypiSource(_Strict):
    """Two (or three) releases of one package."""

    kind: Literal["pypi"]
    package: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        description="the name of a package on the index",
    )
    base: ArtifactTable = Field(description="a table with file and sha256")
    head: ArtifactTable = Field(description="a table with file and sha256")
    fixed: ArtifactTable | None = Field(default=None, description="a table with file and sha256")


class GitSource(_Strict):
    """Commits of one git repository."""

    kind: Literal["git"]
    url: Url = Field(description=_URL)
    base: Commit = Field(description=_COMMIT)
    head: Commit = Field(description=_COMMIT)
    fixed: Commit | None = Field(default=None, description=_COMMIT)


class GitPatchSource(_Strict):
    """A commit, and a patch that makes the head; the fixed state is a commit or another patch of base."""

    kind: Literal["git+patch"]
    url: Url = Field(description=_URL)
    base: Commit = Field(description=_COMMIT)
    patch: Relative = Field(description=_PATCH)
    fixed: Commit | None = Field(default=None, description=_COMMIT)
    fixed_patch: Relative | None = Field(
        default=None, description=_PATCH + ", that makes the fixed state from base"
    )


class TreeSource(_Strict):
    """Folders beside the instance."""

    kind: Literal["tree"]
    base: Relative = Field(description=_FOLDER)
    head: Relative = Field(description=_FOLDER)
    fixed: Relative | None = Field(default=None, description=_FOLDER)


class PullRequestTable(_Strict):
    """What the author of the change says of it."""

    title: Text = Field(description="the title of the pull request, not empty")
    body: str = Field(default="", description="the description of the pull request, as text")


class EnvironmentTable(_Strict):
    """What the hidden tests need."""

    python: Specifier = Field(default=">=3.11", description='a version specifier such as ">=3.11"')
    runner: Slug = Field(
        default="pytest", description='"pytest", or the name of a test runner that a package registers'
    )
    import_roots: list[str] = Field(
        default=["."],
        min_length=1,
        description='a list of folders of the tree that hidden tests import from, such as ["src", "."]',
    )
    install: Literal["none", "editable"] = Field(default="none", description='"none" or "editable"')
    version: str = Field(
        default="",
        pattern=r"^([0-9][A-Za-z0-9.+!_-]*)?$",
        description='the version that install = "editable" builds, if the project asks git for it: "1.2.3"',
    )
    requirements: list[str] = Field(default=[], description='a list of requirements such as ["markupsafe"]')
    network: bool = Field(
        default=False, description="true only if the hidden tests cannot do without the network"
    )


class CommentTable(_Strict):
    """What a human reviewer said, and the hidden test that stands for it, if it is more than matched."""

    id: Slug = Field(
        description="a slug (ASCII letters, digits, '.', '_', '-'; up to 80), unique in the instance"
    )
    level: Level = Field(default="inline", description='"inline", "file" or "general"')
    path: Relative | None = Field(
        default=None, description="a file of the tree: POSIX path, relative to its root"
    )
    lines: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="[first, last]: two line numbers, 1 or more, inclusive",
    )
    side: Side = Field(default="right", description='"right" (lines of head) or "left" (lines of base)')
    kind: Kind | None = Field(default=None, description='"behavioral" or "structural", where there is a test')
    category: Category = Field(description="one of the ten categories")
    body: Text = Field(description="what the reviewer says, not empty")
    suggestion: str | None = Field(default=None, description="the text that replaces exactly `lines` of head")
    test: Relative | None = Field(default=None, description="a test file, relative to the instance's folder")
    expect: str | None = Field(
        default=None,
        pattern=r"^\S{1,200}$",
        description="the class name of the exception that the test ends with at head, such as AssertionError",
    )


class InstanceFile(_Strict):
    """One pull request with what a good review must find."""

    schema_version: Literal[1] = Field(alias="schema", description="1, the version of this format")
    id: Slug = Field(
        description="a slug (ASCII letters, digits, '.', '_', '-'; up to 80), unique in the dataset"
    )
    language: Text = Field(description='the language of the change, such as "Python"')
    origin: Literal["release", "pull_request"] = Field(description='"release" or "pull_request"')
    created_at: str | None = Field(
        default=None,
        pattern=r"^\d{4}-\d{2}-\d{2}$",
        description='the day head became public, in quotes: "YYYY-MM-DD"',
    )
    canary: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
        description="a GUID, so that a leak into training data can be found",
    )
    repo: Text | None = Field(
        default=None, description="the repository or package that results are grouped by"
    )
    source: Annotated[PypiSource | GitSource | GitPatchSource | TreeSource, Field(discriminator="kind")] = (
        Field(description='a table whose kind is "pypi", "git", "git+patch" or "tree"')
    )
    pull_request: PullRequestTable = Field(description="a table with title and body")
    environment: EnvironmentTable = Field(default=EnvironmentTable(), description="a table")
    comment: list[CommentTable] = Field(min_length=1, description="one or more [[comment]] tables")
    validation: dict[str, Any] | None = Field(
        default=None, description="a table, written by `crbench validate`"
    )


class DatasetFile(_Strict):
    """A named set of instances."""

    schema_version: Literal[1] = Field(alias="schema", description="1, the version of this format")
    name: Slug = Field(
        description="a slug (ASCII letters, digits, '.', '_', '-'; up to 80): it begins every node id"
    )
    title: str = Field(default="", description="one line that says what the dataset is")
    notice: str = Field(default="", description="what every report must say of the dataset")
    instances: list[Relative] = Field(
        default=["*"],
        min_length=1,
        description='a list of instance folders or glob patterns, relative to this file; ["*"] if left out',
    )


def schemas() -> dict[str, dict[str, Any]]:
    """Return the published JSON Schemas by file name."""
    found: dict[str, dict[str, Any]] = {}
    for name, model in (("instance", InstanceFile), ("dataset", DatasetFile)):
        body = model.model_json_schema(by_alias=True, mode="validation")
        body = {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "title": f"{name}.toml"}
        found[f"{name}.schema.json"] = body
    return found


def rendered() -> dict[str, str]:
    """Return the text of each published schema by file name."""
    import json

    return {name: json.dumps(body, indent=2, ensure_ascii=False) + "\n" for name, body in schemas().items()}


def main(arguments: Sequence[str]) -> int:
    """Write the schemas into the folder that is the one argument; return an exit status."""
    import sys
    from pathlib import Path

    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write("usage: python -m pytest_crbench.datasets.schema DOCS (an existing folder)\n")
        return 2
    for name, text in rendered().items():
        (Path(arguments[0]) / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
