"""What a program under test reads of the processes above it: neither pull request nor check."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from support.benchmarks import MODES, Pull, run, write_dataset

_PEEK = """
import os, pathlib
above, pid = [], os.getpid()
while pid > 1:
    place = pathlib.Path("/proc", str(pid))
    above.append(b"\\n".join((place / name).read_bytes() for name in ("cmdline", "environ", "comm")))
    pid = int((place / "stat").read_text().rpartition(")")[2].split()[1])
(pathlib.Path(__file__).parent / f"seen-{os.getpid()}").write_bytes(b"\\n".join(above))
print("[]")
"""
_OWN = """
import os

import pytest


@pytest.fixture
def crbench_review(crbench_review):
    with open("current", "a") as stream:
        stream.write(os.environ.get("PYTEST_CURRENT_TEST", "-") + "\\n")
    return crbench_review
"""


@pytest.mark.parametrize("mode", ["serial", "xdist"])
def test_no_process_tells_the_check(folder: Path, tmp_path: Path, cache: Path, mode: str) -> None:
    assert find_spec("setproctitle"), "without it there is no title; pip install -e .[test]"
    pulls = [Pull("quagga-4711", hard=("stripes",)), Pull("ibis-0815", hard=("feathers",))]
    data = write_dataset(tmp_path / "data", pulls)
    (folder / "peek.py").write_text(_PEEK)
    (folder / "conftest.py").write_text(_OWN)
    asked = ("--crbench-reviewer=cmd:{python} {cwd}/peek.py", "--crbench-agent=suggestions")
    done = run(folder, data, cache, *asked, *MODES[mode])
    assert done.outcomes() == {"missed": 2}, done.output
    seen = [path.read_bytes() for path in folder.glob("seen-*")]
    assert len(seen) == 2
    for word in (b"quagga", b"stripes", b"ibis", b"feathers"):
        assert not any(word in text for text in seen)
    assert (folder / "current").read_text().split() == ["-", "-"]
