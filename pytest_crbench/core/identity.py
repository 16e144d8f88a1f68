"""Names beside those of checks, and verdicts for what was never measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import digest
from .model import Verdict

if TYPE_CHECKING:
    from .model import Check, Environment, Instance, Key
    from .status import Status


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
