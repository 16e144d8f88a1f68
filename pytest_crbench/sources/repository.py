"""Trees of a bare repository in the cache, read by plumbing under its own configuration, and of folders."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import Trees
from ..host import digest, processes
from ..text.printable import decode, printable
from ..text.urls import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.enclosure import Completed
    from ..core.model import Source, Tree
    from .writer import Cache, TreeWriter

_READ_SECONDS = 300.0
_BATCH = 32 * 1024**2


class Damaged(InfraError):
    """An object of a repository of ours is missing or is not what its id says."""


@dataclass(frozen=True)
class Repository:
    """A bare repository of ours, read without any configuration but its own."""

    path: Path
    extra: tuple[tuple[str, str], ...] = ()

    def with_scratch(self, folder: Path) -> Repository:
        """Return the same repository with an index and new objects in ``folder``."""
        objects = folder / "objects"
        (objects / "info").mkdir(parents=True)
        (objects / "info" / "alternates").write_bytes(os.fsencode(self.path / "objects") + b"\n")
        extra = (("GIT_OBJECT_DIRECTORY", str(objects)), ("GIT_INDEX_FILE", str(folder / "index")))
        return Repository(self.path, extra)

    def try_run(self, *arguments: str, input: bytes = b"", limit: int = _BATCH) -> Completed:
        """Run git; whatever its exit status."""
        env = {
            **base_environment(),
            "GIT_DIR": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            **dict(self.extra),
        }
        # Twice the limit, because a capture keeps a head and a tail of half each.
        argv = [git_program(), *arguments]
        return processes.run(
            argv, cwd=self.path, env=env, timeout=_READ_SECONDS, output_limit=2 * limit, input=input
        )

    def run(self, *arguments: str, input: bytes = b"", limit: int = _BATCH) -> bytes:
        """Run git and return its output.

        Raises:
            Damaged: if it fails.
        """
        done = self.try_run(*arguments, input=input, limit=limit)
        if done.returncode != 0 or done.truncated:
            raise Damaged(
                f"git {arguments[0]} failed in {self.path}: {said(done)}. Delete that folder and run again.",
                reason="git",
            )
        return done.stdout

    def has(self, commit: str) -> bool:
        """Whether the commit and its tree are there."""
        return (
            self.path.is_dir()
            and self.try_run("cat-file", "-e", f"{commit}^{{commit}}^{{tree}}").returncode == 0
        )

    def write(self, treeish: str, writer: TreeWriter) -> None:
        """Write every file and link of a tree; submodules are left out, with a log line.

        Raises:
            Damaged: if an object is missing or is not what its id says.
            InvalidInstanceError: if the tree may not be written.
        """
        submodules: list[str] = []
        pending: list[tuple[str, str, str, int]] = []
        size = 0
        for mode, identity, length, path in self._entries(treeish):
            if mode == "160000":
                submodules.append(path)
                continue
            pending.append((mode, identity, path, length))
            size += length
            if size > _BATCH or len(pending) >= 5000:
                self._write_batch(pending, size, writer)
                pending, size = [], 0
        self._write_batch(pending, size, writer)
        if submodules:
            shown = printable(", ".join(submodules))
            writer.log(f"{writer.what}: left out {len(submodules)} submodule(s): {shown}")

    def _entries(self, treeish: str) -> Iterator[tuple[str, str, int, str]]:
        listing = self.run("ls-tree", "-r", "-z", "-l", "--full-tree", treeish, limit=256 * 1024**2)
        for record in listing.split(b"\0")[:-1]:
            about, _, path = record.partition(b"\t")
            mode, _, identity, length = about.split()
            # "-" for a submodule, "BAD" for a missing object: cat-file will say so
            size = int(length) if length.isdigit() else 0
            yield mode.decode(), identity.decode(), size, os.fsdecode(path)

    def _write_batch(self, wanted: list[tuple[str, str, str, int]], size: int, writer: TreeWriter) -> None:
        if not wanted:
            return
        if size > writer.bounds.size:
            raise writer.unsafe(
                wanted[-1][2], f"larger than the {writer.bounds.size} bytes that a tree may have"
            )
        asked = "".join(f"{identity}\n" for _, identity, _, _ in wanted).encode()
        output = self.run("cat-file", "--batch", input=asked, limit=size + 200 * len(wanted))
        at = 0
        for mode, identity, path, length in wanted:
            start = output.find(b"\n", at) + 1
            content = output[start : start + length]
            if (
                output[at : start - 1] != f"{identity} blob {length}".encode()
                or _blob(content, identity) != identity
            ):
                raise Damaged(
                    f"{self.path}: object {identity} is missing or damaged. Delete that folder "
                    "and run again.",
                    reason="git",
                )
            at = start + length + 1
            if mode == "120000":
                writer.link(path, os.fsdecode(content))
            else:
                writer.file(path, [content], executable=mode == "100755")


def git_program() -> str:
    """Return the path of git.

    Raises:
        InfraError: if there is none.
    """
    found = shutil.which("git")
    if found is None:
        raise InfraError("git was not found; install it, or put it on PATH.", reason="git")
    return found


def base_environment() -> Mapping[str, str]:
    """Return the variables that every git of ours gets."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _blob(content: bytes, identity: str) -> str:
    kind = hashlib.sha256 if len(identity) == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(content) + content).hexdigest()


def said(done: Completed) -> str:
    """Return what a failed git says, in one line without credentials."""
    if done.timed_out:
        return f"no end after {done.duration:.0f} s"
    return printable(redact(decode(done.stderr)), 500) or f"exit status {done.returncode}"


def trees(source: Source, cache: Cache, *, fixed: bool) -> Trees:
    """Return copies of the folders of a ``tree`` source.

    Raises:
        InvalidInstanceError: if a folder is absent, or holds a link that leaves it.
        InfraError: if a folder cannot be read, or changes while it is copied.
    """
    base, head = _copy(source.base, "base", cache), _copy(source.head, "head", cache)
    return Trees(base, head, _copy(source.fixed, "fixed", cache) if fixed else None)


def _copy(folder: object, side: str, cache: Cache) -> Tree:
    if not isinstance(folder, Path) or not folder.is_dir():
        raise InvalidInstanceError(
            f"source.{side}: there is no folder {folder}; name an existing one, relative to the instance.",
            reason="no-tree",
        )
    place = folder

    def make(writer: TreeWriter) -> None:
        for path, mode, content in digest.walk(place):
            if mode == "120000":
                writer.link(path, content.decode("utf-8", "surrogateescape"))
            else:
                writer.file(path, [content], executable=mode == "100755")
        if digest.of_tree(place) != before:
            raise InfraError(f"{place} changed while it was copied; run again.", reason="changed")

    try:
        before = digest.of_tree(place)
        return cache.tree(digest.of(["tree", 1, before]), str(place), make)
    except OSError as error:
        raise InfraError(f"cannot read {place}: {error.strerror or error}", reason="disk") from error
