"""Files of a revision that steer how pytest runs.

The naive harness writes the hidden test into the revised tree and trusts the exit status of a plain pytest.
"""

from __future__ import annotations

from support.arena import HEAD, HIDDEN, UNTOUCHED, Arena, Files, Plain

from pytest_crbench.core.status import Status

FORGE = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
"""


def naive(plain_sandbox: Plain, revision: Files) -> bool:
    """Whether a plain harness takes the revision for a fix."""
    with plain_sandbox({**HEAD, "tests/test_tax.py": HIDDEN, **revision}) as sandbox:
        command = [sandbox.python, "-m", "pytest", "tests/test_tax.py"]
        return sandbox.exec(command, timeout=60).returncode == 0


def assert_inert(arena: Arena, revision: Files) -> None:
    ruling = arena.rule(revision)
    assert (ruling.status, ruling.reason) == (Status.MISSED, UNTOUCHED)


def test_conftest_at_the_root_rewrites_reports(arena: Arena, plain_sandbox: Plain) -> None:
    """A conftest.py at the tree's root wraps pytest_runtest_makereport and turns each failure into a pass.

    Defence: own root and conftest (runners/inside/launch.py)
    Holds: docker, local
    """
    revision = {"conftest.py": FORGE}
    assert naive(plain_sandbox, revision)
    assert_inert(arena, revision)
