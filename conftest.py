"""What every test of this repository may use, and what becomes of tests whose surroundings are missing.

A test marked ``docker`` or ``network`` is skipped, with the reason, where there is no engine with the base
image, or no package index. In a build that must have them such a skip is a failure instead:
CRBENCH_REQUIRE_DOCKER=1, CRBENCH_REQUIRE_NETWORK=1.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent
# Whole runs are started a thousand times: without byte code each compiles all that it imports, for seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")


@pytest.fixture
def repo_root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def aacr_data() -> Path:
    """The folder of AACR-Bench's files, which are not part of this repository (CRBENCH_TEST_AACR)."""
    folder = Path(os.environ.get("CRBENCH_TEST_AACR") or ROOT.parent / "shared" / "data" / "aacr")
    if not (folder / "positive_samples.json").is_file():
        pytest.skip(f"AACR-Bench's data is not in {folder} (CRBENCH_TEST_AACR names another folder)")
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the session, also over the workers of xdist: each environment is built once.

    Building one needs the package index. CRBENCH_TEST_CACHE keeps the cache for the next session.
    """
    _demand("network", _no_network())
    if kept := os.environ.get("CRBENCH_TEST_CACHE"):
        return Path(kept)
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "crbench-cache"


def pytest_configure() -> None:
    """A background job of a shell ignores SIGINT, and so would all runs that tests start and interrupt."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is marked ``long`` to the sessions that take everything: CRBENCH_TEST_WHOLE=1."""
    if os.environ.get("CRBENCH_TEST_WHOLE"):
        return
    left = [item for item in items if item.get_closest_marker("long")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for need, missing in _NEEDS.items():
        if item.get_closest_marker(need) is None:
            continue
        _demand(need, missing())


def _demand(need: str, missing: str) -> None:
    if missing and _required(need):
        pytest.fail(f"{_variable(need)} is set, but {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for need in _NEEDS:
        ran, skipped = _counts(terminalreporter, need)
        if ran or skipped:
            terminalreporter.write_line(f"{need} tests: {ran} run, {skipped} skipped")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A required Docker test that skipped itself for another reason fails the build as well."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.exitstatus != pytest.ExitCode.OK:
        return
    # Some local sandboxes promise less, and say so: those skips need the network, and are no failure.
    if _required("docker") and _counts(reporter, "docker")[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _counts(reporter: pytest.TerminalReporter, need: str) -> tuple[int, int]:
    """How many tests with a marker ran, and how many were skipped."""

    def number(*outcomes: str) -> int:
        reports = [r for outcome in outcomes for r in reporter.stats.get(outcome, [])]
        return len({r.nodeid for r in reports if need in getattr(r, "keywords", {})})

    return number("passed", "failed", "error", "xfailed", "xpassed"), number("skipped")


def _variable(need: str) -> str:
    return f"CRBENCH_REQUIRE_{need.upper()}"


def _required(need: str) -> bool:
    return os.environ.get(_variable(need), "") not in ("", "0")


@functools.cache
def _no_docker() -> str:
    """Why Docker tests cannot run; empty if they can. Asked at most once per process."""
    from docker.errors import ImageNotFound

    from pytest_crbench.core.errors import InfraError
    from pytest_crbench.sandbox.engine import connect

    try:
        connect(timeout=10).inspect_image(BASE_IMAGE)
    except InfraError as error:
        return str(error)
    except ImageNotFound:
        return f"the Docker engine has no image {BASE_IMAGE} (.ci/engine makes it)"
    return ""


@functools.cache
def _no_network() -> str:
    """Why tests that need the package index cannot run; empty if they can."""
    from urllib.parse import urlsplit

    import requests

    from pytest_crbench.host.indexes import IndexSettings

    index = IndexSettings.from_environment()
    url = index.urls()[0].rstrip("/") + "/iniconfig/"
    verify = str(index.ca_bundle) if index.ca_bundle else True
    try:
        answer = requests.get(url, timeout=20, verify=verify, stream=True)
    except (requests.RequestException, OSError) as error:
        return f"no package index answers at {urlsplit(url).hostname} ({type(error).__name__})"
    with answer:
        return (
            "" if answer.ok else f"the package index at {urlsplit(url).hostname} answers {answer.status_code}"
        )


_NEEDS: dict[str, Callable[[], str]] = {"docker": _no_docker, "network": _no_network}
