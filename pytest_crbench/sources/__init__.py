"""Sources: where the trees of a pull request come from, verified, byte-exact and cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host.indexes import IndexSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.model import Source, Trees

__all__ = ["fetch"]


def fetch(
    source: Source,
    *,
    cache: Path,
    fixed: bool = False,
    index: IndexSettings | None = None,
    offline: bool = False,
    verify: bool = False,
    log: Callable[[str], None] = lambda _line: None,
    silent: dict[str, str] | None = None,
) -> Trees:
    """Return the trees of a source, from the cache where it has them. No code of a tree is ever run.

    The trees are read-only (no write permission on any file or folder) and shared by all processes: copy
    them to change anything, and give the copies ordinary permissions.

    Args:
        source: what to fetch.
        cache: the cache folder; made if absent. Safe for any number of processes.
        fixed: whether the fixed tree is wanted too.
        index: where archives come from (default: what pip's and uv's variables say).
        offline: never use the network; what is not in the cache is an error.
        verify: read every byte of a cached tree again, instead of sizes and times only.
        log: takes one line for what is worth telling (downloads, waiting, repairs).
        silent: given to every call of a process, it keeps hosts of repositories that did not answer, which
            are not asked again.

    Raises:
        InfraError: network, index, repository or disk failed, or ``offline`` and not in the cache.
        InvalidInstanceError: a digest differs, an archive is unsafe, a patch does not apply, or there is
            no ``fixed`` side.
    """
    from ..core.errors import InvalidInstanceError
    from .writer import Cache

    if fixed and source.fixed is None and source.fixed_patch is None:
        raise InvalidInstanceError(
            "the fixed tree is wanted, but the [source] of this instance has no `fixed`: name the later "
            "state in which its concerns are gone.",
            reason="no-fixed",
        )
    store = Cache(
        cache.absolute(), offline=offline, verify=verify, log=log, silent={} if silent is None else silent
    )
    if source.kind == "pypi":
        from . import pypi

        return pypi.trees(source, store, index or IndexSettings.from_environment(), fixed=fixed)
    if source.kind == "tree":
        from . import repository

        return repository.trees(source, store, fixed=fixed)
    from . import git

    return git.trees(source, store, fixed=fixed)
