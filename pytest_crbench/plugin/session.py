"""The controller's book-keeping: starts a run, gathers verdicts, asks the gate, sets the exit status."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ..core.errors import CrbenchError
from ..core.records import to_row
from ..core.status import Status
from ..evaluation.plan import unmeasured
from ..host.signals import shield, terminate_as_interrupt
from ..reports.lines import cause_of, isolation_line
from ..run.options import now_called
from ..run.record import agent_label, reviewer_label
from ..run.reports import table
from ..run.run import Run
from ..run.rundir import shown_path
from ..statistics.gate import decide
from ..statistics.results import again
from ..text.printable import printable
from ..text.secrets import scrubbed
from . import distributed
from .fixtures import FixturePlugin
from .given import former_names
from .outcome import Progress, replaced
from .selection import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.model import Check, Instance, Key, Verdict
    from ..core.settings import Settings
    from ..statistics.gate import Decision
    from ..statistics.results import Results
    from .selection import Selection

#: How the verdict is printed, by the gate's outcome.
_COLOURS: dict[str, dict[str, bool]] = {
    "met": {"green": True, "bold": True},
    "not-met": {"red": True, "bold": True},
    "undecided": {"yellow": True, "bold": True},
    "none": {},
}
_DECIDES = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class ControllerSession:
    """What the controller (or the only process) of a run does."""

    def __init__(self, config: pytest.Config, settings: Settings, selection: Selection) -> None:
        self.config = config
        self.settings = settings
        self.selection = selection
        self.session: pytest.Session | None = None
        self.run = Run(settings, selection.datasets, scored=selection.open, say=self._note)
        self.known: dict[str, tuple[Key, Instance, Check]] = {
            planned.node: (planned.key, planned.instance, planned.check) for planned in self.run.planned()
        }
        self.selected: list[str] = []
        self.foreign_failures: set[str] = set()
        #: Checks whose miss is a failure because the user asked for that.
        self.failed_misses: set[str] = set()
        #: Failed reports that are a check without a measurement: what the gate, not pytest, decides about.
        self.own_failures = 0
        self.decision: Decision | None = None
        #: Whether the exit status is another one than the gate's.
        self.overruled = False
        self.results: Results | None = None
        self.interrupted = False
        self.restore: list[Callable[[], None]] = []
        self.progress = Progress()

    # Start ------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Prepare the run before any worker starts: programs, sandbox, run directory."""
        if self.config.option.collectonly:
            return
        self.session = session
        try:
            self.restore.append(terminate_as_interrupt())
            invocation = self.run.start()
        except CrbenchError as error:
            raise pytest.UsageError(f"crbench: {error}") from None
        state = FixturePlugin(self.settings, invocation)
        self.config.pluginmanager.register(state, "crbench-state")

    def pytest_report_header(self) -> list[str]:
        """Say what is evaluated by what."""
        if self.run.invocation is None:
            return []
        record = self.run.record
        named = [(key, node) for node, (key, *_) in self.known.items() if self.selection.names(node)]
        checks = len(named)
        pulls = len({(key.dataset, key.instance) for key, _ in named})
        assert self.session is not None
        labels = {
            "reviewer": reviewer_label(record.reviewer),
            "agent": agent_label(record.agent) if record.agent else "?",
            "sandbox": record.sandbox.name if record.sandbox else "?",
        }
        fixtures = {name.removeprefix("crbench_"): file for name, file in replaced(self.session).items()}
        parts = [
            *(f"{p} {f'of a fixture in {fixtures[p]}' if p in fixtures else labels[p]}" for p in labels),
            *([f"matching by {record.matcher.name}"] if record.matcher else []),
            f"{pulls} pull request{'s' * (pulls != 1)}, {checks} check{'s' * (checks != 1)}",
        ]
        isolation = [] if "sandbox" in fixtures else filter(None, [isolation_line(record.sandbox)])
        line = ", ".join(printable(scrubbed(part), 80) for part in parts)
        renamed = (
            f"--crbench-{name} is now --crbench-{now_called(name)}" for name in former_names(self.config)
        )
        return [f"crbench: {one}" for one in (line, *isolation, *renamed)]

    # Selection --------------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what is selected, where this process runs the items itself."""
        if not distributed.is_distributing(self.config):
            self.select([item.nodeid for item in session.items])

    def select(self, ids: Sequence[str]) -> None:
        """Note the node ids that will run; what was deselected is not part of the run."""
        self.selected = [node for node in ids if node in self.known]
        if self.run.files is not None and self.selected:
            note(self.run.record, self.selected, self.known)
            self.run.files.record(self.run.record)

    # Verdicts ---------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep every verdict as it comes; a measurement beats a crash of the worker that made it."""
        ours = report.nodeid in self.known
        self._note_fixtures(getattr(report, "crbench_fixtures", {}))
        row = getattr(report, "crbench", None)
        if row is not None:
            self._keep(again(row, getattr(report, "crbench_review", None), "a report"))
        elif ours and report.failed and self.known[report.nodeid][0] not in self.run.verdicts:
            key, instance, check = self.known[report.nodeid]
            crashed = str(report.when) == "???"
            reason = "the worker crashed" if crashed else "failed outside its stages"
            cause = "worker-crashed" if crashed else "outside"
            lost = unmeasured(instance, check, key, Status.INFRA_ERROR, reason, cause=cause)
            self._keep(lost)
        if report.failed and row is not None and row["status"] == Status.MISSED.value:
            self.failed_misses.add(report.nodeid)
        elif report.failed and (not ours or report.when == "teardown"):
            self.foreign_failures.add(report.nodeid)
        elif report.failed:
            self.own_failures += 1

    def _note_fixtures(self, found: dict[str, str]) -> None:
        """Record which fixtures are not ours as soon as it is known: a killed run must tell it too."""
        if self.run.files is not None and not found.items() <= self.run.record.fixtures.items():
            self.run.record.fixtures = {**self.run.record.fixtures, **found}
            self.run.files.record(self.run.record)

    def _keep(self, verdict: Verdict) -> None:
        if not self.run.keep(verdict):
            return
        review = self.run.reviews[verdict.review.id] if verdict.review else None
        self.config.hook.pytest_crbench_verdict(
            config=self.config, row=to_row(verdict), review=review and to_row(review)
        )
        line = self.progress.line(self.run.verdicts.values(), len(self.selected))
        if line is not None and self.config.get_verbosity() >= 0:
            self._note(line)

    # End --------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """From here on it is about results and clean-up: an impatient second Ctrl-C must not cost them."""
        if self.run.invocation is not None:
            self.restore.append(shield(self._note))
            self.interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the results, decide once, and set the exit status."""
        if self.run.files is None or not self.selected:
            return
        for report in distributed.late_reports(self.config):
            if hasattr(report, "crbench"):
                self.pytest_runtest_logreport(report)
        self.results = self.results_so_far(exitstatus)
        summary, *more = self.results.summaries
        self.decision = decide(self.run.gate, summary, self.results, more)
        wanted = self.decision.exit_status
        others = self._others(session)
        if exitstatus in _DECIDES and wanted is not None and not others:
            session.exitstatus = wanted
        if wanted is not None and (others or session.exitstatus != wanted):
            why = others or "the run was interrupted"
            verdict = f"{self.decision.verdict}; but {why}, exit status {int(session.exitstatus)}"
            self.decision = replace(self.decision, verdict=verdict)
            self.overruled = True
        self.run.write(self.results, self.decision)
        self._tell_once()

    def _tell_once(self) -> None:
        """Let pytest's list of errors, which comes next, tell each cause once."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        first: dict[tuple[str, str, str], str] = {}
        for report in reporter.stats.get("error", ()) if reporter is not None else ():
            if row := getattr(report, "crbench", None):
                cause = cause_of(row)
                if first.setdefault(cause, report.nodeid) != report.nodeid:
                    report.longrepr = f"{row['status']}: the same as {first[cause]}"

    def results_so_far(self, exitstatus: int) -> Results:
        """Return the results with the verdicts that have come."""
        planned = {}
        for node in self.selected:
            key, instance, check = self.known[node]
            planned[key] = instance.facets(check)
        return self.run.results(planned, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        if self.results is None or self.run.invocation is None:
            return
        terminalreporter.section("crbench", sep="-")
        # Where pytest itself says why something was skipped or expected to fail.
        misses = self.config.get_verbosity() > 0 or terminalreporter.hasopt("xfailed")
        width = min(terminalreporter._tw.fullwidth, 100)
        lines = table(self.results, self.decision, shown_path(self.run.invocation.run), width, misses)
        for line in lines:
            terminalreporter.write_line(scrubbed(line))
        extra = self.config.hook.pytest_crbench_summary(config=self.config, results=to_row(self.results.run))
        for lines in extra:
            for line in lines or ():
                terminalreporter.write_line(printable(scrubbed(str(line))))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Remove what is left, then print the one verdict, last."""
        self.run.close(interrupted=self.interrupted)
        while self.restore:
            self.restore.pop()()
        if self.decision is not None:
            colour = _COLOURS["not-met" if self.overruled else self.decision.outcome]
            self._note(self.decision.verdict, **colour)
        elif self.config.option.collectonly:
            self._note("--collect-only: nothing was run, and nothing was gated")
        elif self.selection.datasets and self.run.invocation and self.run.gate.asked and not self.interrupted:
            self._note("UNDECIDED, no check was selected; the exit status is pytest's")

    def _others(self, session: pytest.Session) -> str:
        """Say what failed that is not a check's measurement; "" if nothing did."""
        misses, count = len(self.failed_misses), len(self.foreign_failures)
        found = [f"{misses} check{'s' * (misses > 1)} missed (--crbench-fail-on-miss)"] if misses else []
        if count:
            found.append(f"{count} other test{'s' * (count > 1)} failed")
        elif session.testsfailed > self.own_failures + misses:
            # A file that cannot be collected, and what other plugins count as a failure (coverage of code).
            found.append("something else failed")
        return " and ".join(found)

    def _note(self, text: str, **markup: bool) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            if reporter._tw.width_of_current_line:  # under pytest-xdist, pytest does not know its own dots
                reporter._tw.line()
            reporter.write_line(f"crbench: {printable(scrubbed(text), 2000)}", **markup)
