"""One instance folder: ``instance.toml`` and its hidden tests become an `Instance`."""

from __future__ import annotations

import ast
import os
import sys
import tomllib
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from ..core.model import Artifact, Check, Environment, Instance, ReviewComment, Source
from ..core.runner import RUNNERS
from ..host import digest
from ..text.printable import printable
from .problems import Problems, words
from .schema import (
    CommentTable,
    EnvironmentTable,
    GitPatchSource,
    GitSource,
    InstanceFile,
    PypiSource,
    TreeSource,
    stays_inside,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.runner import Runner

Model = TypeVar("Model", bound=BaseModel)


def read_toml(file: Path, model: type[Model], problems: Problems) -> Model | None:
    """Read and validate one TOML file; None if it cannot be used, with the reasons in ``problems``."""
    try:
        table = tomllib.loads(file.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        problems.add(file, "", words(f"a byte that is not UTF-8 at offset {error.start}"), "UTF-8 text")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, absurd nesting
        problems.add(file, "", words(str(error)), "valid TOML")
    except OSError as error:
        problems.add(file, "", words(error.strerror or "a read error"), "a readable file")
    else:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            problems.add_invalid(file, model, error)
    return None


def load_instance(folder: Path, dataset: str, problems: Problems) -> Instance | None:
    """Load the instance in ``folder``; None if it is broken, with the reasons in ``problems``.

    The digest of the instance covers all of its file but ``[validation]`` and ``expect``, its tests, and the
    content of the folders and patches that it names. The digest of a check covers what decides its verdict:
    test, comment, language, base, head and environment (not ``fixed``, nor what results are grouped by).
    """
    file = folder / "instance.toml"
    data = read_toml(file, InstanceFile, problems)
    if data is None:
        return None
    before = len(problems.found)
    _check_date(file, data, problems)
    _check_environment(file, data.environment, problems)
    source, contents = _source(file, data, problems)
    tests = _comments(file, data, problems)
    if len(problems.found) == before and source.kind != "git+patch":
        base, head = _sides(source, contents)
        if base == head:
            problems.add(file, "source.head", words("what source.base is"), "another state than base")
    if len(problems.found) > before:
        return None
    environment = Environment(
        python=data.environment.python,
        runner=data.environment.runner,
        import_roots=tuple(data.environment.import_roots),
        install=data.environment.install,
        requirements=tuple(data.environment.requirements),
        as_of=data.created_at,
        network=data.environment.network,
        version=data.environment.version,
    )
    written = data.model_dump(
        mode="json",
        by_alias=True,
        exclude={"validation": True, "comment": {"__all__": {"expect"}}},
        exclude_defaults=True,
    )
    decides = {
        "language": data.language,
        "source": {k: v for k, v in written["source"].items() if not k.startswith("fixed")},
        "contents": {k: v for k, v in contents.items() if not k.startswith("fixed")},
        "environment": environment.to_json(),
    }
    return Instance(
        dataset=dataset,
        id=data.id,
        language=data.language,
        origin=data.origin,
        source=source,
        title=data.pull_request.title,
        body=data.pull_request.body,
        environment=environment,
        checks=tuple(_check(c, t, decides) for c, t in zip(data.comment, tests, strict=True)),
        digest=digest.of({"file": written, "tests": tests, "contents": contents}),
        created_at=data.created_at,
        repo=data.repo or source.package,
        request_digest=digest.of(
            {
                "source": decides["source"],
                "contents": decides["contents"],
                "pull_request": [data.pull_request.title, data.pull_request.body, data.language],
            }
        ),
        path=folder,
        sides=digest.of(_sides(source, contents)),
    )


def _sides(source: Source, contents: dict[str, str]) -> list[object]:
    """Return what makes base and head: their content or ids, not where they come from."""
    if source.kind == "tree":
        return [contents["base"], contents["head"]]
    if source.kind == "git+patch":
        return [source.base, contents["patch"]]
    return [getattr(side, "sha256", side) for side in (source.base, source.head)]


def _check(table: CommentTable, test: str, decides: dict[str, Any]) -> Check:
    comment = ReviewComment(
        id=table.id,
        body=table.body,
        path=table.path,
        lines=cast("tuple[int, int]", tuple(table.lines)) if table.lines else None,
        side=table.side,
        level=table.level,
        suggestion=table.suggestion,
    )
    return Check(
        id=table.id,
        comment=comment,
        kind=table.kind,
        category=table.category,
        test=test,
        digest=digest.of({**decides, "comment": asdict(comment), "test": test}),
        expect=table.expect or "",
    )


def _check_date(file: Path, data: InstanceFile, problems: Problems) -> None:
    if data.created_at is None:
        return
    try:
        day = date.fromisoformat(data.created_at)
    except ValueError:
        problems.add(file, "created_at", data.created_at, "a day that exists, as YYYY-MM-DD")
        return
    # Somewhere on earth it is tomorrow already.
    if day > datetime.now(UTC).date() + timedelta(days=1):
        problems.add(file, "created_at", data.created_at, "a day that has come")


def _check_environment(file: Path, table: EnvironmentTable, problems: Problems) -> None:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(table.python)
    except InvalidSpecifier:
        problems.add(file, "environment.python", table.python, 'a version specifier such as ">=3.11"')
    if table.version and table.install != "editable":
        problems.add(file, "environment.version", table.version, 'nothing, as install is not "editable"')
    for index, requirement in enumerate(table.requirements):
        try:
            Requirement(requirement)
        except InvalidRequirement:
            key = f"environment.requirements[{index}]"
            problems.add(file, key, requirement, 'a requirement such as "markupsafe" or "attrs>=22"')
    for index, root in enumerate(table.import_roots):
        if not stays_inside(root):
            key = f"environment.import_roots[{index}]"
            problems.add(file, key, root, 'a folder of the tree, such as "src" or "."')


def _comments(file: Path, data: InstanceFile, problems: Problems) -> list[str]:
    """Check what one field alone does not show; return the source of each hidden test."""
    seen: set[str] = set()
    tests: list[str] = []
    runner = _runner(file, data.environment.runner, problems)
    for index, comment in enumerate(data.comment):
        key = f"comment[{index}]"
        if comment.id.casefold() in seen:
            problems.add(
                file, f"{key}.id", comment.id, "an id that no other comment has (case does not count)"
            )
        seen.add(comment.id.casefold())
        _check_place(file, key, comment, problems)
        tests.append(_test(file, f"{key}.test", comment.test, runner, problems) if comment.test else "")
        if comment.test and comment.kind is None:
            problems.add(
                file, f"{key}.kind", words("nothing"), '"behavioral" or "structural", as it has a test'
            )
        if comment.expect and not comment.test:
            problems.add(file, f"{key}.expect", comment.expect, "nothing, as it has no test")
    return tests


def _check_place(file: Path, key: str, comment: CommentTable, problems: Problems) -> None:
    if comment.path is not None and not stays_inside(comment.path):
        problems.add(
            file, f"{key}.path", comment.path, "a file of the tree: POSIX path, relative to its root"
        )
    if comment.lines is not None and comment.lines[0] > comment.lines[1]:
        problems.add(file, f"{key}.lines", comment.lines, "[first, last] with first not after last")
    wanted = {"inline": (True, True), "file": (True, False), "general": (False, False)}[comment.level]
    for name, want, value in zip(("path", "lines"), wanted, (comment.path, comment.lines), strict=True):
        if want and value is None:
            problems.add(file, f"{key}.{name}", words("nothing"), f'a value, as level is "{comment.level}"')
        elif not want and value is not None:
            problems.add(file, f"{key}.{name}", value, f'nothing, as level is "{comment.level}"')
    if comment.suggestion is not None and (comment.lines is None or comment.side != "right"):
        problems.add(
            file, f"{key}.suggestion", comment.suggestion, "nothing, as it has no lines of head to replace"
        )


def _runner(file: Path, name: str, problems: Problems) -> Runner | None:
    if name not in RUNNERS:
        known = ", ".join(f'"{known}"' for known in RUNNERS.names())
        problems.add(file, "environment.runner", name, f"one of {known}: install the package that has it")
        return None
    return RUNNERS.get(name)


def _test(file: Path, key: str, name: str, runner: Runner | None, problems: Problems) -> str:
    folder = _real(file.parent)
    path = _real(folder / name)
    if not stays_inside(name) or not path.is_relative_to(folder):
        problems.add(file, key, name, "a file inside the instance's folder")
    elif runner is not None and not name.endswith(runner.suffix):
        kind = "a Python file (.py)" if runner.suffix == ".py" else f"a file *{runner.suffix}"
        problems.add(file, key, name, f"{kind}, as the runner is {runner.name}")
    elif not _there(path, Path.is_file):
        problems.add(file, key, name, f"a file: there is no {printable(str(path))}")
    else:
        return _test_source(file, key, path, problems)
    return ""


def _test_source(file: Path, key: str, path: Path, problems: Problems) -> str:
    try:
        text = path.read_bytes().decode("utf-8")
        if path.suffix == ".py":
            ast.parse(text)
    except OSError as error:
        problems.add(file, key, words(error.strerror or "a read error"), "a readable test file")
    except UnicodeDecodeError:
        problems.add(file, key, path.name, "a test file that is UTF-8 text")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        version = ".".join(map(str, sys.version_info[:2]))
        problems.add(file, key, words(f"{path.name}: {error}"), f"a test file that Python {version} can read")
    else:
        if text.strip():
            return text
        problems.add(file, key, path.name, "a test file that is not empty")
    return ""


def _source(file: Path, data: InstanceFile, problems: Problems) -> tuple[Source, dict[str, str]]:
    """Return the source with its paths resolved, and the digests of local content that it names."""
    table = data.source
    if isinstance(table, PypiSource):
        base, head = (Artifact(a.file, a.sha256) for a in (table.base, table.head))
        fixed = Artifact(table.fixed.file, table.fixed.sha256) if table.fixed else None
        return Source("pypi", base, head, fixed, package=table.package), {}
    if isinstance(table, GitSource):
        return Source("git", table.base, table.head, table.fixed, url=_url(file, table.url)), {}
    if isinstance(table, GitPatchSource):
        return _patch_source(file, table, problems)
    return _tree_source(file, table, problems)


def _patch_source(file: Path, table: GitPatchSource, problems: Problems) -> tuple[Source, dict[str, str]]:
    if table.fixed is not None and table.fixed_patch is not None:
        problems.add(file, "source.fixed_patch", table.fixed_patch, "nothing, as source.fixed is given")
    contents: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for key, name in (("patch", table.patch), ("fixed_patch", table.fixed_patch)):
        if name is None:
            continue
        paths[key] = path = _real(file.parent / name)
        if _there(path, Path.is_file):
            contents[key] = digest.of_file(path)
        else:
            problems.add(file, f"source.{key}", name, f"a file: there is no {printable(str(path))}")
    url = _url(file, table.url)
    source = Source(
        "git+patch",
        table.base,
        None,
        table.fixed,
        url=url,
        patch=paths["patch"],
        fixed_patch=paths.get("fixed_patch"),
    )
    return source, contents


def _tree_source(file: Path, table: TreeSource, problems: Problems) -> tuple[Source, dict[str, str]]:
    contents: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for key, name in (("base", table.base), ("head", table.head), ("fixed", table.fixed)):
        if name is None:
            continue
        paths[key] = path = _real(file.parent / name)
        if _there(path, Path.is_dir):
            contents[key] = digest.of_tree(path)
        else:
            problems.add(file, f"source.{key}", name, f"a folder: there is no {printable(str(path))}")
    return Source("tree", paths["base"], paths["head"], paths.get("fixed")), contents


def _url(file: Path, url: str) -> str:
    """Resolve a URL that is a path relative to the instance's folder."""
    return str(_real(file.parent / url)) if url.startswith(("./", "../")) else url


def _there(path: Path, kind: Callable[[Path], bool]) -> bool:
    """Whether a path is of a kind; a name that no disk can hold is not there."""
    try:
        return kind(path)
    except OSError:
        return False


def _real(path: Path) -> Path:
    """Resolve links; unlike `Path.resolve` it does not raise for links that go in circles."""
    return Path(os.path.realpath(path))
