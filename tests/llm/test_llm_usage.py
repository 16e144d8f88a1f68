"""Prices, usage and the ledger of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.models.usage import Ledger, Price, Usage

if TYPE_CHECKING:
    from pathlib import Path


def test_price() -> None:
    price = Price.parse("0.25:2")
    assert price.cost(Usage(prompt_tokens=1_000_000, completion_tokens=500_000)) == pytest.approx(1.25)


@pytest.mark.parametrize("text", ["", "1", "1:2:3", "a:b", "-1:2", "nan:1", "1:inf"])
def test_a_bad_price_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="IN:OUT"):
        Price.parse(text)


def test_usage_adds_up_and_travels() -> None:
    one = Usage(calls=1, prompt_tokens=2, completion_tokens=3, cached_tokens=1)
    assert (one + one).tokens == 10
    assert Usage.from_dict(json.loads(json.dumps(one.as_dict()))) == one


def test_the_ledger_ends_a_run_by_tokens(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.json", total_tokens=10)
    ledger.check()
    ledger.add(Usage(calls=1, prompt_tokens=9))
    ledger.check()
    ledger.add(Usage(calls=1, completion_tokens=1))
    with pytest.raises(InfraError, match="--crbench-llm max-total-tokens=10") as caught:
        ledger.check()
    assert caught.value.reason == "budget"


def test_the_ledger_ends_a_run_by_cost(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.json", total_cost=0.5, price=Price(1.0, 1.0))
    ledger.add(Usage(calls=1, prompt_tokens=499_999))
    ledger.check()
    ledger.add(Usage(calls=1, prompt_tokens=1))
    with pytest.raises(InfraError, match="--crbench-llm max-total-cost"):
        ledger.check()


def test_an_unreadable_ledger_is_not_zero(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text("{")
    with pytest.raises(InfraError, match="usage"):
        Ledger(tmp_path / "usage.json", total_tokens=1).check()


def test_two_processes_share_one_ledger(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from pytest_crbench.models.usage import Ledger\n"
        "from pytest_crbench.models.usage import Usage\n"
        "for _ in range(40):\n"
        "    Ledger(pathlib.Path(sys.argv[1])).add(Usage(calls=1, prompt_tokens=3))\n"
    )
    path = tmp_path / "usage.json"
    both = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(2)]
    assert [p.wait(60) for p in both] == [0, 0]
    assert Ledger(path).spent() == Usage(calls=80, prompt_tokens=240)
