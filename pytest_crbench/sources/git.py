"""The ``git`` and ``git+patch`` sources: commits of a repository as byte-exact trees.

Trees are read by plumbing (``ls-tree``, ``cat-file``), not checked out or archived: no attribute, filter,
line-end conversion, ``export-ignore`` or configuration takes part. Only talking to the server uses the user's
git configuration, since that is where credentials and proxies are.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core import digest, processes, temporary
from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import Trees
from ..core.trees import discard
from ..core.urls import redact
from .repository import Damaged, Repository, base_environment, git_program, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.model import Source, Tree
    from .cache import Cache
    from .writer import TreeWriter

_FETCH_SECONDS = 900.0
#: Variables of the caller's that decide how a server is reached; all other GIT_ ones are dropped.
_FOR_SERVERS = ("GIT_ASKPASS", "GIT_CONFIG_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_")
_SETTINGS = ("core.hooksPath=/dev/null", "gc.auto=0", "maintenance.auto=false", "fetch.recurseSubmodules=no")


def trees(source: Source, cache: Cache, *, fixed: bool) -> Trees:
    """Return the trees of a ``git`` or ``git+patch`` source.

    Raises:
        InfraError: no git, repository unreachable, commit not found, disk, or offline and not cached.
        InvalidInstanceError: a patch that does not apply, or a tree that no file system may hold.
    """
    assert source.url is not None
    mirror = _Mirror(source.url, cache)
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


def _commit_tree(mirror: _Mirror, commit: object) -> Tree:
    wanted = str(commit)

    def make(writer: TreeWriter) -> None:
        mirror.use(wanted, lambda repository: repository.write(wanted, writer))

    return mirror.cache.tree(digest.of(["git", 1, wanted]), f"commit {wanted[:12]}", make)


def _patched_tree(mirror: _Mirror, commit: object, patch: Path) -> Tree:
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


class _Mirror:
    """The repository in the cache that holds what was fetched from one URL."""

    def __init__(self, url: str, cache: Cache) -> None:
        self.url = url
        self.cache = cache
        self.shown = redact(url)

    def use(self, commit: str, action: Callable[[Repository], None]) -> None:
        """Run ``action`` on the mirror once it holds ``commit``; a damaged mirror is fetched again, once."""
        repository = self._place(commit)
        with self.cache.lock(f"mirror-{repository.path.name}", self.shown):
            self.cache.use("mirrors", repository.path.name)
            self._ensure(repository, commit)
            try:
                action(repository)
            except Damaged as damage:
                if self.cache.offline:
                    raise
                self.cache.log(f"{damage} Fetching it again")
                discard(repository.path)
                self._ensure(repository, commit)
                action(repository)

    def _place(self, commit: str) -> Repository:
        kind = "sha256" if len(commit) == 64 else "sha1"
        return Repository(self.cache.root / "mirrors" / digest.of([self.url, kind])[:32])

    def _ensure(self, repository: Repository, commit: str) -> None:
        if repository.has(commit):
            return
        if self.cache.offline:
            raise InfraError(
                f"commit {commit} of {self.shown} is not in the cache {self.cache.root}, and the "
                "network is not to be used. Run once with the network.",
                reason="offline",
            )
        if not (repository.path / "HEAD").is_file():
            self._create(repository, commit)
        self.cache.log(f"fetching commit {commit[:12]} of {self.shown}")
        failure = self._fetch(repository, "--depth=1", refspecs=[f"+{commit}:refs/crbench/{commit}"])
        if not repository.has(commit):  # servers may refuse a bare commit id
            shallow = ["--unshallow"] if (repository.path / "shallow").exists() else []
            failure = self._fetch(repository, *shallow, refspecs=["+refs/*:refs/remotes/all/*"]) or failure
        if not repository.has(commit):
            raise InfraError(
                f"{self.shown}: commit {commit} cannot be fetched ({failure or 'it is not there'}). Check "
                "the url and the commit of the instance's [source], and that `git ls-remote` reaches the "
                "repository.",
                reason="commit",
            )

    def _create(self, repository: Repository, commit: str) -> None:
        form = "sha256" if len(commit) == 64 else "sha1"
        try:
            discard(repository.path)
            repository.path.mkdir(parents=True)
        except OSError as error:
            raise InfraError(f"cannot write {repository.path}: {error.strerror}", reason="disk") from error
        repository.run("init", "--bare", "--quiet", "--template=", f"--object-format={form}")

    def _fetch(self, repository: Repository, *options: str, refspecs: list[str]) -> str:
        """Fetch into the mirror with the user's configuration; what git said if it failed."""
        env = {
            **base_environment(),
            **{k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_FOR_SERVERS)},
            "GIT_DIR": str(repository.path),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
            "LC_ALL": "C",
        }
        argv = [
            git_program(),
            *(word for setting in _SETTINGS for word in ("-c", setting)),
            "fetch",
            "--quiet",
            "--no-tags",
        ]
        done = processes.run(
            [*argv, *options, "--", self.url, *refspecs], cwd=repository.path, env=env, timeout=_FETCH_SECONDS
        )
        return "" if done.returncode == 0 else said(done)
