"""What is odd about a dataset without being broken: told by ``crbench instances check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.datasets import Note
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.model import Check, Dataset, Instance


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
