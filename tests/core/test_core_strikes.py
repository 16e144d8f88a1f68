"""Equal failures in a row: which are equal, what begins the row anew, and what one is told."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from pytest_crbench.core.errors import InfraError, ReviewerError, StageError
from pytest_crbench.evaluation.context import Strikes


def ask(strikes: Strikes, error: StageError | None) -> str:
    """``asked`` or ``spared``."""
    calls: list[int] = []

    def make() -> int:
        calls.append(1)
        if error is not None:
            raise error
        return 1

    with contextlib.suppress(StageError):
        strikes.ask(make)
    return "asked" if calls else "spared"


def crash(words: str) -> ReviewerError:
    return ReviewerError(words, reason="crashed")


ROWS = {
    "numbers and paths differ": ([crash("no key, /a/1 7"), crash("no key, /b/2 89")], "spared"),
    "other words": ([crash("no key"), crash("no disk")], "asked"),
    "a review between them": ([crash("no key"), None, crash("no key")], "asked"),
    "a time-out between them": ([crash("x"), ReviewerError("x", reason="timeout"), crash("x")], "asked"),
    "of one pull request": ([ReviewerError("no file", reason="missing")] * 5, "asked"),
    "outside failures": ([InfraError("401", reason="reviewer-outside")] * 2, "spared"),
    "a full disk": ([InfraError("full", reason="disk")] * 5, "asked"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_failures(tmp_path: Path, row: str) -> None:
    errors, then = ROWS[row]
    strikes = Strikes(tmp_path / "errors.json", "one", 2)
    assert [ask(strikes, error) for error in errors] == ["asked"] * len(errors)
    assert ask(strikes, None) == then
    assert ask(Strikes(strikes.path, "a later invocation", 2), None) == "asked"


def test_without_a_limit_it_is_always_asked(tmp_path: Path) -> None:
    strikes = Strikes(tmp_path / "errors.json", "one")
    assert [ask(strikes, crash("no key")) for _ in range(20)] == ["asked"] * 20


@pytest.mark.parametrize(
    ("error", "reason"),
    [(crash("no key"), "not-asked"), (InfraError("401", reason="reviewer-outside"), "reviewer-outside")],
)
def test_what_is_said_of_the_rest(tmp_path: Path, error: StageError, reason: str) -> None:
    """The same status, so that nothing leaves the rate that would not have."""
    strikes = Strikes(tmp_path / "errors.json", "one", 1)
    ask(strikes, error)
    with pytest.raises(type(error), match="not asked: the reviewer failed 1 times in a row") as caught:
        strikes.ask(lambda: 1)
    assert caught.value.reason == reason
    assert str(error) in str(caught.value)
