"""The plugin in a run that does not ask for it, and in one that only collects: nothing happens."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import command, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Ends the run with what is loaded and registered; loaded as a plugin of its own.
SPY = """
import json, os, sys

def pytest_unconfigure(config):
    manager = config.pluginmanager
    # A plugin without a name has its id() for one: its class tells more.
    names = sorted(
        type(plugin).__name__ if name.isdigit() else name
        for name, plugin in manager.list_name_plugin()
        if plugin is not None
    )
    with open(os.environ["SPY_OUT"], "w") as stream:
        json.dump({"modules": sorted(sys.modules), "plugins": names}, stream)
"""
#: Makes every connection and every process an error that no code of ours catches.
FORBID = """
import socket, subprocess, os

class Forbidden(BaseException):
    pass

def refuse(what):
    def refused(*arguments, **keywords):
        os.write(2, f"FORBIDDEN {what} {arguments[1:] or arguments}\\n".encode())
        raise Forbidden(what)
    return refused

socket.socket.connect = refuse("connect")
socket.socket.connect_ex = refuse("connect_ex")
socket.getaddrinfo = refuse("getaddrinfo")
subprocess.Popen.__init__ = refuse("process")
os.posix_spawn = os.system = os.fork = refuse("process")
"""


def spied(folder: Path, *arguments: str) -> dict[str, list[str]]:
    """Run one test of a vendor's own; what was loaded and registered at its end."""
    (folder / "spy.py").write_text(SPY)
    (folder / "test_own.py").write_text("def test_own():\n    pass\n")
    out = folder / "spy.json"
    whole = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "spy",
        "-p",
        "no:cacheprovider",
        *arguments,
        "test_own.py",
    ]
    env = {
        **environment(),
        "SPY_OUT": str(out),
        "PYTHONPATH": str(folder),
    }
    subprocess.run(whole, cwd=folder, env=env, check=True, capture_output=True, timeout=60)
    found: dict[str, list[str]] = json.loads(out.read_text())
    return found


def test_loading_it_imports_two_modules_and_registers_nothing_else(folder: Path) -> None:
    without = spied(folder, "-p", "no:crbench")
    loaded = spied(folder)
    came = set(loaded["modules"]) - set(without["modules"])
    assert came == {"pytest_crbench", "pytest_crbench.plugin"}
    assert set(loaded["plugins"]) - set(without["plugins"]) == {"crbench"}


def test_a_run_that_asks_for_it_loads_more(folder: Path, mixed: Path, cache: Path) -> None:
    """The same measure sees the difference: it is able to fail."""
    asked = ["--crbench-reviewer=human", f"--crbench-dataset={mixed}"]
    loaded = spied(folder, *asked, f"--crbench-cache={cache}", "--collect-only")
    assert {"pydantic", "pytest_crbench.plugin.activate", "pytest_crbench.plugin.collect"} <= set(
        loaded["modules"]
    )
    assert "crbench-session" in loaded["plugins"]
    # Collecting needs the datasets, not what runs them.
    assert not {"docker", "openai", "git", "jinja2", "requests"} & set(loaded["modules"])


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[tuple[str, list[bytes]]]:
    """A socket where DOCKER_HOST says the engine is; notes whoever connects."""
    came: list[bytes] = []
    # A path of a socket has at most some hundred characters.
    place = os.path.relpath(tmp_path / "engine.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen()
        server.settimeout(0.1)
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                came.append(b"connected")
                client.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"unix://{tmp_path / 'engine.sock'}", came
        finally:
            done.set()
            thread.join()


def collect(
    folder: Path, dataset: Path | None, cache: Path, host: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest where connections and processes are forbidden, unless an argument allows them."""
    (folder / "forbid.py").write_text(FORBID)
    whole = command(dataset, cache, "--crbench-reviewer=human", "--crbench-sandbox=docker", *arguments)
    env = {**environment(), "DOCKER_HOST": host, "PYTHONPATH": str(folder)}
    return subprocess.run(
        whole, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("bundled", [False, True], ids=["own dataset", "bundled dataset"])
def test_collecting_calls_no_engine_and_no_network(
    folder: Path, mixed: Path, cache: Path, engine: tuple[str, list[bytes]], bundled: bool
) -> None:
    host, came = engine
    done = collect(folder, None if bundled else mixed, cache, host, "-p", "forbid", "--collect-only", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("44 tests collected" if bundled else "3 tests collected") in done.stdout
    assert "FORBIDDEN" not in done.stderr
    assert came == []
    assert not (folder / ".crbench").exists()


def test_a_real_run_would_have_been_seen(
    folder: Path, mixed: Path, cache: Path, engine: tuple[str, list[bytes]]
) -> None:
    """Both alarms ring where the run is not only collected."""
    host, came = engine
    agent = "--crbench-agent=suggestions"
    assert "FORBIDDEN connect" in collect(folder, mixed, cache, host, agent, "-p", "forbid").stderr
    assert came == []
    assert "no Docker engine answers" in collect(folder, mixed, cache, host, agent).stderr
    assert came != []
