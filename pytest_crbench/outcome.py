"""The shape of a check's outcome in pytest's reports, and its form on the wire between processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from .collect import CheckItem
from .core.errors import CrbenchError, StageError
from .core.identity import unmeasured
from .core.model import Verdict
from .core.row import from_row, to_row
from .core.secrets import scrubbed_value
from .core.status import Status
from .core.text import REASON_LIMIT, printable
from .junit import junit_properties
from .rundir import shown_path

if TYPE_CHECKING:
    from collections.abc import Generator

    from .settings import Settings

#: Where the fixture leaves the verdict for the report.
VERDICT = pytest.StashKey["Verdict"]()


class Missed(Exception):
    """The hidden test does not pass after the revision: a measurement, not a fault."""


class Unmeasured(Exception):
    """The check has no measurement; carries the verdict that says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.status.value}: {verdict.reason}")
        self.verdict = verdict


class OutcomePlugin:
    """Gives reports of check items their shape, in whichever process the item ran."""

    def __init__(self, settings: Settings) -> None:
        self.fail_on_miss = settings.fail_on_miss

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the verdict to the report that is decisive, as plain JSON types."""
        report = yield
        if isinstance(item, CheckItem):
            verdict = self._shape(item, call, report)
            if verdict is not None:
                item.user_properties += junit_properties(verdict)
                report.user_properties += junit_properties(verdict)
                # One unserialisable value would end a whole xdist run (pytest-xdist#1273, #1157).
                row = scrubbed_value(to_row(verdict))
                report.crbench = json.loads(json.dumps(row))  # type: ignore[attr-defined]
        return report

    def _shape(
        self, item: CheckItem, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> Verdict | None:
        error = call.excinfo.value if call.excinfo is not None else None
        if report.when == "setup" and report.failed:
            verdict = _of_error(item, error)
            if isinstance(error, Unmeasured | StageError):
                report.longrepr = f"{verdict.status.value}: {verdict.reason}{_log(item.config, verdict)}"
            return verdict
        if report.when != "call":
            return None
        found = item.stash.get(VERDICT, None)
        if isinstance(error, Missed):
            reason = printable(str(error))
            if self.fail_on_miss:
                report.longrepr = f"missed: {reason}"
            else:
                report.outcome = "skipped"
                report.wasxfail = f"missed: {reason}"
        elif found is None and report.passed:
            # Somebody overrode crbench_verdict: what it gives is the verdict, or there is none.
            value = item.funcargs.get("crbench_verdict")
            return _readable(item, value) if isinstance(value, Verdict) else None
        return found

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Show a miss as ``m`` / ``MISSED``."""
        row = getattr(report, "crbench", None)
        if row and row["status"] == Status.MISSED.value and report.outcome == "skipped":
            return "missed", "m", ("MISSED", {"yellow": True})
        return None


def _log(config: pytest.Config, verdict: Verdict) -> str:
    """Name the log as the user can open it; nothing if there is none."""
    state = config.pluginmanager.get_plugin("crbench-state")
    if state is None or verdict.log is None:
        return ""
    path = state.invocation.run / verdict.log
    return f"\nlog: {shown_path(path)}" if path.is_file() else ""


def _readable(item: CheckItem, value: Verdict) -> Verdict:
    """A verdict of a vendor's own that no result file could hold would end the whole run."""
    try:
        return from_row(to_row(value), where="the fixture crbench_verdict")
    except CrbenchError as error:
        said = printable(str(error), REASON_LIMIT)
        return unmeasured(item.instance_, item.check, item.key, Status.INFRA_ERROR, said, cause="fixture")


def _of_error(item: CheckItem, error: BaseException | None) -> Verdict:
    if isinstance(error, Unmeasured):
        return error.verdict
    key = item.key
    if isinstance(error, StageError):
        said = printable(str(error), REASON_LIMIT)
        return unmeasured(item.instance_, item.check, key, error.status, said, cause=error.reason)
    reason = printable(f"internal error: {type(error).__name__}: {error}")
    return unmeasured(item.instance_, item.check, key, Status.INFRA_ERROR, reason, cause="internal")
