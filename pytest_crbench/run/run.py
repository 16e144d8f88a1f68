"""A run from its start to its results, without pytest: the plugin, the commands and programs use the same."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.errors import CrbenchError
from ..evaluation.plan import plan_of
from ..evaluation.run_record import read_run, write_run
from ..host import trees
from ..host.eviction import Uses
from ..host.processes import SESSION_VARIABLE, kill_marked, kill_orphans
from ..statistics.gate import check_metrics, decide
from ..statistics.results import Results
from . import assemble, preflight, programs
from .record import image_of, made_by, now, run_record
from .reports import RunFiles, check_reports, make_gate
from .rundir import chosen_sandbox, find_run, hide_from_git, new_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..core.model import Dataset, Key, ReviewRecord, Verdict
    from ..core.reviewer import Reviewer
    from ..core.run_record import RunRecord
    from ..core.settings import Settings
    from ..evaluation.evaluator import Evaluator
    from ..evaluation.plan import Planned
    from ..statistics.gate import Decision

#: Seconds after which an engine has done what an interrupted request asked of it.
_SETTLE = 0.5
_NOT_STARTED = "the run has not started: call start() first"


class Run:
    """One run: `start`, a `verdict` for each of `planned`, `finish`; `close` removes what is left.

    Args:
        settings: the options of the run; its datasets are those that they name.
        datasets: the part of them that is measured (default: all).
        reviewer: takes the place of the one that the settings name: a Reviewer, a callable or a spec.
        say: takes lines for the user.

    Raises:
        UsageError: if the gate's options, or a dataset, are wrong.
    """

    def __init__(
        self,
        settings: Settings,
        datasets: Sequence[Dataset] | None = None,
        *,
        scored: Sequence[Dataset] = (),
        reviewer: Reviewer | Callable[..., Any] | str | None = None,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.settings = settings
        self.datasets = tuple(assemble.open_datasets(settings) if datasets is None else datasets)
        #: What decides how checks are scored where nothing is selected.
        self._scored = scored
        self._reviewer = reviewer
        self._say = say
        self.gate = make_gate(settings)
        check_reports(settings.report)
        self.plan = plan_of(settings)
        self.invocation: assemble.Invocation | None = None
        self.files: RunFiles | None = None
        self._record: RunRecord | None = None
        self.verdicts: dict[Key, Verdict] = {}
        self.reviews: dict[str, ReviewRecord] = {}
        self._evaluator: Evaluator | None = None
        self._end: list[Callable[[], None]] = []

    def __enter__(self) -> Run:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        self.close(interrupted=kind is KeyboardInterrupt)

    def planned(self) -> Iterator[Planned]:
        """Yield every measurement of the run, in order."""
        return self.plan.all_of(self.datasets)

    def start(self) -> assemble.Invocation:
        """Make the programs, look at machine and sandbox, and write the record of the run.

        Raises:
            UsageError: if something is missing, or does not fit the run that this one goes on with.
            InfraError: if the engine or the disk fails.
        """
        settings = self.settings
        preflight.check_machine(settings)
        replay = find_run(settings.run_dir, settings.replay) if settings.replay else None
        # Both must be there before anything is built: a missing key is told now, not after an hour.
        session = secrets.token_hex(8)
        reviewer = self._made_reviewer(replay, session)
        scorings = assemble.scorings_of(settings, self.datasets or self._scored)
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
        backend = assemble.make_backend(settings, sandbox, session, self._say)
        self._end.append(Uses(settings.cache).begin(session))
        kill_orphans()
        trees.reap_temporary()
        backend.reap()
        programs.reap_reviewers(settings, session)
        preflight.check_sandbox(backend, [i for d in self.datasets for i in d.instances])
        record = run_record(run.name, settings, self.datasets, reviewer, agent, backend.describe(), deciders)
        inputs, options = record.inputs, record.options
        assert inputs is not None
        hide_from_git(settings.run_dir)
        if settings.resume:
            told = preflight.resume(run, inputs, backend)
            record = read_run(run)
            record.options, record.resumed = options, True
        else:
            told = preflight.replay(replay, inputs) if replay else []
        self._record = record
        self._tell(replay, told)
        write_run(run, record)
        self.invocation = assemble.Invocation(
            run.resolve(),
            session,
            backend.name,
            replay=replay,
            reviewer_image=image_of(record.reviewer).get("id", ""),
            scorings=scorings,
            secret=secrets.token_hex(32),
        )
        self.files = RunFiles(self.invocation.run, self._say, settings.report)
        return self.invocation

    @property
    def record(self) -> RunRecord:
        """How the run is made: what ``run.json`` holds."""
        if self._record is None:
            raise RuntimeError(_NOT_STARTED)
        return self._record

    def verdict(self, planned: Planned) -> Verdict:
        """Return the verdict on one measurement, made in this process and kept.

        A failure of a stage is a status, never an exception.
        """
        key = planned.key
        found = self.evaluator.verdict(
            planned.instance, planned.check, key.repeat, key.arm, scoring=key.scoring
        )
        self.keep(found)
        return found

    @property
    def evaluator(self) -> Evaluator:
        """What takes pull requests through their stages in this process; made when it is first asked for."""
        if self._evaluator is None:
            invocation = self._started()
            settings = self.settings
            reviewer = self._made_reviewer(invocation.replay, invocation.session, invocation.run)
            agent = programs.make_agent(settings, invocation.run, invocation.replay, invocation.scorings)
            log = lambda line: invocation.log("sandbox", line)  # noqa: E731
            backend = assemble.make_backend(settings, invocation.sandbox, invocation.session, log)
            self._evaluator = assemble.make_evaluator(settings, invocation, reviewer, agent, backend)
        return self._evaluator

    def keep(self, verdict: Verdict) -> bool:
        """Keep a verdict, and write it down; whether it counts: a measurement is not lost to an error."""
        before = self.verdicts.get(verdict.key)
        if before is not None and before.status.measured and not verdict.status.measured:
            return False
        self.verdicts[verdict.key] = verdict
        review = verdict.review
        if review is not None:
            known = self.reviews.get(review.id)
            self.reviews[review.id] = known.merged(review) if known else review
            if self.files is not None and self.reviews[review.id] != known:
                self.files.review(self.reviews[review.id])
        if self.files is not None:
            self.files.verdict(verdict)
        return True

    def results(
        self, planned: Mapping[Key, Mapping[str, str]] | None = None, *, interrupted: bool = False
    ) -> Results:
        """Return what has come so far; ``planned`` holds the facets of what was selected (default: all)."""
        assert self.files is not None
        record = self.record
        record.finished = now()
        self.files.record(record)
        run = record.model_copy(update={**made_by(record), "interrupted": interrupted})
        # The verdicts, and what was not run, are these.
        run.model_fields_set.discard("selected_nodes")
        if planned is None:
            planned = {one.key: one.instance.facets(one.check) for one in self.planned()}
        verdicts = [
            replace(one, review=self.reviews[one.review.id]) if one.review else one
            for one in self.verdicts.values()
        ]
        return Results(run, tuple(verdicts), planned)

    def finish(self) -> tuple[Results, Decision]:
        """Ask the gate once, write results and summary, and return results and decision."""
        found = self.results()
        summary, *more = found.summaries
        decision = decide(self.gate, summary, found, more)
        self.write(found, decision)
        return found, decision

    def write(self, results: Results, decision: Decision) -> None:
        """Write the files that readers want; one that cannot be written is told, and stops nothing."""
        assert self.files is not None
        self.files.reports(results, decision)

    def close(self, *, interrupted: bool = False) -> None:
        """End and remove what the run has left: programs, sandboxes, marks in the cache."""
        if self.invocation is not None:
            kill_marked(SESSION_VARIABLE, self.invocation.session)
            self.reap(self.invocation.session)
            if interrupted:
                # What a killed process had asked the engine for may appear only now.
                time.sleep(_SETTLE)
                self.reap(self.invocation.session)
            os.environ.pop(SESSION_VARIABLE, None)
        while self._end:
            self._end.pop()()

    def reap_orphans(self) -> None:
        """End what processes that are gone left behind: programs, sandboxes."""
        kill_orphans()
        trees.reap_temporary()
        self.reap(None)

    def _made_reviewer(self, replay: Path | None, session: str, run: Path | None = None) -> Reviewer:
        if self._reviewer is not None:
            return programs.as_reviewer(self._reviewer, self.settings, session=session, run=run)
        image = self.invocation.reviewer_image if self.invocation else ""
        return programs.make_reviewer(self.settings, replay, session=session, image=image, run=run)

    def _tell(self, replay: Path | None, told: Iterable[str]) -> None:
        """Put into the record what the run goes on with, and what changed since."""
        record, notes = self.record, [*told]
        if self.settings.rerun_errors == "all":
            notes.append("errors of the reviewer were repeated (--crbench-rerun-errors=all)")
        if notes:
            record.notes = list(dict.fromkeys([*record.notes, *notes]))
        if replay:
            record.replay_of = replay.name
            record.fixtures = {
                name: f"{file} of the replayed run"
                for name, file in read_run(replay).fixtures.items()
                if name in ("crbench_reviewer", "crbench_agent")
            }

    def _started(self) -> assemble.Invocation:
        if self.invocation is None:
            raise RuntimeError(_NOT_STARTED)
        return self.invocation

    def reap(self, session: str | None) -> None:
        """End and remove what belongs to ``session`` (None: to processes that are gone)."""
        invocation = self._started()
        try:
            backend = assemble.make_backend(
                self.settings, invocation.sandbox, invocation.session, lambda _line: None
            )
            backend.reap(session)
            programs.reap_reviewers(self.settings, invocation.session, session)
        except CrbenchError as error:
            self._say(f"could not clean up: {error}; run `crbench clean` later")
