"""Calls side by side that an interrupt leaves behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from pytest_crbench.host.pool import Pool


def test_no_more_than_the_width_at_a_time_and_results_in_order() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def call(number: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1
        return number

    with Pool(3) as pool:
        assert [one.result() for one in [pool.submit(call, n) for n in range(12)]] == list(range(12))
    assert most == [3]


def test_an_error_waits_for_the_calls_under_way_and_begins_no_other() -> None:
    going, go_on, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        going.set()
        go_on.wait(30)
        done.append(1)

    def fail() -> None:
        going.wait(30)
        threading.Timer(0.1, go_on.set).start()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Pool(2) as pool:
        asked = [pool.submit(slow), pool.submit(fail), *(pool.submit(slow) for _ in range(50))]
        asked[1].result()
    assert 1 <= len(done) <= 2
    assert all(one.done() for one in asked)


def test_an_interrupt_waits_for_nothing_nor_does_the_end_of_the_program() -> None:
    program = (
        "import threading\n"
        "from pytest_crbench.host.pool import Pool\n"
        "with Pool(2) as pool:\n"
        "    asked = [pool.submit(threading.Event().wait, 60) for _ in range(5)]\n"
        "    raise KeyboardInterrupt\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert "KeyboardInterrupt" in done.stderr
