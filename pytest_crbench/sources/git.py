"""The ``git`` and ``git+patch`` sources: commits of a repository as byte-exact trees.

Trees are read by plumbing (``ls-tree``, ``cat-file``), not checked out or archived: no attribute, filter,
line-end conversion, ``export-ignore`` or configuration takes part. Only talking to the server uses the user's
git configuration, since that is where credentials and proxies are.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import Trees
from ..host import digest, processes
from ..host.trees import discard, temporary_folder
from ..text.urls import redact
from .repository import Damaged, Repository, base_environment, git_program, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.enclosure import Completed
    from ..core.model import Source, Tree
    from .writer import Cache, TreeWriter

_FETCH_SECONDS = 900.0
#: A server that works says which branch it has at once; waiting for packets that nobody sends takes minutes.
ANSWER_SECONDS = 30.0
#: Variables of the caller's that decide how a server is reached; all other GIT_ ones are dropped.
_FOR_SERVERS = ("GIT_ASKPASS", "GIT_CONFIG_", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_")
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=no",
    # A transfer that stands still is given up, long before the whole fetch would be.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=120",
)
#: The server has looked for the commit: to fetch all that it has would not bring it.
_NOT_THERE = re.compile(r"not our ref|no such remote ref|couldn't find remote ref", re.IGNORECASE)


class Mirror:
    """The repository in the cache that holds what was fetched from one URL."""

    def __init__(self, url: str, cache: Cache) -> None:
        self.url = url
        self.cache = cache
        self.shown = redact(url)

    def use(self, commit: str, action: Callable[[Repository], None]) -> None:
        """Run ``action`` on the mirror once it holds ``commit``; a damaged mirror is fetched again, once.

        Raises:
            InfraError: if the commit cannot be had, or whatever ``action`` raises.
        """
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
        self._reach(repository, commit)
        self.cache.log(f"fetching commit {commit[:12]} of {self.shown}")
        failure = self._fetch(repository, "--depth=1", refspecs=[f"+{commit}:refs/crbench/{commit}"])
        if not repository.has(commit) and not _NOT_THERE.search(failure):  # servers may refuse a bare id
            self.cache.log(f"{self.shown} gives no single commit ({failure}): fetching all that it has")
            shallow = ["--unshallow"] if (repository.path / "shallow").exists() else []
            failure = self._fetch(repository, *shallow, refspecs=["+refs/*:refs/remotes/all/*"]) or failure
        if not repository.has(commit):
            raise InfraError(
                f"{self.shown}: commit {commit} cannot be fetched ({failure or 'it is not there'}). Check "
                "the url and the commit of the instance's [source], and that `git ls-remote` reaches the "
                "repository. A commit that its server has dropped is gone: leave that pull request out.",
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

    def _reach(self, repository: Repository, commit: str) -> None:
        """Make sure that the server answers, before anything waits for it for long.

        A host that says nothing is asked once in a process: a whole dataset may lie there.
        """
        host = urlsplit(self.url).netloc.rpartition("@")[2] if "://" in self.url else self.url
        failure = self.cache.silent.get(host, "")
        if not failure:
            done = self._git(repository, ANSWER_SECONDS, "ls-remote", "--quiet", "--", self.url, "HEAD")
            if done.returncode == 0:
                return
            failure = said(done)
            if done.timed_out:
                failure = f"no answer within {ANSWER_SECONDS:.0f} s"
                self.cache.silent[host] = f"{host} has not answered before"
        raise InfraError(
            f"{self.shown}: commit {commit} cannot be fetched, as the repository cannot be reached "
            f"({failure}). Check the url of the instance's [source], the network, and the proxy and "
            "credentials of git: `git ls-remote` must reach it. Then finish the run with --crbench-resume "
            "--crbench-rerun-errors.",
            reason="unreachable",
        )

    def _fetch(self, repository: Repository, *options: str, refspecs: list[str]) -> str:
        """Fetch into the mirror with the user's configuration; what git said if it failed."""
        arguments = ["fetch", "--quiet", "--no-tags", *options, "--", self.url, *refspecs]
        done = self._git(repository, _FETCH_SECONDS, *arguments)
        return "" if done.returncode == 0 else said(done)

    def _git(self, repository: Repository, timeout: float, *arguments: str) -> Completed:
        env = {
            **base_environment(),
            **{k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_FOR_SERVERS)},
            "GIT_DIR": str(repository.path),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
            "LC_ALL": "C",
        }
        argv = [git_program(), *(word for setting in _SETTINGS for word in ("-c", setting)), *arguments]
        return processes.run(argv, cwd=repository.path, env=env, timeout=timeout)


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
        with temporary_folder() as folder:
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
