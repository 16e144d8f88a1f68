"""When a cache entry was last used, and removing the least recently used until the rest fits."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ..core.errors import InfraError
from ..text import plainjson
from ..text.printable import slug
from . import trees
from .processes import is_elsewhere, is_gone, own_token
from .space import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

#: Seconds after which a run on another machine, which cannot be looked at from here, is taken to have ended.
_FORGOTTEN = 3 * 86400.0


@dataclass(frozen=True)
class Uses:
    """The stamps in one cache folder. Nothing here raises: a stamp that cannot be written is an old one."""

    cache: Path

    def touch(self, kind: str, name: str) -> None:
        """Note that something is used now. Call it before looking for the thing, not after."""
        stamp = self._stamp(kind, name)
        try:
            os.utime(stamp)
        except FileNotFoundError:
            with suppress(OSError):
                stamp.parent.mkdir(parents=True, exist_ok=True)
                stamp.touch()
        except OSError:
            return

    def last(self, kind: str, name: str) -> float | None:
        """Return the time of the last use (seconds since the epoch), or None if none is known."""
        try:
            return self._stamp(kind, name).stat().st_mtime
        except OSError:
            return None

    def forget(self, kind: str, name: str) -> None:
        """Remove the stamp of a thing that is gone."""
        with suppress(OSError):
            self._stamp(kind, name).unlink(missing_ok=True)

    def begin(self, session: str) -> Callable[[], None]:
        """Be known as a run under way: nothing that is used from now on is evicted. Returns what ends that.

        A process that dies is known to have ended.
        """
        lease = self._leases / f"{slug(session)}.json"
        with suppress(OSError):
            lease.parent.mkdir(parents=True, exist_ok=True)
            lease.write_text(json.dumps({"owner": own_token()}))

        def end() -> None:
            with suppress(OSError):
                lease.unlink(missing_ok=True)

        return end

    def oldest_run(self, *, but: str = "") -> float | None:
        """Return when the oldest run under way began, leaving out session ``but``; None if there is none."""
        began = (self._began(lease, but) for lease in self._leases.glob("*.json"))
        return min((when for when in began if when is not None), default=None)

    def _began(self, lease: Path, but: str) -> float | None:
        if but and lease.stem == slug(but):
            return None
        try:
            began, owner = lease.stat().st_mtime, str(plainjson.parse(lease.read_bytes())["owner"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if is_gone(owner):
            lease.unlink(missing_ok=True)
            return None
        return None if is_elsewhere(owner) and time.time() - began > _FORGOTTEN else began

    @property
    def _leases(self) -> Path:
        return self.cache / "used" / "runs"

    def _stamp(self, kind: str, name: str) -> Path:
        return self.cache / "used" / kind / slug(name, 200)


#: Folders of the cache whose entries can be made again. What uv links into environments is counted as uv's.
KINDS = ("archives", "environments", "indexes", "mirrors", "trees", "workspaces")
_UV = "uv"
_ASIDE = ".evicted"
#: Bytes that are freed on a full disk: how many the next attempt takes is not known.
_ROOM = 2 * 1024**3

T = TypeVar("T")


@dataclass(frozen=True)
class Item:
    """Something that can be made again: bytes that go with it, last use, whether it must stay, its removal.

    ``remove`` says whether it is gone; it refuses what has come into use meanwhile.
    """

    kind: str
    name: str
    size: int
    used: float
    protected: bool
    remove: Callable[[], bool]


@dataclass(frozen=True)
class Evicted:
    """How many things were removed, bytes that went with them, and bytes that are left."""

    images: int = 0
    entries: int = 0
    freed: int = 0
    left: int = 0


def evict(items: Iterable[Item], keep: int) -> Evicted:
    """Remove items, the least recently used first, until all together take no more than ``keep`` bytes.

    What is protected counts, and stays.
    """
    known = sorted(items, key=lambda item: (item.used, item.kind, item.name))
    left = sum(item.size for item in known)
    images = entries = freed = 0
    for item in known:
        if left - freed <= keep:
            break
        if not item.protected and item.remove():
            images, entries = images + (item.kind == "images"), entries + (item.kind != "images")
            freed += item.size
    return Evicted(images, entries, freed, left - freed)


def with_room(action: Callable[[], T], items: Callable[[], list[Item]], log: Callable[[str], None]) -> T:
    """Do something that fills a disk; if it is full, remove what was used least recently and try again, once.

    Args:
        action: what to do; it may be called twice.
        items: what can be made again, on the same disk.
        log: is told what was removed.

    Raises:
        InfraError: as ``action``.
    """
    try:
        return action()
    except InfraError as error:
        if error.reason != "disk":
            raise
        known = items()
        done = evict(known, max(sum(item.size for item in known) - _ROOM, 0))
        if not done.images and not done.entries:
            raise
        log(f"the disk is full: removed {told(done)}; trying again")
    return action()


def told(done: Evicted) -> str:
    """Say what was removed."""
    images = f"{done.images} image{'s' * (done.images != 1)}"
    entries = f"{done.entries} cache {'entry' if done.entries == 1 else 'entries'}"
    return f"{images} and {entries}, {size(done.freed)} in all"


def cache_items(cache: Path) -> list[Item]:
    """Return everything in a cache folder that can be made again, with its size on disk.

    What was used since the oldest run under way began is protected: a run holds on to paths.
    """
    uses, seen = Uses(cache), set[tuple[int, int]]()
    since = uses.oldest_run()
    found = [_item(uses, cache / _UV, _UV, since, seen)] if (cache / _UV).is_dir() else []
    for kind in KINDS:
        folder = cache / kind
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        for entry in entries:
            if entry.name.endswith(_ASIDE):
                trees.remove(entry)  # a killed process was at it
            elif not entry.name.startswith("."):
                found.append(_item(uses, entry, kind, since, seen))
    return found


def _item(uses: Uses, entry: Path, kind: str, since: float | None, seen: set[tuple[int, int]]) -> Item:
    noted = uses.last(kind, entry.name)
    used = noted
    if used is None:
        with suppress(OSError):
            used = entry.lstat().st_mtime
    used = used or 0.0
    remove = partial(_remove, uses, entry, kind, noted)
    return Item(kind, entry.name, _size(entry, seen), used, since is not None and used >= since, remove)


def _remove(uses: Uses, entry: Path, kind: str, noted: float | None) -> bool:
    """Take an entry away in one step, unless somebody has used it since it was listed.

    Who uses one notes that first and looks for it then. So a use that is noted after the second look finds
    nothing, and makes the entry again.
    """
    aside = entry.with_name(f".{entry.name}{_ASIDE}")

    if uses.last(kind, entry.name) != noted:
        return False
    try:
        entry.rename(aside)
    except OSError:
        return False  # gone already, or not ours
    if uses.last(kind, entry.name) != noted and not os.path.lexists(entry):
        with suppress(OSError):
            aside.rename(entry)
            return False
    trees.remove(aside)
    uses.forget(kind, entry.name)
    return True


def _size(entry: Path, seen: set[tuple[int, int]]) -> int:
    """Bytes on disk, each file once however many names it has; what vanishes meanwhile does not count."""
    total, pending = 0, [entry]
    while pending:
        here = pending.pop()
        try:
            about = here.lstat()
            if here.is_dir() and not here.is_symlink():
                pending += here.iterdir()
        except OSError:
            continue
        if about.st_nlink > 1 and not here.is_dir():
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
        total += about.st_blocks * 512
    return total
