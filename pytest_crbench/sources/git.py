"""The ``git`` and ``git+patch`` sources: commits of a repository as byte-exact trees.

Trees are read by plumbing (``ls-tree``, ``cat-file``), not checked out or archived: no attribute, filter,
line-end conversion, ``export-ignore`` or configuration takes part. Only talking to the server uses the user's
git configuration, since that is where credentials and proxies are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import InvalidInstanceError
from ..core.model import Trees
from ..host import digest, temporary
from .mirror import Mirror
from .repository import said

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.model import Source, Tree
    from .cache import Cache
    from .repository import Repository
    from .writer import TreeWriter


def trees(source: Source, cache: Cache, *, fixed: bool) -> Trees:
    """Return the trees of a ``git`` or ``git+patch`` source.

    Raises:
        InfraError: no git, repository unreachable, commit not found, disk, or offline and not cached.
        InvalidInstanceError: a patch that does not apply, or a tree that no file system may hold.
    """
    assert source.url is not None
    mirror = Mirror(source.url, cache)
    base = _commit_tree(mirror, source.base)
    if source.kind == "git":
        head = _commit_tree(mirror, source.head)
    else:
        assert source.patch is not None
        head = _patched_tree(mirror, source.base, source.patch)
    if not fixed:
        return Trees(base, head)
    if source.fixed_patch is not None:
        return Trees(base, head, _patched_tree(mirror, source.base, source.fixed_patch))
    return Trees(base, head, _commit_tree(mirror, source.fixed))


def _commit_tree(mirror: Mirror, commit: object) -> Tree:
    wanted = str(commit)

    def make(writer: TreeWriter) -> None:
        mirror.use(wanted, lambda repository: repository.write(wanted, writer))

    return mirror.cache.tree(digest.of(["git", 1, wanted]), f"commit {wanted[:12]}", make)


def _patched_tree(mirror: Mirror, commit: object, patch: Path) -> Tree:
    """Apply a patch to a commit in an index of its own; bytes are applied as they are."""
    wanted = str(commit)
    try:
        content = patch.read_bytes()
    except OSError as error:
        raise InvalidInstanceError(
            f"cannot read the patch {patch}: {error.strerror}", reason="patch"
        ) from error

    def write(repository: Repository, writer: TreeWriter) -> None:
        with temporary.folder() as folder:
            scratch = repository.with_scratch(folder)
            scratch.run("read-tree", f"{wanted}^{{tree}}")
            applied = scratch.try_run("apply", "--cached", "--whitespace=nowarn", "-", input=content)
            if applied.returncode != 0:
                raise InvalidInstanceError(
                    f"{patch} does not apply to commit {wanted}: {said(applied)}. Make it again with "
                    "`git diff --binary` against that commit.",
                    reason="patch",
                )
            scratch.write(scratch.run("write-tree").decode().strip(), writer)

    def make(writer: TreeWriter) -> None:
        mirror.use(wanted, lambda repository: write(repository, writer))

    key = digest.of(["git+patch", 1, wanted, digest.of_bytes(content)])
    return mirror.cache.tree(key, f"commit {wanted[:12]} with {patch.name}", make)
