"""What becomes of a check in pytest: its outcome, its form between processes, its line, its log scrubbed."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import StageError
from ..core.records import to_row
from ..core.status import Status
from ..evaluation.plan import unmeasured
from ..run.rundir import shown_path
from ..text.printable import REASON_LIMIT, printable
from ..text.secrets import scrubbed, scrubbed_value
from .collect import VERDICT, CheckItem, Missed, Unmeasured

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from ..core.model import Verdict
    from ..core.settings import Settings

_OURS = f"{__package__}.fixtures"
#: The fixtures that a vendor can replace.
SEAMS = tuple(
    f"crbench_{name}"
    for name in (
        *("reviewer", "agent", "sandbox", "evaluator"),
        *("instance", "check", "review", "revision", "verdict"),
    )
)


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
                for name, record in (("crbench", verdict), ("crbench_review", verdict.review)):
                    row = None if record is None else scrubbed_value(to_row(record))
                    setattr(report, name, json.loads(json.dumps(row)))
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


def junit_properties(config: pytest.Config, verdict: Verdict) -> list[tuple[str, object]]:
    """Return the properties of one test case, which to pytest is a pass, a skip or an error.

    Empty where a JUnit file of the family ``xunit2``, pytest's default, is written: test cases have no
    properties in its schema. The message of a miss or an error begins with the status there.
    """
    if config.getoption("xmlpath", None) and config.getini("junit_family") == "xunit2":
        return []
    found: list[tuple[str, object]] = [("crbench_status", verdict.status.value)]
    if verdict.cause:
        found.append(("crbench_cause", verdict.cause))
    return found


def _log(config: pytest.Config, verdict: Verdict) -> str:
    """Name the log as the user can open it; nothing if there is none."""
    state = config.pluginmanager.get_plugin("crbench-state")
    if state is None or verdict.log is None:
        return ""
    path = state.invocation.run / verdict.log
    return f"\nlog: {shown_path(path)}" if path.is_file() else ""


def _of_error(item: CheckItem, error: BaseException | None) -> Verdict:
    if isinstance(error, Unmeasured):
        return error.verdict
    key = item.key
    if isinstance(error, StageError):
        said = printable(str(error), REASON_LIMIT)
        return unmeasured(item.instance_, item.check, key, error.status, said, cause=error.reason)
    reason = printable(f"internal error: {type(error).__name__}: {error}")
    return unmeasured(item.instance_, item.check, key, Status.INFRA_ERROR, reason, cause="internal")


#: Seconds between two lines: a log of an hour's run stays readable.
EVERY = 30.0


@dataclass
class Progress:
    """Decides when a line is due and what it says."""

    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)

    def line(self, verdicts: Collection[Verdict], selected: int) -> str | None:
        """Return the line that is due now, if one is."""
        now = time.monotonic()
        done = len(verdicts)
        if now - self.said < EVERY or not 0 < done < selected:
            return None
        self.said = now
        measured = [v for v in verdicts if v.status.measured]
        passed = sum(v.status.value == "passed" for v in measured)
        rate = f"{100 * passed / len(measured):.0f} % passed so far" if measured else "none measured so far"
        left = (now - self.began) / done * (selected - done)
        return f"{done} of {selected} done, {rate}, {_duration(left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(round(seconds, -1), 10):.0f} s"
    return f"about {seconds / 60:.0f} min"


class ScrubPlugin:
    """Registered in every process of a run that measures; puts back what it changed at the end."""

    def __init__(self) -> None:
        self._factory = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._record)

    def pytest_unconfigure(self) -> None:
        """Leave logging as it was."""
        if logging.getLogRecordFactory() == self._record:
            logging.setLogRecordFactory(self._factory)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Replace what holds a credential: tracebacks show arguments, captured output what was printed."""
        report = yield
        if report.longrepr is not None:
            text = str(report.longrepr)
            clean = scrubbed(text)
            if clean != text:
                report.longrepr = clean
        report.sections = [(title, scrubbed(content)) for title, content in report.sections]
        return report

    def _record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """HTTP packages log URLs and headers; one record is one text, whatever handler writes it."""
        record = self._factory(*args, **kwargs)
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            return record  # a wrong format of somebody's: logging reports it
        clean = scrubbed(text)
        if clean != text:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            if scrubbed(trace) != trace:
                record.exc_info, record.exc_text = None, scrubbed(trace)
        return record
