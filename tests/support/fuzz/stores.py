# ruff: noqa: E501
"""Files that we wrote ourselves, as a crash, a full disk or somebody else may have left them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pytest_crbench.core.errors import InfraError, StageError
from pytest_crbench.core.model import Review, ReviewComment, Revision
from pytest_crbench.core.status import Status
from pytest_crbench.evaluation import records
from pytest_crbench.evaluation.store import Store
from pytest_crbench.host import digest
from pytest_crbench.models.completion import CompletionCache
from pytest_crbench.models.usage import Ledger, Price, Usage
from pytest_crbench.sandbox import interpreters, pins
from pytest_crbench.sandbox.folder import owner_of
from pytest_crbench.sources.writer import Cache
from pytest_crbench.workspace import repository

from .shapes import altered, anything, json_text, mutated, sometimes, table
from .source import Maker, Source, either, listed, one_of, text, whole
from .target import Target, refused

_NUMBER = sometimes(whole(0, 9), 4)


def targets() -> list[Target]:
    """Reading what lies in a run's folder and in the cache."""
    return [
        Target("stage-record", _files(_record, _SOUND_RECORD), _read_record),
        Target("review-record", sometimes(_review, 6, anything), _read_review),
        Target("revision-record", sometimes(_revision, 6, anything), _read_revision),
        Target("ledger", _files(_usage, b'{"calls": 1, "prompt_tokens": 5}'), _read_ledger, cost=2),
        Target(
            "completion-cache",
            _files(table({"response": anything}), b'{"response": {"choices": []}}'),
            _completion,
        ),
        Target("cache-records", _files(_cached, b'{"pins": ["a==1"], "digest": "x"}'), _read_cached, cost=2),
    ]


def _files(value: Maker, sound: bytes) -> Maker:
    return either(
        json_text(value), mutated([sound]), json_text(altered([json.loads(sound)])), json_text(anything)
    )


_SOUND_RECORD = json.dumps(
    {"key": "k", "value": {"a": 1}, "digest": digest.of({"a": 1}), "seconds": 1.0}
).encode()


def _record(source: Source) -> Any:
    value = anything(source)
    failure = table(
        {
            "status": either(one_of(*Status), text),
            "message": one_of("failed", "\ud800"),
            "reason": one_of("x"),
        },
        20,
    )
    made = table(
        {
            "key": one_of("k", "other"), "value": lambda _s: value, "invocation": text, "seconds": _NUMBER,
            "digest": lambda _s: digest.of(value), "error": sometimes(one_of(None), 3, failure), "seal": text,
        },
        20,
    )  # fmt: skip
    return made(source)


def _read_record(raw: bytes, folder: Path) -> None:
    """A record that is not whole counts as absent, and is made again; replaying says that it cannot."""
    (folder / "stage.json").write_bytes(raw)
    for secret in ("", "s"):
        store = Store(folder, secret=secret)
        found = store.peek("stage", "k")
        with refused(StageError):
            if found is not None:
                assert not secret or found.error is not None
                found.unwrap()
    with refused(StageError):
        records.recorded(folder / "stage.json")
    shutil.rmtree(folder / ".locks", ignore_errors=True)
    outcome = Store(folder, secret="s").stage("stage", "k", lambda: {"new": 1})
    if outcome.fresh:
        assert Store(folder, secret="s").peek("stage", "k") is not None


def _comment(source: Source) -> Any:
    return table(
        {
            "id": text, "body": text, "path": either(one_of(None), text), "lines": listed(_NUMBER, 3), "side": one_of("left", "right"),
            "level": one_of("inline"), "suggestion": text, "flags": listed(text, 2), "severity": text, "rule": text,
        },
        20,
    )(source)  # fmt: skip


def _review(source: Source) -> Any:
    return table(
        {
            "comments": listed(_comment, 3), "reviewer": text, "raw": text, "warnings": listed(text, 2),
            "duration": _NUMBER, "usage": table({"cost": _NUMBER}),
        },
        20,
    )(source)  # fmt: skip


def _revision(source: Source) -> Any:
    patch = one_of("revision.patch", "../x", "/etc/passwd", "a\0b", "")
    return table(
        {
            "patch": patch, "sha256": one_of(digest.of_bytes(b"p"), "0"), "agent": text, "stop_reason": text,
            "warnings": listed(text, 2), "duration": _NUMBER, "usage": table({"cost": _NUMBER}),
        },
        20,
    )(source)  # fmt: skip


def _read_review(plain: Any, _folder: Path) -> None:
    """What is read as a review is one, and is the same when it is written and read again."""
    with refused(InfraError):
        review = records.review_from(plain)
        assert isinstance(review, Review)
        assert all(isinstance(c, ReviewComment) and isinstance(c.body, str) for c in review.comments)
        written = json.loads(json.dumps(records.review_to(review)))
        again = records.review_from(written)
        assert records.review_to(again) == records.review_to(review)
        records.review_counts(review)


def _read_revision(plain: Any, folder: Path) -> None:
    (folder / "revision.patch").write_bytes(b"p")
    with refused(InfraError):
        assert records.has_patch(plain, folder) in (True, False)
        revision = records.revision_from(plain, folder)
        assert isinstance(revision, Revision)
        assert revision.patch == b"p"
        again = records.revision_from(json.loads(json.dumps(records.revision_to(revision))), folder)
        assert records.revision_to(again) == records.revision_to(revision)


def _usage(source: Source) -> Any:
    names = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
    return table({name: sometimes(whole(0, 99), 3) for name in names})(source)


def _read_ledger(raw: bytes, folder: Path) -> None:
    """An unknown sum is not 0; a known one can be added to, and bounds the run."""
    path = folder / "ledger.json"
    path.write_bytes(raw)
    ledger = Ledger(path, total_tokens=50, total_cost=0.5, price=Price(1, 1))
    with refused(InfraError):
        before = ledger.spent()
        with refused(InfraError):
            ledger.check()
        ledger.add(Usage(calls=1, prompt_tokens=7))
        assert ledger.spent() == before + Usage(calls=1, prompt_tokens=7)


def _completion(raw: bytes, folder: Path) -> None:
    cache = CompletionCache(folder)
    key = cache.key({"a": 1})
    place = folder / key[:2] / f"{key}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(raw)
    assert isinstance(cache.get(key), dict | None)


def _cached(source: Source) -> Any:
    pinned = [source.pick(["a==1", "-r x", "b==2\n-e .", "", "\ud800"]) for _ in range(source.below(3))]
    return table(
        {
            "pins": sometimes(lambda _s: pinned), "digest": lambda _s: digest.of(pinned), "files": _NUMBER, "python": text,
            "stamp": text, "base": text, "head": text, "diff": one_of(digest.of_bytes(b"")), "session": text, "owner": text,
        },
        20,
    )(source)  # fmt: skip


def _read_cached(raw: bytes, folder: Path) -> None:
    """Whatever a record in the cache says, it says that all is there, or it counts as absent."""
    place = folder / "trees" / "key"
    (place / "tree").mkdir(parents=True, exist_ok=True)
    (place / "diff").write_bytes(b"")
    for name in ("record.json", "ids.json", "owner.json", interpreters.COMPLETE):
        (place / name).write_bytes(raw)
    found = pins.remembered_pins(place / "record.json")
    assert found is None or all(isinstance(pin, str) and "\n" not in pin for pin in found)
    assert interpreters.is_whole(place) in (True, False)
    assert set(owner_of(place)) == {"session", "owner"}
    repository.load_workspace(place)
    for verify in (True, False):
        Cache(folder, offline=True, verify=verify, log=lambda _line: None).find("key")
