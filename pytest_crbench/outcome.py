"""The shape of a check's outcome in pytest's reports, and its form on the wire between processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .collect import CheckItem
from .core.errors import CrbenchError, StageError
from .core.identity import unmeasured
from .core.row import from_row, to_row
from .core.secrets import scrubbed_value
from .core.status import Status
from .core.text import REASON_LIMIT, printable
from .junit import junit_properties
from .rundir import shown_path

if TYPE_CHECKING:
    from collections.abc import Generator

    from .core.model import Verdict
    from .settings import Settings

_OURS = f"{__package__}.fixtures"
#: The fixtures that a vendor can replace.
SEAMS = tuple(
    f"crbench_{name}"
    for name in (
        *("reviewer", "agent", "sandbox", "evaluator"),
        *("instance", "check", "review", "revision", "verdict"),
    )
)
#: Where the fixture leaves the verdict for the report.
VERDICT = pytest.StashKey["Verdict"]()


def replaced(node: pytest.Item | pytest.Session) -> dict[str, str]:
    """Return the seams that are not ours at a node, by name, each with the file that defines it.

    Asks pytest which definition holds there: a fixture may come from any conftest file or plugin, and its
    function may have another name.
    """
    found = {}
    for name in SEAMS:
        definitions = node.session._fixturemanager.getfixturedefs(name, node) or ()
        module = getattr(definitions[-1].func, "__module__", "") if definitions else _OURS
        if module != _OURS:
            file = Path(getattr(getattr(definitions[-1].func, "__code__", None), "co_filename", ""))
            root = node.config.rootpath
            found[name] = file.relative_to(root).as_posix() if file.is_relative_to(root) else module
    return found


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
            report.crbench_fixtures = replaced(item)  # type: ignore[attr-defined]
            verdict = self._shape(item, call, report)
            if verdict is not None:
                item.user_properties += junit_properties(item.config, verdict)
                report.user_properties += junit_properties(item.config, verdict)
                # One unserialisable value would end a whole xdist run (pytest-xdist#1273, #1157).
                row = scrubbed_value(to_row(verdict))
                report.crbench = json.loads(json.dumps(row))  # type: ignore[attr-defined]
        return report

    def _shape(
        self, item: CheckItem, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> Verdict | None:
        error = call.excinfo.value if call.excinfo is not None else None
        found = item.stash.get(VERDICT, None)
        if report.when == "setup" and (report.failed or (error is not None and found is not None)):
            # Also where a fixture, or a mark, would have a verdict that was made look like a skip.
            report.outcome = "failed"
            verdict = found if found is not None and not found.status.measured else _of_error(item, error)
            if verdict is found or isinstance(error, Unmeasured | StageError):
                report.longrepr = f"{verdict.status.value}: {verdict.reason}{_log(item.config, verdict)}"
            return verdict
        if report.when != "call":
            return None
        if (
            found is not None
            and found.status is Status.MISSED
            and (report.passed or isinstance(error, Missed))
        ):
            # Also where a hook kept the check from telling it.
            reason = printable(found.reason)
            if self.fail_on_miss:
                report.outcome, report.longrepr = "failed", f"missed: {reason}"
            else:
                report.outcome = "skipped"
                report.wasxfail = f"missed: {reason}"
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


def usable(item: CheckItem, verdict: Verdict | None) -> Verdict:
    """Return the recorded verdict of a check, or the one that stands for there being none."""
    if verdict is None:
        said = (
            "no verdict was recorded: a fixture crbench_verdict that replaces ours must take ours as argument"
        )
    elif verdict.key != item.key:
        said = f"the verdict is of {verdict.key.instance}::{verdict.key.check}: a fixture replaced ours"
    else:
        try:
            # One that no result file could hold would end the whole run.
            return from_row(to_row(verdict), where="the verdict")
        except CrbenchError as error:
            said = str(error)
    reason = printable(said, REASON_LIMIT)
    return unmeasured(item.instance_, item.check, item.key, Status.INFRA_ERROR, reason, cause="fixture")


def _of_error(item: CheckItem, error: BaseException | None) -> Verdict:
    if isinstance(error, Unmeasured):
        return error.verdict
    key = item.key
    if isinstance(error, StageError):
        said = printable(str(error), REASON_LIMIT)
        return unmeasured(item.instance_, item.check, key, error.status, said, cause=error.reason)
    reason = printable(f"internal error: {type(error).__name__}: {error}")
    return unmeasured(item.instance_, item.check, key, Status.INFRA_ERROR, reason, cause="internal")
