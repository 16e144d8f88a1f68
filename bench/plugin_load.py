"""What the plugin costs a pytest run that does not use it.

    python bench/plugin_load.py [--rounds 40]

Two measures. *Its own steps*: in fresh interpreters, a run of one empty test with a clock around the import
and each of its hooks. *Whole run*: the same with the plugin and with `-p no:crbench`, in turns.
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
from pathlib import Path

import pytest

#: Runs pytest in a fresh interpreter, with a clock around each step that is the plugin's: prints the
#: milliseconds of each, and which modules came with it. Reading the arguments costs more with more options:
#: that is timed with and without the plugin, in `whole_process`.
_PROBE = """
import functools, importlib.metadata, json, os, sys, time
import pytest

clock = getattr(time, sys.argv[1])
times = {}


def timed(name, call):
    @functools.wraps(call)
    def measured(*arguments, **keywords):
        began = clock()
        try:
            return call(*arguments, **keywords)
        finally:
            times[name] = times.get(name, 0.0) + (clock() - began) * 1000
    return measured


load = importlib.metadata.EntryPoint.load
came = []


def loading(entry):
    if entry.name != "crbench":
        return load(entry)
    before = set(sys.modules)
    plugin = timed("import", load)(entry)
    came.extend(set(sys.modules) - before)
    plugin.pytest_configure = timed("pytest_configure", plugin.pytest_configure)
    begin_conftests = plugin.pytest_load_initial_conftests

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(early_config, parser, args):
        steps = begin_conftests(early_config, parser, args)
        timed("pytest_load_initial_conftests", next)(steps)
        result = yield
        timed("pytest_load_initial_conftests", next)(steps, None)
        return result

    plugin.pytest_load_initial_conftests = pytest_load_initial_conftests
    return plugin


importlib.metadata.EntryPoint.load = loading
out = sys.stdout
sys.stdout = open(os.devnull, "w")
status = pytest.main(["-q", "-p", "no:cacheprovider", "test_empty.py"])
assert status == 0, status
came += [m for m in sys.modules if m.startswith("pytest_crbench")]
print(json.dumps({"times": times, "modules": sorted(set(came))}), file=out)
"""


def in_process(rounds: int, folder: Path, clock: str) -> tuple[dict[str, list[float]], list[str]]:
    """Milliseconds of each step over fresh interpreters by a clock of `time`, and the modules that came."""
    times: dict[str, list[float]] = {}
    modules: list[str] = []
    for _ in range(rounds):
        command = [sys.executable, "-c", _PROBE, clock]
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        for name, spent in found["times"].items():
            times.setdefault(name, []).append(spent)
        modules = found["modules"]
    return times, modules


def whole_process(rounds: int, folder: Path) -> dict[str, list[float]]:
    """CPU milliseconds of a run of one empty test with and without the plugin, in turns."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_empty.py"]
    kinds = {"with": command, "without": [*command, "-p", "no:crbench"]}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(rounds):
        # A B, B A: whatever drifts hits both.
        for name in sorted(kinds, reverse=bool(turn % 2)):
            before = _children()
            subprocess.run(kinds[name], cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, check=True)
            times[name].append((_children() - before) * 1000)
    return times


def _children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


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
        (folder / "test_empty.py").write_text("def test_empty():\n    pass\n")
        print(f"Python {platform.python_version()}, pytest {pytest.__version__}, {options.rounds} rounds")
        for clock, label in (("thread_time", "CPU time"), ("perf_counter", "wall time")):
            times, modules = in_process(options.rounds, folder, clock)
            print(f"the plugin's own steps in a run that does not use it, {label}:")
            for name, values in times.items():
                _line(name, values)
            _line("together", [sum(step) for step in zip(*times.values(), strict=True)])
        print(f"modules that came with it: {', '.join(modules)}")
        whole = whole_process(options.rounds, folder)
        print("a whole run of one empty test, CPU time:")
        for name, values in whole.items():
            _line(name, values)
        _line("difference in pairs", [a - b for a, b in zip(whole["with"], whole["without"], strict=True)])


def _line(name: str, values: list[float]) -> None:
    print(f"  {name:<32}median {statistics.median(values):8.3f} ms   least {min(values):8.3f} ms")


if __name__ == "__main__":
    main()
