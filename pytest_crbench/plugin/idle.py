"""Runs that name tests of the user's own and no dataset: what is refused there, and what stays silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from . import distributed

if TYPE_CHECKING:
    from collections.abc import Sequence


_OVER = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class Dormant:
    """Registered where only the ini file names a reviewer: the run is none of ours."""

    @pytest.fixture
    def crbench_evaluate(self) -> None:
        """Say how to turn the benchmark on."""
        pytest.fail(
            "crbench is off because only paths of your own tests are given: add --crbench-reviewer=SPEC",
            pytrace=False,
        )


class Unused:
    """Registered where the command line has an option of ours: refuses a run in which no test asks for us.

    A test of the user's own may, by a fixture such as ``crbench_evaluate``: only collection shows it. The
    controller of a distributed run collects nothing, and hears of it at the end.
    """

    def __init__(self, config: pytest.Config, option: str, paths: Sequence[str]) -> None:
        self.config = config
        self.asked = False
        self.refusal = (
            f"crbench: --crbench-{option} is given, but no benchmark would run: {' '.join(paths)} name no "
            "check, and no test there asks for one. Name a dataset (--crbench-dataset=PATH) or a "
            "check, or leave the option out"
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Look for a test that uses a fixture of ours."""
        if distributed.is_distributing(self.config):
            return
        names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
        self.asked = any(name.startswith("crbench_") for name in names)
        if distributed.is_worker(self.config):
            self.config.workeroutput["crbench_asked"] = self.asked  # type: ignore[attr-defined]
        elif not self.asked:
            raise pytest.UsageError(self.refusal)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take a worker's answer."""
        self.asked |= getattr(node, "workeroutput", {}).get("crbench_asked", False)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Refuse at the end where the workers collected."""
        if not distributed.is_distributing(self.config) or self.asked:
            return
        if exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why, where the workers collected."""
        if distributed.is_distributing(self.config) and not self.asked:
            terminalreporter.write_line(f"ERROR: {self.refusal}", red=True)
