"""Host programs within bounds."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from support.memory import growing_at_most

from pytest_crbench.core.enclosure import Completed
from pytest_crbench.host.processes import run

ENV = {"PATH": "/usr/bin:/bin"}


def go(code: str, tmp_path: Path, **options: object) -> Completed:
    options.setdefault("timeout", 30.0)
    return run([sys.executable, "-c", code], cwd=tmp_path, env=ENV, **options)  # type: ignore[arg-type]


def alive(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_output_status_and_input(tmp_path: Path) -> None:
    done = go(
        "import sys; d=sys.stdin.read(); print(d*2); sys.stderr.write('e'); sys.exit(3)",
        tmp_path,
        input=b"ab",
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"abab\n", b"e")
    assert not done.timed_out
    assert go("import sys; sys.exit(len(sys.stdin.read()))", tmp_path).returncode == 0


def test_the_environment_is_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "sesame")
    done = go(
        "import os; print(sorted(k for k in os.environ if not k.startswith(('TASK_', 'LC_'))))", tmp_path
    )
    assert done.stdout == b"['PATH']\n"


def test_a_time_out_kills_everything_that_was_started(tmp_path: Path) -> None:
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = [sys.executable, '-c', 'import time; time.sleep(600)  # stray-of-the-test']\n"
        "subprocess.Popen(child)\n"
        "subprocess.Popen(child, start_new_session=True)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)\n"
    )
    done = go(code, tmp_path, timeout=2.0)
    assert done.timed_out
    assert done.returncode is None
    assert done.stdout == b"up\n"
    time.sleep(0.2)
    assert alive("stray-of-the-test") == []


def test_a_child_that_outlives_its_parent_is_killed_and_does_not_hold_us_up(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)  # heir-of-the-test'],"
        " start_new_session=True)\n"
    )
    began = time.monotonic()
    done = go(code, tmp_path)
    assert done.returncode == 0
    assert time.monotonic() - began < 20
    assert alive("heir-of-the-test") == []


def test_a_flood_keeps_head_and_tail_and_little_memory(tmp_path: Path) -> None:
    code = (
        "import sys\nw = sys.stdout.buffer.write\nw(b'head')\n"
        "for _ in range(300): w(b'x' * 1024 * 1024)\nw(b'tail')\n"
    )
    with growing_at_most(64 * 1024**2):
        done = go(code, tmp_path, timeout=120.0, output_limit=100_000)
    assert done.truncated
    assert done.stdout.startswith(b"head")
    assert done.stdout.endswith(b"tail")
    assert b"bytes left out" in done.stdout
    assert len(done.stdout) < 120_000


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 150, 1000])
def test_short_output_is_whole(tmp_path: Path, size: int) -> None:
    done = go(f"print('x' * {size}, end='')", tmp_path, output_limit=100)
    if size <= 100:
        assert done.stdout == b"x" * size
        assert not done.truncated
    else:
        assert done.truncated
        assert done.stdout.count(b"x") >= 99
        assert b"[... %d bytes left out ...]" % (size - 100) in done.stdout


def test_nothing_escapes_while_it_becomes_another_program(tmp_path: Path) -> None:
    """Between two programs (exec) a process shows no environment; this one has left its group as well."""
    nap = f"8{time.time_ns() % 10**9:09d}"
    left = 0
    for _ in range(15):
        done = run(
            ["sh", "-c", f"(setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep {nap} & exit' &)"],
            cwd=tmp_path,
            env=ENV,
            timeout=30,
        )
        left += done.left
    assert alive(nap) == []
    assert left >= 15


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(["/nonexistent"], cwd=tmp_path, env=ENV, timeout=1.0)
