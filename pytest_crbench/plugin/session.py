"""The controller's book-keeping: starts a run, gathers verdicts, asks the gate, sets the exit status."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import CrbenchError
from ..core.status import Status
from ..doctor.preflight import check_machine, check_sandbox
from ..evaluation.identity import unmeasured
from ..evaluation.lock import LockFile
from ..evaluation.plan import plan_of
from ..host import temporary
from ..host.processes import SESSION_VARIABLE, kill_marked, kill_orphans
from ..host.signals import shield, terminate_as_interrupt
from ..host.stamps import Uses
from ..reports.lines import cause_of, isolation_line
from ..run import assemble, lockstep, programs
from ..run.inputs import run_inputs
from ..run.record import agent_label, image_of, made_by, now, reviewer_label, run_record
from ..run.reports import RunFiles, make_gate, table
from ..run.rundir import (
    chosen_sandbox,
    find_run,
    hide_from_git,
    new_name,
    read_record,
    shown_path,
    write_record,
)
from ..statistics.gate import check_metrics, decide
from ..statistics.results import Results
from ..statistics.row import from_row, to_row
from ..text.printable import printable
from ..text.secrets import scrubbed
from . import distributed
from .fixtures import FixturePlugin
from .outcome import replaced
from .progress import Progress
from .selection import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.model import Check, Instance, Key, Verdict
    from ..core.settings import Settings
    from ..statistics.gate import Decision, Gate
    from .selection import Selection

#: Seconds after which an engine has done what an interrupted request asked of it.
_SETTLE = 0.5
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
        self.invocation: assemble.Invocation | None = None
        self.files: RunFiles | None = None
        self.record: dict[str, Any] = {}
        self.known: dict[str, tuple[Key, Instance, Check]] = {
            planned.node: (planned.key, planned.instance, planned.check)
            for planned in plan_of(settings).all_of(selection.datasets)
        }
        self.selected: list[str] = []
        self.verdicts: dict[str, Verdict] = {}
        self.foreign_failures: set[str] = set()
        #: Checks whose miss is a failure because the user asked for that.
        self.failed_misses: set[str] = set()
        #: Failed reports that are a check without a measurement: what the gate, not pytest, decides about.
        self.own_failures = 0
        self.gate: Gate = make_gate(settings)
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
            self.invocation = self._start()
            self.files = RunFiles(self.invocation.run, self._note)
        except CrbenchError as error:
            raise pytest.UsageError(f"crbench: {error}") from None
        state = FixturePlugin(self.settings, self.invocation)
        self.config.pluginmanager.register(state, "crbench-state")

    def _start(self) -> assemble.Invocation:
        settings = self.settings
        check_machine(settings)
        replay = find_run(settings.run_dir, settings.replay) if settings.replay else None
        # Both must be there before anything is built: a missing key is told now, not after an hour.
        session = secrets.token_hex(8)
        reviewer = programs.make_reviewer(settings, replay, session=session)
        scorings = assemble.scorings_of(settings, self.selection.datasets or self.selection.open)
        agent = programs.make_agent(settings, None, replay, scorings)
        check_metrics(self.gate, scorings)
        deciders = assemble.make_deciders(settings, None, scorings)
        wanted = assemble.needed_sandbox(settings, reviewer, scorings)
        # Inherited by the workers, and by all that any of us starts: what is left at the end is killed.
        os.environ[SESSION_VARIABLE] = session
        run = (
            find_run(settings.run_dir, settings.resume) if settings.resume else settings.run_dir / new_name()
        )
        sandbox = chosen_sandbox(run) if settings.resume and wanted == "auto" else wanted
        backend = assemble.make_backend(settings, sandbox, session, self._note)
        self.restore.append(Uses(settings.cache).begin(session))
        kill_orphans()
        temporary.reap()
        backend.reap()
        programs.reap_reviewers(settings, session)
        check_sandbox(backend, [i for d in self.selection.datasets for i in d.instances])
        described = backend.describe()
        datasets = self.selection.datasets
        inputs = run_inputs(settings, datasets, reviewer, agent, described, deciders)
        self.record = run_record(settings, datasets, reviewer, agent, described, inputs, deciders.values())
        hide_from_git(settings.run_dir)
        if settings.resume:
            told = lockstep.resume(run, inputs, backend)
            self.record = {**read_record(run), "options": self.record["options"], "resumed": True}
        else:
            told = lockstep.replay(replay, inputs) if replay else []
            LockFile(run).write(inputs)
        if settings.rerun_errors == "all":
            told = [*told, "errors of the reviewer were repeated (--crbench-rerun-errors=all)"]
        self.record.setdefault("name", run.name)
        if told:
            self.record["notes"] = list(dict.fromkeys([*self.record.get("notes", []), *told]))
        if replay:
            self.record["replay_of"] = replay.name
            self.record["fixtures"] = {
                name: f"{file} of the replayed run"
                for name, file in (read_record(replay).get("fixtures") or {}).items()
                if name in ("crbench_reviewer", "crbench_agent")
            }
        write_record(run, self.record)
        image = image_of(self.record["reviewer"]).get("id", "")
        return assemble.Invocation(
            run.resolve(),
            session,
            backend.name,
            replay=replay,
            reviewer_image=image,
            scorings=scorings,
            secret=secrets.token_hex(32),
        )

    def pytest_report_header(self) -> list[str]:
        """Say what is evaluated by what."""
        if self.invocation is None:
            return []
        record = self.record
        named = [(key, node) for node, (key, *_) in self.known.items() if self.selection.names(node)]
        checks = len(named)
        pulls = len({(key.dataset, key.instance) for key, _ in named})
        assert self.session is not None
        labels = {
            "reviewer": reviewer_label(record["reviewer"]),
            "agent": agent_label(record["agent"]),
            "sandbox": record["sandbox"]["name"],
        }
        fixtures = {name.removeprefix("crbench_"): file for name, file in replaced(self.session).items()}
        parts = [
            *(f"{p} {f'of a fixture in {fixtures[p]}' if p in fixtures else labels[p]}" for p in labels),
            *([f"matching by {record['matcher']['name']}"] if "matcher" in record else []),
            f"{pulls} pull request{'s' * (pulls != 1)}, {checks} check{'s' * (checks != 1)}",
        ]
        isolation = [] if "sandbox" in fixtures else filter(None, [isolation_line(record["sandbox"])])
        line = ", ".join(printable(scrubbed(part), 80) for part in parts)
        return [f"crbench: {one}" for one in (line, *isolation)]

    # Selection --------------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn what is selected, where this process runs the items itself."""
        if not distributed.is_distributing(self.config):
            self.select([item.nodeid for item in session.items])

    def select(self, ids: Sequence[str]) -> None:
        """Note the node ids that will run; what was deselected is not part of the run."""
        self.selected = [node for node in ids if node in self.known]
        if self.files is not None and self.selected:
            self.record = note(self.record, self.selected, self.known)
            self.files.record(self.record)

    # Verdicts ---------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep every verdict as it comes; a measurement beats a crash of the worker that made it."""
        ours = report.nodeid in self.known
        self._note_fixtures(getattr(report, "crbench_fixtures", {}))
        row = getattr(report, "crbench", None)
        if row is not None:
            self._keep(report.nodeid, from_row(row))
        elif ours and report.failed and report.nodeid not in self.verdicts:
            key, instance, check = self.known[report.nodeid]
            crashed = str(report.when) == "???"
            reason = "the worker crashed" if crashed else "failed outside its stages"
            cause = "worker-crashed" if crashed else "outside"
            lost = unmeasured(instance, check, key, Status.INFRA_ERROR, reason, cause=cause)
            self._keep(report.nodeid, lost)
        if report.failed and row is not None and row["status"] == Status.MISSED.value:
            self.failed_misses.add(report.nodeid)
        elif report.failed and (not ours or report.when == "teardown"):
            self.foreign_failures.add(report.nodeid)
        elif report.failed:
            self.own_failures += 1

    def _note_fixtures(self, found: dict[str, str]) -> None:
        """Record which fixtures are not ours as soon as it is known: a killed run must tell it too."""
        known = self.record.get("fixtures") or {}
        if self.files is not None and not found.items() <= known.items():
            self.record["fixtures"] = {**known, **found}
            self.files.record(self.record)

    def _keep(self, node: str, verdict: Verdict) -> None:
        before = self.verdicts.get(node)
        if before is not None and before.status.measured and not verdict.status.measured:
            return
        self.verdicts[node] = verdict
        if self.files is not None:
            self.files.verdict(verdict)
        self.config.hook.pytest_crbench_verdict(config=self.config, row=to_row(verdict))
        line = self.progress.line(self.verdicts.values(), len(self.selected))
        if line is not None and self.config.get_verbosity() >= 0:
            self._note(line)

    # End --------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """From here on it is about results and clean-up: an impatient second Ctrl-C must not cost them."""
        if self.invocation is not None:
            self.restore.append(shield(self._note))
            self.interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the results, decide once, and set the exit status."""
        if self.files is None or not self.selected:
            return
        for report in distributed.late_reports(self.config):
            if hasattr(report, "crbench"):
                self.pytest_runtest_logreport(report)
        self.results = self.results_so_far(exitstatus)
        summary, *more = self.results.summaries
        self.decision = decide(self.gate, summary, self.results, more)
        wanted = self.decision.exit_status
        others = self._others(session)
        if exitstatus in _DECIDES and wanted is not None and not others:
            session.exitstatus = wanted
        if wanted is not None and (others or session.exitstatus != wanted):
            why = others or "the run was interrupted"
            verdict = f"{self.decision.verdict}; but {why}, exit status {int(session.exitstatus)}"
            self.decision = replace(self.decision, verdict=verdict)
            self.overruled = True
        self.files.reports(self.results, self.decision)
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
        assert self.files is not None
        lock = self._lock()
        run = {
            **self.record,
            **made_by(self.record, lock),
            "finished": now(),
            "interrupted": exitstatus == pytest.ExitCode.INTERRUPTED,
        }
        run.pop("selected_nodes", None)  # the verdicts, and what was not run, are these
        planned = {}
        for node in self.selected:
            key, instance, check = self.known[node]
            planned[key] = instance.facets(check)
        self.files.record({**self.record, "finished": run["finished"]})
        return Results(run, tuple(self.verdicts.values()), planned, lock=lock)

    def _lock(self) -> dict[str, Any]:
        """What the run was made of, completed by its workers."""
        assert self.invocation is not None
        try:
            return LockFile(self.invocation.run).read()
        except CrbenchError as error:
            self._note(str(error))
            return {}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        if self.results is None or self.invocation is None:
            return
        terminalreporter.section("crbench", sep="-")
        # Where pytest itself says why something was skipped or expected to fail.
        misses = self.config.get_verbosity() > 0 or terminalreporter.hasopt("xfailed")
        width = min(terminalreporter._tw.fullwidth, 100)
        lines = table(self.results, self.decision, shown_path(self.invocation.run), width, misses)
        for line in lines:
            terminalreporter.write_line(scrubbed(line))
        extra = self.config.hook.pytest_crbench_summary(config=self.config, results=dict(self.results.run))
        for lines in extra:
            for line in lines or ():
                terminalreporter.write_line(printable(scrubbed(str(line))))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Remove what is left, then print the one verdict, last."""
        if self.invocation is not None:
            self._reap(self.invocation)
            os.environ.pop(SESSION_VARIABLE, None)
        while self.restore:
            self.restore.pop()()
        if self.decision is not None:
            colour = _COLOURS["not-met" if self.overruled else self.decision.outcome]
            self._note(self.decision.verdict, **colour)
        elif self.config.option.collectonly:
            self._note("--collect-only: nothing was run, and nothing was gated")
        elif self.selection.datasets and self.invocation and self.gate.asked and not self.interrupted:
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

    def _reap(self, invocation: assemble.Invocation) -> None:
        kill_marked(SESSION_VARIABLE, invocation.session)
        self._reap_sandboxes(invocation.session)
        if self.interrupted:
            # What a killed process had asked the engine for may appear only now.
            time.sleep(_SETTLE)
            self._reap_sandboxes(invocation.session)

    def reap_orphans(self) -> None:
        """End what processes that are gone left behind: programs, sandboxes."""
        kill_orphans()
        temporary.reap()
        self._reap_sandboxes(None)

    def _reap_sandboxes(self, session: str | None) -> None:
        assert self.invocation is not None
        try:
            backend = assemble.make_backend(
                self.settings, self.invocation.sandbox, self.invocation.session, lambda _line: None
            )
            backend.reap(session)
            programs.reap_reviewers(self.settings, self.invocation.session, session)
        except CrbenchError as error:
            self._note(f"could not clean up: {error}; run `crbench clean` later")

    def _note(self, text: str, **markup: bool) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            if reporter._tw.width_of_current_line:  # under pytest-xdist, pytest does not know its own dots
                reporter._tw.line()
            reporter.write_line(f"crbench: {printable(scrubbed(text), 2000)}", **markup)
