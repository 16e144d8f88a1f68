"""A verdict as a result row: plain JSON types, so that it survives any process boundary, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..core.errors import UsageError
from ..core.model import Arm, Key, Verdict
from ..core.status import Status
from ..text.plainjson import plain

#: The keys of a row that make its identity, in the order that rows are sorted by.
IDENTITY = ("dataset", "instance", "check", "scoring", "repeat", "arm")

#: Counts of what became of a review's comments, and of which count each is a part.
_PARTS = {
    **dict.fromkeys(("matched", "line_matched", "duplicates", "placeless", "unlabelled"), "comments"),
    "rejected": "rejected_of",
}
_MATCHED = (*_PARTS, "comments", "references", "rejected_of", "hunks", "abstained")
_MOST = 10**9


def to_row(verdict: Verdict) -> dict[str, Any]:
    """Return the row of a verdict, in the key order of the published schema."""
    key = verdict.key
    row = {
        "dataset": key.dataset,
        "instance": key.instance,
        "check": key.check,
        "scoring": key.scoring,
        "repeat": key.repeat,
        "arm": key.arm,
        "status": verdict.status,
        "reason": verdict.reason,
        "cause": verdict.cause,
        "facets": verdict.facets,
        "check_digest": verdict.check_digest,
        "keys": verdict.keys,
        "environment": verdict.environment,
        "sandbox": verdict.sandbox,
        "stop_reason": verdict.stop_reason,
        "durations": verdict.durations,
        "usage": verdict.usage,
        "review": verdict.review,
        "matching": verdict.matching,
        "warnings": verdict.warnings,
        "log": verdict.log,
    }
    return cast("dict[str, Any]", plain(row))


def from_row(row: Mapping[str, Any], *, where: str = "result row") -> Verdict:
    """Return the verdict of a row; keys that this version does not know are left aside.

    Args:
        row: a row as `to_row` makes it.
        where: what to name in an error: a file and a line.

    Raises:
        UsageError: a key is missing or holds what it cannot.
    """
    read = _Reader(row, where)
    return Verdict(
        key=key_from_row(row, where=where),
        status=read.status(),
        reason=read.text("reason"),
        facets={name: str(value) for name, value in read.mapping("facets").items()},
        check_digest=read.text("check_digest"),
        keys={name: str(value) for name, value in read.mapping("keys", optional=True).items()},
        environment=read.maybe("environment"),
        sandbox=read.maybe("sandbox"),
        stop_reason=read.maybe("stop_reason"),
        durations=read.numbers("durations"),
        usage={
            stage: _Reader(read.mapping("usage"), f"{where}, key 'usage'").numbers(stage)
            for stage in read.mapping("usage", optional=True)
        },
        review=dict(read.mapping("review", optional=True)),
        matching=read.matching(),
        warnings=tuple(str(line) for line in read.sequence("warnings")),
        log=read.maybe("log"),
        cause=read.maybe("cause") or "",
    )


def key_from_row(row: Mapping[str, Any], *, where: str = "result row") -> Key:
    """Return the identity of a row.

    Raises:
        UsageError: a key is missing or holds what it cannot.
    """
    read = _Reader(row, where)
    return Key(
        dataset=read.text("dataset"),
        instance=read.text("instance"),
        check=read.text("check"),
        scoring=read.text("scoring"),
        repeat=read.whole("repeat"),
        arm=cast("Arm", read.text("arm")),
    )


def key_to_row(key: Key) -> dict[str, Any]:
    """Return the identity of a verdict as plain JSON."""
    return {name: plain(getattr(key, name)) for name in IDENTITY}


def sort_key(key: Key) -> tuple[str, str, str, str, int, str]:
    """What verdicts are sorted by in every file."""
    return (key.dataset, key.instance, key.check, key.scoring, key.repeat, key.arm)


class _Reader:
    """Takes typed values out of a row, naming the place and the key of what does not fit."""

    def __init__(self, row: Mapping[str, Any], where: str) -> None:
        if not isinstance(row, Mapping):
            raise UsageError(f"{where}: expected an object, found {type(row).__name__}")
        self.row = row
        self.where = where

    def fail(self, name: str, wanted: str) -> UsageError:
        found = repr(self.row[name])[:80] if name in self.row else "nothing"
        return UsageError(
            f"{self.where}, key {name!r}: expected {wanted}, found {found}. "
            "Use a file that pytest-crbench wrote (docs/results-format.md)."
        )

    def text(self, name: str) -> str:
        value = self.row.get(name)
        if not isinstance(value, str):
            raise self.fail(name, "a text")
        return value

    def maybe(self, name: str) -> str | None:
        return None if self.row.get(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        value = self.row.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.fail(name, "a whole number of at least 1")
        return value

    def status(self) -> Status:
        try:
            return Status(self.text("status"))
        except ValueError:
            raise self.fail("status", "one of " + ", ".join(Status)) from None

    def mapping(self, name: str, *, optional: bool = False) -> Mapping[str, Any]:
        value = self.row.get(name)
        if value is None and optional:
            return {}
        if not isinstance(value, Mapping):
            raise self.fail(name, "an object")
        return value

    def numbers(self, name: str) -> dict[str, float]:
        found = self.mapping(name, optional=True)
        for value in found.values():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.fail(name, "an object of numbers")
        return dict(found)

    def matching(self) -> dict[str, Any]:
        """What matching counted: whole numbers that make sense, or nothing could be made of their sums."""
        found = dict(self.mapping("matching", optional=True))
        counts = {name: found[name] for name in _MATCHED if found.get(name) is not None}
        if not all(type(n) is int and 0 <= n <= _MOST for n in counts.values()):
            raise self.fail("matching", f"counts from 0 to {_MOST:,} of {', '.join(_MATCHED)}")
        for part, of in _PARTS.items():
            if counts.get(part, 0) > counts.get(of, 0):
                raise self.fail("matching", f"no more {part} than {of}")
        sorts = found.get("categories") or {}
        if not isinstance(sorts, dict) or not all(type(n) is int and 0 <= n <= _MOST for n in sorts.values()):
            raise self.fail("matching", "categories as an object of counts")
        return found

    def sequence(self, name: str) -> list[Any]:
        value = self.row.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fail(name, "a list")
        return value
