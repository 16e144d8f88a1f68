"""What is odd about a dataset in the native format."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from .notes import checks_where, noted, repeats

if TYPE_CHECKING:
    from ..core.datasets import Note
    from ..core.model import Dataset, Instance


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
            "matched only with --crbench-file-level=file; hidden tests do not mind",
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
