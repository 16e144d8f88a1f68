"""The cache of trees: each made once under a lock, read-only, with its digest beside it.

Layout below the cache folder: ``archives/<sha256>/<file>``, ``mirrors/<key>/`` (bare git repositories),
``trees/<key>/tree`` with ``trees/<key>/record.json``, and ``locks/``. All of it can be deleted at any time
(the trees are read-only: `discard` removes them).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..core.model import Tree
from ..host import digest
from ..host.files import locked, write_json
from ..host.stamps import Uses
from ..host.trees import discard, stamp
from ..text import plainjson
from .writer import TreeWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path


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
        found = self._find(key)
        if found is not None:
            return found
        with self.lock(f"tree-{key[:32]}", what):
            found = self._find(key)
            if found is not None:
                return found
            if (self.root / "trees" / key).exists():
                self.log(f"{what}: the cached tree was changed; it is made again")
            return self._make(key, what, make)

    def _find(self, key: str) -> Tree | None:
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
