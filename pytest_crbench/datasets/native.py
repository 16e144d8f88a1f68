"""The native format: a folder with an optional ``dataset.toml`` and one folder per instance."""

from __future__ import annotations

import os
import tomllib
from typing import TYPE_CHECKING, Any

from ..core.datasets import Note
from ..core.errors import UsageError
from ..core.model import Dataset
from ..host import digest
from ..text.printable import printable, slug
from .instance import load_instance, read_toml
from .problems import Problems, words
from .schema import DatasetFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..core.model import Check, Instance


def load(path: Path) -> Dataset:
    """Load the dataset in a folder, or the one instance whose folder (or ``instance.toml``) it is.

    An instance opened alone has the dataset name that it has as part of its dataset, so that its node ids
    are the same: that of the ``dataset.toml`` beside its folder, else the name of the folder around it.

    Raises:
        UsageError: if there is nothing to load or a file is broken; lists all problems, not the first.
    """
    folder = (path.parent if path.name in ("instance.toml", "dataset.toml") else path).absolute()
    # Not Path.is_dir(): it raises for a name that is longer than names can be.
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(
            f"{printable(str(path), 200)} is not a folder: a dataset is one that holds <id>/instance.toml."
        )
    problems = Problems()
    alone = (folder / "instance.toml").is_file()
    root = folder.parent if alone else folder
    described = (root / "dataset.toml").is_file()
    about = read_toml(root / "dataset.toml", DatasetFile, problems) if described else None
    if about is None:  # broken or absent; if broken, the instances are still read, to tell their problems too
        about = DatasetFile.model_validate({"schema": 1, "name": slug(root.resolve().name)})
    folders = [folder] if alone else _folders(root, about.instances, problems)
    if not folders and not problems.found:
        raise UsageError(
            f"no instance in {printable(str(path))}: a dataset is a folder that holds <id>/instance.toml, "
            "or one such <id> folder."
        )
    loaded = [load_instance(f, about.name, problems) for f in folders]
    instances = tuple(i for i in loaded if i is not None)
    _check_ids(instances, problems)
    _check_tests(instances, problems)
    problems.raise_if_any(path)
    content = {"name": about.name, "notice": about.notice, "instances": [[i.id, i.digest] for i in instances]}
    return Dataset(
        name=about.name,
        title=about.title,
        notice=about.notice,
        instances=instances,
        digest=digest.of(content),
        path=folder,
        # Where nothing can be run, comments are there to be matched.
        scoring="tests" if any(c.test for i in instances for c in i.checks) else "matching",
    )


def _folders(root: Path, patterns: list[str], problems: Problems) -> list[Path]:
    """Return the instance folders that the patterns name: in their order, sorted within each, once each."""
    found: dict[Path, None] = {}
    for index, pattern in enumerate(patterns):
        key = f"instances[{index}]"
        if pattern.startswith("/") or ".." in pattern.split("/"):
            problems.add(root / "dataset.toml", key, pattern, "a path inside the dataset's folder")
            continue
        matches = _matches(root, pattern)
        if not matches and (root / "dataset.toml").is_file():
            problems.add(
                root / "dataset.toml", key, pattern, "folders that hold an instance.toml: none matches"
            )
        found.update(dict.fromkeys(matches))
    return list(found)


def _matches(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(p for p in root.glob(pattern) if (p / "instance.toml").is_file())
    # What glob says of what is no pattern: "**x", ".", absurdly many parts.
    except (OSError, ValueError, IndexError, NotImplementedError, RecursionError):
        return []


def _check_ids(instances: tuple[Instance, ...], problems: Problems) -> None:
    first: dict[str, Instance] = {}
    for instance in instances:
        other = first.setdefault(instance.id.casefold(), instance)
        if other is not instance and instance.path is not None:
            where = words(f"{instance.id!r}, which {other.path} has too")
            problems.add(instance.path / "instance.toml", "id", where, "an id unique in its dataset")


def _check_tests(instances: tuple[Instance, ...], problems: Problems) -> None:
    """Refuse a hidden test that stands twice for the same change: it would count twice."""
    first: dict[tuple[str, str], str] = {}
    for instance in instances:
        for index, check in enumerate(instance.checks):
            name = f"{instance.id}::{check.id}"
            other = first.setdefault((instance.sides, check.test), name)
            if check.test and other != name and instance.path is not None:
                found = words(f"the test of {other}, of the same base and head")
                problems.add(
                    instance.path / "instance.toml", f"comment[{index}].test", found, "a test of its own"
                )


def noted(name: str, said: str, where: list[str]) -> list[Note]:
    """Return a note, or none if it is nowhere."""
    return [Note(name, said, tuple(printable(place) for place in where))] if where else []


def checks_where(dataset: Dataset, odd: Callable[[Instance, Check], bool]) -> list[str]:
    """Name the checks that are odd in one way."""
    return [f"{i.id}::{c.id}" for i, c in every_check(dataset) if odd(i, c)]


def every_check(dataset: Dataset) -> Iterator[tuple[Instance, Check]]:
    """Every check with its instance, in the dataset's order."""
    for instance in dataset.instances:
        for check in instance.checks:
            yield instance, check


def repeats(dataset: Dataset, key: Callable[[Instance, Check], object]) -> list[str]:
    """Name the checks of which an earlier one of the same instance has the same key."""
    seen: set[tuple[str, object]] = set()
    found = []
    for instance, check in every_check(dataset):
        name = (instance.id, key(instance, check))
        if name in seen:
            found.append(f"{instance.id}::{check.id}")
        seen.add(name)
    return found


def notes(dataset: Dataset) -> list[Note]:
    """Return what is odd about a dataset, from its files alone."""
    instances = [i for i in dataset.instances if any(check.test for check in i.checks)]
    recorded = {i.id: _validation(i) for i in instances}
    return [
        *noted(
            "not-validated",
            "nothing records that the hidden tests hold: run crbench validate --write",
            [i.id for i in instances if recorded[i.id] is None],
        ),
        *noted(
            "changed-since-validation",
            "the instance is not the one that was validated: run crbench validate --write",
            [i.id for i in instances if (found := recorded[i.id]) and found.get("digest") != i.digest],
        ),
        *noted(
            "no-fixed-state",
            "nothing can show that the hidden tests can be passed: name `fixed` in [source]",
            [i.id for i in instances if i.source.fixed is None and i.source.fixed_patch is None],
        ),
        *noted(
            "no-date",
            "requirements are resolved as of today, not as of the pull request: give created_at",
            [i.id for i in instances if i.created_at is None and i.environment.requirements],
        ),
        *noted(
            "no-test",
            "the comment can only be matched: --crbench-scoring=tests leaves it out",
            checks_where(dataset, lambda _i, c: not c.test) if dataset.scoring == "tests" else [],
        ),
        *noted(
            "network",
            "hidden tests reach the network, and what answers there may change",
            [i.id for i in instances if i.environment.network],
        ),
        *noted(
            "place-shared",
            "an earlier comment of the pull request is at the same place; both stay",
            repeats(
                dataset, lambda _i, c: (c.comment.path, c.comment.side, c.comment.lines, c.comment.level)
            ),
        ),
        *noted(
            "text-repeated",
            "an earlier comment of the pull request has the same text; both stay",
            repeats(dataset, lambda _i, c: " ".join(c.comment.body.split())),
        ),
        *noted(
            "side-left",
            "the comment is about lines of base",
            checks_where(dataset, lambda _i, c: c.comment.side == "left"),
        ),
        *noted(
            "no-lines",
            "matched only with --crbench-matching file-level=file; hidden tests do not mind",
            checks_where(dataset, lambda _i, c: c.comment.lines is None),
        ),
    ]


def _validation(instance: Instance) -> dict[str, Any] | None:
    """Read what a validation recorded; the loader has read the same file, and asks for a table."""
    if instance.path is None:
        return None
    text = (instance.path / "instance.toml").read_text("utf-8")
    found: dict[str, Any] | None = tomllib.loads(text).get("validation")
    return found
