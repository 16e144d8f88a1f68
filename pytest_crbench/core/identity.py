"""Names of verdicts: keys, node ids, and rows for what was never measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import digest
from .model import Key, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .model import Check, Dataset, Environment, Instance
    from .status import Status


def item_name(check: str, repeat: int, repeats: int) -> str:
    """Name of the pytest item of one check: its id, with the repeat if there are several."""
    return check if repeats == 1 else f"{check}[r{repeat}]"


def node_id(dataset: str, instance: str, check: str, repeat: int, repeats: int) -> str:
    """Node id of the pytest item of one check; the same on every machine."""
    return f"{dataset}::{instance}::{item_name(check, repeat, repeats)}"


def plan(datasets: Iterable[Dataset], repeats: int) -> Iterator[tuple[str, Key, Instance, Check]]:
    """Yield (node id, key, instance, check) of everything that a run could measure, in order."""
    for dataset in datasets:
        for instance in dataset.instances:
            for check in instance.checks:
                for repeat in range(1, repeats + 1):
                    name = node_id(dataset.name, instance.id, check.id, repeat, repeats)
                    yield name, Key(dataset.name, instance.id, check.id, repeat=repeat), instance, check


def unmeasured(
    instance: Instance,
    check: Check,
    key: Key,
    status: Status,
    reason: str,
    sandbox: str | None = None,
    cause: str = "",
) -> Verdict:
    """Return the verdict of a check that no stage came to."""
    return Verdict(
        key=key,
        status=status,
        reason=reason,
        facets=instance.facets(check),
        check_digest=check.digest,
        sandbox=sandbox,
        log=log_path(instance),
        cause=cause,
    )


def environment_name(wanted: Environment) -> str:
    """Name of what an instance asks for, before it is known what that resolves to."""
    return digest.of([wanted.python, wanted.requirements, wanted.as_of, wanted.install])[:16]


def log_path(instance: Instance) -> str:
    """Path of an instance's log, relative to the run directory."""
    return f"logs/{instance.dataset}/{instance.id}.log"
