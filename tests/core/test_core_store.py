"""The run store: computed once, readable whole, and free again when a holder dies."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from pytest_crbench.core.errors import InfraError, ReviewerError
from pytest_crbench.core.status import OUTSIDE_FAILURES, Status
from pytest_crbench.evaluation.store import Store
from pytest_crbench.host.files import write_atomic

FORK = multiprocessing.get_context("fork")


def _worker(root: Path, key: str, seconds: float, answers: object) -> None:
    lines: list[str] = []

    def compute() -> dict[str, int]:
        with (root / "computed").open("a") as stream:
            stream.write("x")
        time.sleep(seconds)
        return {"pid": os.getpid()}

    outcome = Store(root).stage("a/review", key, compute, log=lines.append)
    answers.put((outcome.value["pid"], outcome.fresh, lines))  # type: ignore[attr-defined]


def test_two_processes_compute_once_and_the_loser_says_that_it_waited(tmp_path: Path) -> None:
    answers = FORK.Queue()
    workers = [FORK.Process(target=_worker, args=(tmp_path, "k", 0.5, answers)) for _ in range(4)]
    for worker in workers:
        worker.start()
    found = [answers.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join()
    assert (tmp_path / "computed").read_text() == "x"
    assert len({pid for pid, _, _ in found}) == 1
    assert sorted(fresh for _, fresh, _ in found) == [False, False, False, True]
    waited = [lines for _, fresh, lines in found if not fresh and lines]
    assert waited
    assert all("a/review: waiting for another worker" in lines for lines in waited)


def test_a_killed_holder_frees_the_lock_and_leaves_no_half_result(tmp_path: Path) -> None:
    answers = FORK.Queue()
    holder = FORK.Process(target=_worker, args=(tmp_path, "k", 60.0, answers))
    holder.start()
    while not (tmp_path / "computed").exists():
        time.sleep(0.01)
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert Store(tmp_path).peek("a/review", "k") is None
    outcome = Store(tmp_path).stage("a/review", "k", lambda: {"pid": 1})
    assert outcome.fresh
    assert outcome.value == {"pid": 1}


def test_another_key_is_another_result(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.stage("s", "one", lambda: 1).value == 1
    assert store.stage("s", "one", lambda: 2).value == 1
    assert store.stage("s", "two", lambda: 3).value == 3


def test_a_failure_is_recorded_and_raised_again_as_what_it_was(tmp_path: Path) -> None:
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise ReviewerError("it crashed \ud800", reason="crashed")

    for _ in range(2):
        with pytest.raises(ReviewerError, match="it crashed") as caught:
            Store(tmp_path).stage("s", "k", fail).unwrap()
        assert caught.value.reason == "crashed"
    assert len(calls) == 1


def test_rerun_repeats_outside_failures_once_per_invocation(tmp_path: Path) -> None:
    def fail() -> None:
        raise InfraError("the registry is down")

    Store(tmp_path, invocation="first").stage("s", "k", fail)
    again = Store(tmp_path, rerun=OUTSIDE_FAILURES, invocation="second")
    assert again.stage("s", "k", fail).fresh
    assert not again.stage("s", "k", lambda: 1).fresh
    third = Store(tmp_path, rerun=OUTSIDE_FAILURES, invocation="third")
    assert third.stage("s", "k", lambda: 1).unwrap() == 1

    def crash() -> None:
        raise ReviewerError("mine")

    third.stage("r", "k", crash)
    fourth = Store(tmp_path, rerun=OUTSIDE_FAILURES, invocation="fourth")
    assert not fourth.stage("r", "k", lambda: 1).fresh


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"key": "k"}',
        b'{"key": "k", "error": {"status": "odd"}}',
        b"[" * 100_000,
        b'{"key": "k", "value": 8, "digest": "of another value"}',
        b'{"key": "k", "value": 8}',
    ],
)
def test_a_half_written_or_foreign_record_is_computed_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.json").write_bytes(content)
    assert Store(tmp_path).stage("s", "k", lambda: 7).value == 7
    assert json.loads((tmp_path / "s.json").read_text())["value"] == 7


def test_what_the_system_refuses_is_infrastructure_and_recorded(tmp_path: Path) -> None:
    def refused() -> None:
        (tmp_path / "nothing" / "there").read_bytes()

    with pytest.raises(InfraError, match=r"the system says: No such file or directory \(.*there\)") as caught:
        Store(tmp_path).stage("a/s", "k", refused).unwrap()
    assert caught.value.reason == "system"
    with pytest.raises(InfraError, match="the system says"):
        Store(tmp_path).stage("a/s", "k", lambda: 1).unwrap()


def test_a_value_that_cannot_be_used_is_computed_again(tmp_path: Path) -> None:
    said: list[str] = []
    store = Store(tmp_path)
    assert store.stage("s", "k", lambda: "old \ud800 surrogate").fresh
    assert not store.stage("s", "k", lambda: "new", log=said.append).fresh
    assert store.stage("s", "k", lambda: "new", usable=lambda value: value == "new").value == "new"
    assert said == [], "it is not damaged"


def test_an_interrupt_is_not_recorded(tmp_path: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).stage("s", "k", interrupted)
    assert Store(tmp_path).stage("s", "k", lambda: 1).value == 1


def test_a_folder_that_cannot_be_written_is_an_infra_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match="cannot write") as caught:
        write_atomic(tmp_path / "file" / "x.json", b"{}")
    assert "--crbench-run-dir" in str(caught.value)


def test_what_failed_attempts_used_is_kept_with_what_came_of_the_last(tmp_path: Path) -> None:
    def fail() -> None:
        error = InfraError("down", reason="endpoint")
        error.usage = {"calls": 2, "cost": 0.5}
        raise error

    for number in range(2):
        store = Store(tmp_path, rerun=frozenset(Status), invocation=str(number))
        found = store.stage("stage", "key", fail)
        assert found.error is not None
        assert found.error.usage == {"calls": 2, "cost": 0.5}
    again = Store(tmp_path, invocation="1").stage("stage", "key", fail)
    assert again.error is not None
    assert again.error.usage == {"calls": 2, "cost": 0.5}
    assert again.earlier == {"calls": 2, "cost": 0.5}
    store = Store(tmp_path, rerun=frozenset(Status), invocation="2")
    for _ in range(2):
        made = store.stage("stage", "key", lambda: "made")
        assert (made.value, made.earlier) == ("made", {"calls": 4, "cost": 1.0})
