"""When things in the cache, and images, were last used, and which runs live: what decides about eviction.

A stamp is an empty file whose time is the last use; it costs one system call to renew. Images have one too:
an engine keeps no such time, and no label of an image can change.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..text import plainjson
from ..text.printable import slug
from .owner import is_elsewhere, is_gone, own_token

if TYPE_CHECKING:
    from collections.abc import Callable
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
