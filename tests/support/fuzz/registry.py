"""Every target, by name."""

from __future__ import annotations

from . import (
    aacr,
    archives,
    damaged,
    datasets,
    diffs,
    indexes,
    models,
    options,
    results,
    reviews,
    stores,
    verdicts,
)
from .target import Target


def targets() -> dict[str, Target]:
    """Return all targets, in the order in which data moves through the package."""
    parts = (
        options,
        datasets,
        aacr,
        indexes,
        archives,
        reviews,
        damaged,
        diffs,
        models,
        verdicts,
        stores,
        results,
    )
    return {target.name: target for part in parts for target in part.targets()}
