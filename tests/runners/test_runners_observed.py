"""What a run of a hidden test shows; tests/attacks is about those who would bend it."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_crbench.core.model import Environment, File
from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.core.status import Status
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.sandbox.local import LocalBackend
from pytest_crbench.scoring.tests import pytest_runner
from pytest_crbench.scoring.tests.decide import check_head, verdict_of
from pytest_crbench.scoring.tests.pytest_runner import PytestRunner

RIGHT = ("shop/tax.py", "def tax():\n    return 'right'\n")


def test_head_fails_in_its_call_phase_and_a_fix_passes(bench: Any) -> None:
    head = bench.observe()
    check_head(head)
    assert (head.outcome, head.exception, head.canaries) == ("failed", "AssertionError", "behaved")
    assert head.modules == 2
    fixed = bench.observe(RIGHT)
    assert verdict_of(fixed) == (Status.PASSED, "")
    assert fixed.proper


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import sys\nsys.exit(0)\n", ""),
        ("raise RuntimeError('at import')\n", "RuntimeError"),
        ("def tax():\n    import unittest\n    raise unittest.SkipTest('no')\n", "skipped"),
        ("def tax():\n    import pytest\n    pytest.exit('no', 0)\n", ""),
        ("def tax():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n", "crashed"),
        ("def tax(:\n", "SyntaxError"),
    ],
)
def test_ends_that_are_no_pass(bench: Any, source: str, reason: str) -> None:
    status, said = verdict_of(bench.observe(("shop/tax.py", source)))
    assert status is Status.MISSED
    assert reason in said


def test_a_hanging_test_is_ended(bench: Any) -> None:
    observed = bench.observe(("shop/tax.py", "import time\ndef tax():\n    time.sleep(600)\n"), timeout=3.0)
    assert observed.ending == "timed-out"
    assert verdict_of(observed) == (Status.MISSED, "the test run timed out after the revision")


def test_the_run_is_the_same_whatever_the_host(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SECRET_KEY", "sesame")
    monkeypatch.setenv("PYTHONPATH", str(bench.head))
    test = (
        "import os, time, sys\n\n\ndef test_tax():\n"
        "    assert time.tzname[0] == 'UTC'\n"
        "    assert 'SECRET_KEY' not in os.environ and 'PYTHONPATH' not in os.environ\n"
        "    raise ValueError(hash('tax'), sorted(os.environ))\n"
    )
    first, second = bench.observe(test=test), bench.observe(test=test)
    assert first.exception == "ValueError"
    assert first.message == second.message


def test_a_structural_test_runs_with_the_tree_off_the_path(bench: Any) -> None:
    test = (
        "import pathlib, sys\n\n\ndef test_tax():\n"
        "    assert 'wrong' in pathlib.Path('shop/tax.py').read_text()\n"
        "    here = pathlib.Path.cwd()\n"
        "    raise LookupError([p for p in sys.path if pathlib.Path(p) in (here, *here.parents)])\n"
    )
    assert bench.observe(test=test, kind="structural").message == "LookupError: []"
    assert "LookupError: [" in bench.observe(test=test).message
    assert bench.observe(test=test).message != "LookupError: []"


_P = "import pytest\n\n\n"
_A = "def test_a():\n    pass\n"
_MARKED = "@pytest.mark.{0}\ndef test_a({1}):\n    {2}\n"


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        (_A + "\n\ndef test_b():\n    pass\n", "passed"),
        (_A + "\n\ndef test_b():\n    assert 0\n", "failed"),
        ("class TestIt:\n    def test_a(self):\n        pass\n", "passed"),
        (_P + _MARKED.format("parametrize('n', [1, 2])", "n", "assert n"), "passed"),
        (_P + _MARKED.format("parametrize('n', [1, 0])", "n", "assert n"), "failed"),
        (_P + _MARKED.format("skip", "", "pass") + "\n\ndef test_b():\n    pass\n", "skipped"),
        (_P + _MARKED.format("xfail", "", "assert 0"), "skipped"),
        (_P + _MARKED.format("xfail", "", "pass"), "skipped"),
        (_P + "@pytest.fixture\ndef f():\n    assert 0\n\n\ndef test_a(f):\n    pass\n", "error"),
        (_P + "@pytest.fixture\ndef f():\n    yield\n    assert 0\n\n\ndef test_a(f):\n    pass\n", "error"),
        # Functions that are not the ones their file defines by name, as tests of good faith have them, too.
        ("def twice(f):\n    return lambda: f() or f()\n\n\n@twice\n" + _A, "passed"),
        (_A + "\n\ntest_a = (lambda f: lambda: f())(test_a)\n", "passed"),
        (_A + "\n\ndef test_a():\n    assert 0\n", "failed"),
        ("def helper():\n    pass\n", "absent"),
        ("if 0:\n    def test_a():\n        pass\n", "absent"),
        (_A + "\n\ndel test_a\n", "absent"),
    ],
)
def test_what_counts_as_a_pass(bench: Any, test: str, outcome: str) -> None:
    assert bench.observe(test=test).outcome == outcome


def test_changes_are_applied_as_they_are(bench: Any) -> None:
    (bench.head / "data").mkdir()
    (bench.head / "data" / "old.txt").write_text("old")
    (bench.head / "link").symlink_to("shop")
    test = (
        "import base64, os, pathlib\n\n\ndef test_tax():\n"
        "    assert pathlib.Path('data').read_bytes() == bytes(range(256))\n"
        "    assert pathlib.Path('link/tax.py').read_bytes() == b'x = 1\\r\\n'\n"
        "    assert not pathlib.Path('link').is_symlink()\n"
        "    assert os.readlink('new') == 'shop/tax.py'\n"
        "    assert os.access('run.sh', os.X_OK) and not os.access('shop/tax.py', os.X_OK)\n"
        "    assert not pathlib.Path('shop/__init__.py').exists()\n"
    )
    observed = bench.observe(
        File("data", bytes(range(256))),
        File("link/tax.py", b"x = 1\r\n"),
        File("new", b"shop/tax.py", "120000"),
        File("run.sh", b"#!/bin/sh\n", "100755"),
        deleted=("data/old.txt", "link", "shop/__init__.py"),
        test=test,
        kind="structural",
    )
    assert observed.outcome == "passed", observed.message


@pytest.mark.parametrize(
    ("path", "steers"),
    [
        ("json.py", True),
        ("src/json/__init__.py", True),
        ("difflib.py", True),
        ("src/_pytest/__init__.py", True),
        ("json/__init__.cpython-311-x86_64-linux-gnu.so", True),
        ("json", True),  # it may be a link to a package
        # Without its __init__ a folder hides no module: inert, or of a package of the product's own.
        ("src/packaging/new.py", False),
        ("statistics/templates/report.py", False),
        ("site/index.md", False),
        ("secrets.json", False),
        ("pluggy.py", True),
        ("shop/json.py", False),
        ("conftest.py", False),
        ("pyproject.toml", False),
        ("src/shop/tax.py", False),
        ("docs/json.py", False),
    ],
)
def test_what_steers_and_cannot_be_made_inert(path: str, steers: bool) -> None:
    assert PytestRunner().steers(path, Environment(import_roots=("src", "."))) is steers


@pytest.mark.parametrize("how", ["spaces", "link"])
def test_odd_paths_of_the_cache_without_bubblewrap(bench: Any, cache: Path, tmp_path: Path, how: str) -> None:
    """There the import roots are paths of the host: pytest splits its setting as a shell would."""
    folder = tmp_path / "John's cäche"
    if how == "link":
        folder.symlink_to(cache)
    else:
        folder.mkdir()
        for shared in ("uv", "pins"):
            (cache / shared).mkdir(parents=True, exist_ok=True)
            (folder / shared).symlink_to(cache / shared)
    settings = settings_from_environment(SandboxSettings(cache=folder, session=secrets.token_hex(8)))
    backend = LocalBackend(settings, bubblewrap_program="")
    check_head(bench.observe(backend=backend))
    assert verdict_of(bench.observe(RIGHT, backend=backend)) == (Status.PASSED, "")


def test_another_module_that_decides_is_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = Path(pytest_runner.__file__).parent
    copy = tmp_path / "tests"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(pytest_runner, "__file__", str(copy / "pytest_runner.py"))
    version = pytest_runner.own_version.__wrapped__
    known = {version()}
    for name in ("decide.py", "observe.py", "inside/recorder.py"):
        with (copy / name).open("a") as stream:
            stream.write("# more\n")
        known.add(version())
    assert len(known) == 4
