"""What the plugin costs a pytest run that does not use it.

    python bench/plugin_load.py [--rounds 40]

Two measures. *In process*: in many fresh interpreters, after pytest is imported, the time of importing the
plugin and of each of its hooks that such a run calls, and the modules that are loaded because of it. *Whole
process*: runs of one empty test with the plugin and with `-p no:crbench`, in turns; CPU time of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

#: Runs in a fresh interpreter: prints the seconds of each step, and the modules that came with the plugin.
_PROBE = """
import json, sys, time
import pytest
from _pytest.config import get_config
config = get_config()                       # pytest's own plugins, not ours
manager = config.pluginmanager
for name in ("pathlib", "typing", "collections.abc", "__future__", "types"):
    __import__(name)
before = set(sys.modules)
clock = time.perf_counter
times = {}

def step(name, call, *arguments, **keywords):
    began = clock()
    result = call(*arguments, **keywords)
    times[name] = clock() - began
    return result

plugin = step("import", __import__, "pytest_crbench.plugin", fromlist=["plugin"])
manager.unregister = lambda *a, **k: None
step("pytest_addhooks", plugin.pytest_addhooks, manager)
step("pytest_addoption", plugin.pytest_addoption, config._parser)
config.parse([".", "-p", "no:crbench"])     # fills option and ini with their defaults
step("pytest_configure", plugin.pytest_configure, config)
hook = plugin.pytest_cmdline_main
step("pytest_cmdline_main", lambda: hook(config).send(None))
print(json.dumps({"times": times, "modules": sorted(m for m in set(sys.modules) - before)}))
"""


def in_process(rounds: int, folder: Path) -> tuple[dict[str, list[float]], list[str]]:
    """Times of each step in seconds, over fresh interpreters, and the modules of ours that were loaded."""
    times: dict[str, list[float]] = {}
    modules: list[str] = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", _PROBE], cwd=folder, env=_environment(), capture_output=True, check=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        for name, seconds in found["times"].items():
            times.setdefault(name, []).append(seconds)
        modules = [m for m in found["modules"] if m.startswith("pytest_crbench")]
    return times, modules


def whole_process(rounds: int, folder: Path) -> tuple[list[float], list[float]]:
    """Seconds of an empty run with and without the plugin, in turns."""
    (folder / "test_empty.py").write_text("def test_empty():\n    pass\n")
    whole = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_empty.py"]
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(2 * rounds):
        # A B B A: whatever drifts hits both.
        which = (turn // 2 + turn) % 2
        command = [*whole, "-p", "no:crbench" if which else "crbench"][: len(whole) + 2 * which]
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, check=True)
        times[which].append(time.perf_counter() - began)
    return times


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "CRBENCH_"))} | {
        "PYTHONDONTWRITEBYTECODE": ""
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "pytest.ini").write_text("[pytest]\n")
        times, modules = in_process(options.rounds, folder)
        with_plugin, without = whole_process(options.rounds, folder)
    print(f"Python {platform.python_version()}, pytest {pytest.__version__}, {options.rounds} rounds")
    print("in process, medians over fresh interpreters:")
    for name, values in times.items():
        print(f"  {name:<22}{statistics.median(values) * 1000:8.3f} ms   (least {min(values) * 1000:.3f})")
    sums = [sum(step) for step in zip(*times.values(), strict=True)]
    print(f"  {'together':<22}{statistics.median(sums) * 1000:8.3f} ms   (least {min(sums) * 1000:.3f})")
    print(f"  modules: {', '.join(modules)}")
    differences = [a - b for a, b in zip(with_plugin, without, strict=True)]
    print("whole process, pairs of empty runs:")
    for label, values in (("with", with_plugin), ("without", without), ("difference", differences)):
        print(f"  {label:<22}{statistics.median(values) * 1000:8.1f} ms   (least {min(values) * 1000:.1f})")


if __name__ == "__main__":
    main()
