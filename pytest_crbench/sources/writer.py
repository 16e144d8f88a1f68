"""Trees from untrusted entries, within their root and a size, and the cache that keeps them."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import Tree
from ..host import digest, trees
from ..host.eviction import Uses
from ..host.files import locked, write_json
from ..host.trees import discard, stamp
from ..text import plainjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

_CHUNK = 1024 * 1024
_BAD_NAMES = {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}


@dataclass(frozen=True)
class Bounds:
    """How large a tree may be: entries, and bytes of content."""

    entries: int = 100_000
    size: int = 1024**3


class TreeWriter:
    """Writes files and links below ``root``; ``what`` names their origin in messages.

    Links are made last, so that no file is ever written through one. Paths with a ``.git`` component are left
    out: a git tree cannot hold them, and on the host they would be configuration that runs programs.
    """

    def __init__(
        self, root: Path, what: str, log: Callable[[str], None], bounds: Bounds | None = None
    ) -> None:
        self.root = root
        self.what = what
        self.bounds = bounds or Bounds()
        self.log = log
        self._entries = 0
        self._size = 0
        self._links: dict[str, str] = {}
        self._files: dict[str, bool] = {}
        self._left_out = 0

    def file(self, name: str, content: Iterable[bytes], *, executable: bool) -> None:
        """Write a regular file; a later entry of the same name replaces an earlier one.

        Raises:
            InvalidInstanceError: for a name that leaves the root, or a tree that is too large.
            InfraError: if the disk fails.
        """
        path = self._admit(name)
        if path is None:
            return
        self._links.pop(path, None)
        target = self.root / path
        with self._writing(name):
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in self._files:
                target.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(target, flags, 0o600)
        self._files[path] = executable
        with os.fdopen(descriptor, "wb") as stream:
            for chunk in content:
                self._count(len(chunk), name)
                with self._writing(name):
                    stream.write(chunk)
            with self._writing(name):
                stream.flush()

    def link(self, name: str, target: str) -> None:
        """Note a symbolic link, to be made by `finish`.

        Raises:
            InvalidInstanceError: for a name or a target that leaves the root.
        """
        path = self._admit(name)
        if path is None:
            return
        inside = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
        if not target or "\0" in target or target.startswith("/") or inside.split("/")[0] == "..":
            raise self.unsafe(name, f"a link to {target!r}, which leaves the tree")
        if self._files.pop(path, None) is not None:
            with self._writing(name):
                (self.root / path).unlink()
        self._links[path] = target

    def copy(self, name: str, earlier: str, *, executable: bool) -> None:
        """Write a file with the content of an earlier one (a hard link of an archive).

        Raises:
            InvalidInstanceError: if there is no such earlier file.
        """
        source = self.path(earlier)
        if source not in self._files:
            raise self.unsafe(name, f"a hard link to {earlier!r}, which is no earlier file of the tree")
        if source == self.path(name):
            return
        with (self.root / source).open("rb") as stream:
            self.file(name, iter(lambda: stream.read(_CHUNK), b""), executable=executable)

    def path(self, name: str) -> str:
        """Normalise an entry's name.

        Raises:
            InvalidInstanceError: if it is absolute, climbs with "..", is empty or holds a NUL.
        """
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or "\0" in name or ".." in parts or not parts:
            raise self.unsafe(name, "a path that leaves the tree")
        if len(parts) > trees.Bounds.depth:
            raise self.unsafe(name, f"a path of more than {trees.Bounds.depth} folders")
        return "/".join(parts)

    def finish(self) -> None:
        """Make the links, check where they lead, and take every write permission away.

        Raises:
            InvalidInstanceError: for a link that leaves the tree by way of another link.
            InfraError: if the disk fails.
        """
        for path, target in self._links.items():
            place = self.root / path
            with self._writing(path):
                place.parent.mkdir(parents=True, exist_ok=True)
                os.symlink(target, place)  # noqa: PTH211  (the raw target, not a Path)
        real = os.path.realpath(self.root)
        for path, target in self._links.items():
            # A folder that the parent's links make of another folder is no place that we wrote to.
            led = os.path.realpath(self.root / path)
            if led != real and not led.startswith(real + os.sep):
                raise self.unsafe(path, f"a link to {target!r}, which leaves the tree through another link")
        if self._left_out:
            self.log(f"{self.what}: left out {self._left_out} entries below a .git folder")
        with self._writing("permissions"):
            for path, executable in self._files.items():
                (self.root / path).chmod(0o555 if executable else 0o444)
            for folder, _, _ in os.walk(self.root, topdown=False):
                os.chmod(folder, 0o555)  # noqa: PTH101

    def unsafe(self, name: str, found: str) -> InvalidInstanceError:
        """Make the error for an entry that must not be written."""
        return InvalidInstanceError(
            f"{self.what}: entry {name!r} is {found}. Such a tree is not unpacked; correct the [source] "
            "of the instance.",
            reason="unsafe-tree",
        )

    def _admit(self, name: str) -> str | None:
        path = self.path(name)
        self._entries += 1
        if self._entries > self.bounds.entries:
            raise self.unsafe(name, f"one of more than {self.bounds.entries} entries")
        if any(part.lower() == ".git" for part in path.split("/")):
            self._left_out += 1
            return None
        return path

    def _count(self, size: int, name: str) -> None:
        self._size += size
        if self._size > self.bounds.size:
            raise self.unsafe(name, f"more than the {self.bounds.size} bytes that a tree may have")

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Turn what the system says of a bad name or a full disk into our errors."""
        try:
            yield
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else errno.EINVAL
            if number in _BAD_NAMES:
                raise self.unsafe(
                    name, f"in conflict with another entry or no file name ({error})"
                ) from error
            raise InfraError(
                f"cannot write {self.root}: {os.strerror(number or 0)}. Free some space or choose another "
                "folder with --crbench-cache.",
                reason="disk",
            ) from error


@dataclass(frozen=True)
class Cache:
    """The cache folder and how to use it."""

    root: Path
    offline: bool
    verify: bool
    log: Callable[[str], None]
    #: Hosts that did not answer, with what to say of each; the caller's, for as long as it likes.
    silent: dict[str, str] = field(default_factory=dict)

    def lock(self, name: str, what: str) -> AbstractContextManager[None]:
        """Hold the lock ``name`` between processes."""
        return locked(self.root / "locks" / f"{name}.lock", log=self.log, what=what)

    def use(self, kind: str, name: str) -> None:
        """Note that an entry of the cache is used; before it is looked for."""
        Uses(self.root).touch(kind, name)

    def tree(self, key: str, what: str, make: Callable[[TreeWriter], None]) -> Tree:
        """Return the tree that is stored under ``key``, or let ``make`` write it.

        A tree whose files were changed in the cache is noticed and made again.

        Raises:
            InfraError: if the disk fails, or whatever ``make`` raises.
        """
        self.use("trees", key)
        found = self.find(key)
        if found is not None:
            return found
        with self.lock(f"tree-{key[:32]}", what):
            found = self.find(key)
            if found is not None:
                return found
            if (self.root / "trees" / key).exists():
                self.log(f"{what}: the cached tree was changed; it is made again")
            return self._make(key, what, make)

    def find(self, key: str) -> Tree | None:
        """Return the tree that is kept under ``key``; None if it is not there, or not whole."""
        folder = self.root / "trees" / key
        try:
            record = plainjson.parse((folder / "record.json").read_bytes())
            wanted, before = str(record["digest"]), str(record["stamp"])
            now = stamp(folder / "tree")
            if self.verify or now != before:
                # Other times and sizes need not be other content: a cache may have been copied.
                if digest.of_tree(folder / "tree") != wanted:
                    return None
                # A cache that cannot be written to is as good, only slower.
                with suppress(InfraError):
                    write_json(folder / "record.json", {**record, "stamp": now})
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Tree(folder / "tree", wanted)

    def _make(self, key: str, what: str, make: Callable[[TreeWriter], None]) -> Tree:
        folder = self.root / "trees" / key
        fresh, aside = folder.with_name(f".{key}.new"), folder.with_name(f".{key}.old")
        try:
            discard(fresh)  # what a killed process left
            (fresh / "tree").mkdir(parents=True)
            writer = TreeWriter(fresh / "tree", what, self.log)
            make(writer)
            writer.finish()
            content = digest.of_tree(fresh / "tree")
            record = {"what": what, "digest": content, "stamp": stamp(fresh / "tree")}
            write_json(fresh / "record.json", record)
            discard(aside)
            if folder.exists():
                folder.rename(aside)
            fresh.rename(folder)
            discard(aside)
        except OSError as error:
            raise InfraError(
                f"{what}: cannot write the cache {self.root}: {error.strerror or error}. Free some space or "
                "choose another folder with --crbench-cache.",
                reason="disk",
            ) from error
        finally:
            if fresh.exists():
                discard(fresh)
        return Tree(folder / "tree", content)
