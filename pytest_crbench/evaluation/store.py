"""The run store: one readable file per stage result, written once, under a lock that a dead holder frees.

In a run (docs/results-format.md), ``evaluations/<dataset>/<instance>/<arm>-<repeat>/`` holds ``review.json``,
``revision.json`` and one ``checks/<check>.json`` per verdict. Each names the key it was made under: a record
whose key differs from the wanted one is not used.
"""

from __future__ import annotations

import hmac
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.errors import STAGE_ERRORS, InfraError, StageError, TamperedError
from ..core.model import added
from ..core.status import Status
from ..host import digest
from ..host.files import json_text, locked, write_bytes
from ..text import plainjson
from ..text.printable import clean
from ..text.secrets import scrubbed_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def _made(name: str, compute: Callable[[], Any]) -> Any:
    """Compute; what the system refuses on the way is nobody's score."""
    try:
        return compute()
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise InfraError(
            f"{name.rsplit('/', 1)[-1]}: the system says: {error.strerror or error}{where}. Give it what it "
            "lacks (space, memory, `ulimit -n`), then finish the run with --crbench-resume "
            "--crbench-rerun-errors.",
            reason="system",
        ) from error


@dataclass(frozen=True)
class Outcome:
    """A stage result: a plain value, or the error that took its place; ``fresh`` if made just now."""

    value: Any
    error: StageError | None
    fresh: bool
    #: What earlier attempts that failed had used up.
    earlier: Mapping[str, float] = field(default_factory=dict)

    def unwrap(self) -> Any:
        """Return the value.

        Raises:
            StageError: the recorded failure, as the class it was raised as.
        """
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True)
class Store:
    """Stage results below one folder; safe for any number of processes on one machine."""

    root: Path
    #: Recorded failures of these statuses are made again; each at most once per invocation.
    rerun: frozenset[Status] = frozenset()
    #: Identifies the invocation, so that a failure made in it is not repeated by every check.
    invocation: str = ""
    #: Known to the processes of the invocation and to no program that they start: seals their records.
    secret: str = field(default="", repr=False)
    #: Whether records of earlier invocations may be here; how those are sealed nobody knows any more.
    resumed: bool = False
    #: Called before anything is made; raises if nothing is to be begun any more.
    permit: Callable[[], None] = lambda: None

    def peek(self, name: str, key: str) -> Outcome | None:
        """Return the recorded result of stage ``name`` if it was made under ``key``."""
        try:
            record = plainjson.parse((self.root / f"{name}.json").read_bytes())
            if record["key"] != key:
                return None
            failure = record.get("error")
            # Half a disk's worth of errors is subtler than half a file.
            if failure is None and digest.of(record["value"]) != record["digest"]:
                return None
            if not self._is_ours(name, record):
                return Outcome(None, self._forged(name), fresh=False)
            earlier = _numbers(record.get("earlier_usage"))
            if failure is None:
                return Outcome(record["value"], None, fresh=False, earlier=earlier)
            status = Status(failure["status"])
            if status in self.rerun and record.get("invocation") != self.invocation:
                return None
            error = STAGE_ERRORS[status](clean(failure["message"]), reason=clean(failure["reason"]))
            error.usage = _numbers(failure.get("usage"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Outcome(None, error, fresh=False, earlier=earlier)

    def stage(
        self,
        name: str,
        key: str,
        compute: Callable[[], Any],
        *,
        log: Callable[[str], None] = lambda _line: None,
        before: Callable[[], None] = lambda: None,
        usable: Callable[[Any], bool] = lambda _value: True,
    ) -> Outcome:
        """Return the result of stage ``name`` under ``key``, computing it if nobody has.

        ``compute`` returns a plain JSON value or raises a `StageError`, which is recorded in its place; so
        is what the system refuses it (no memory, no descriptor, no room), as an `InfraError`. Whoever comes
        while it runs waits and reads the result. ``before`` runs only if it must be computed. A recorded
        value that is not ``usable`` (a file that it names is gone) is computed again.

        Raises:
            InfraError: if the result cannot be written.
        """
        found = self._usable(name, key, usable)
        if found is not None:
            return found
        lock = self.root / ".locks" / f"{name.replace('/', '~')}.lock"
        with locked(lock, log=log, what=name):
            found = self._usable(name, key, usable)
            if found is not None:
                return found
            self.permit()
            if self._damaged(name):
                log(f"{name}: the recorded result is damaged; it is made again")
            before()
            return self._compute(name, key, compute)

    def _usable(self, name: str, key: str, usable: Callable[[Any], bool]) -> Outcome | None:
        found = self.peek(name, key)
        return None if found is None or (found.error is None and not usable(found.value)) else found

    def _damaged(self, name: str) -> bool:
        """Whether there is a record that says nothing: half a file, or not what was written."""
        try:
            record = plainjson.parse((self.root / f"{name}.json").read_bytes())
            return "error" not in record and bool(digest.of(record["value"]) != record["digest"])
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError):
            return True

    def _compute(self, name: str, key: str, compute: Callable[[], Any]) -> Outcome:
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record: dict[str, Any] = {"key": key, "invocation": self.invocation, "started": started}
        earlier = self._used_before(name)
        if earlier:
            record["earlier_usage"] = earlier
        began = time.monotonic()
        try:
            # The same for whoever makes it as for whoever reads it: the next stage's key is made of it.
            value, error = scrubbed_value(_made(name, compute)), None
            record["value"] = value
            record["digest"] = digest.of(json.loads(json_text(value)))
        except StageError as failure:
            value, error = None, failure
            record["error"] = {
                "status": failure.status.value,
                "reason": failure.reason,
                "message": clean(str(failure)),
                "usage": dict(failure.usage),
            }
        record["seconds"] = round(time.monotonic() - began, 3)
        record = scrubbed_value(record)
        if self.secret:
            record["seal"] = self._seal(name, json.loads(clean(json.dumps(record))))
        write_bytes(self.root / f"{name}.json", (json_text(record) + "\n").encode())
        return Outcome(value, error, fresh=True, earlier=earlier)

    def _used_before(self, name: str) -> dict[str, float]:
        """Add up what failed attempts at a stage used that this one replaces."""
        try:
            record = plainjson.parse((self.root / f"{name}.json").read_bytes())
            failed = record["error"].get("usage")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        return added(_numbers(record.get("earlier_usage")), _numbers(failed))

    def _is_ours(self, name: str, record: dict[str, Any]) -> bool:
        if not self.secret or (self.resumed and record.get("invocation") != self.invocation):
            return True
        seal = record.pop("seal", None)
        return isinstance(seal, str) and hmac.compare_digest(seal, self._seal(name, record))

    def _seal(self, name: str, record: dict[str, Any]) -> str:
        return hmac.new(self.secret.encode(), digest.canonical([name, record]), "sha256").hexdigest()

    def _forged(self, name: str) -> TamperedError:
        return TamperedError(
            f"{self.root / name}.json was not written by this run: something that ran on this machine, the "
            "reviewer perhaps, forged a result. Look at what it does, and start a new run",
            reason="store-changed",
        )


def _numbers(value: Any) -> dict[str, float]:
    found = value.items() if isinstance(value, dict) else ()
    return {k: v for k, v in found if isinstance(v, (int, float)) and not isinstance(v, bool)}
