"""The controller's way to gate and reports: one call each, heavy imports inside."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UsageError
from ..core.report import REPORTS
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..core.model import ReviewRecord, Verdict
    from ..core.run_record import RunRecord
    from ..core.settings import Settings
    from ..statistics.gate import Decision, Gate
    from ..statistics.results import Results

#: Names of files that another report may write.
SIMPLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def make_gate(settings: Settings) -> Gate:
    """Make the gate that the settings ask for.

    Raises:
        UsageError: naming the option, what was found and what is possible.
    """
    from ..reports.results import load_results
    from ..statistics import gate

    return gate.make_gate(
        fail_under=settings.fail_under,
        fail_over=settings.fail_over,
        min_coverage=settings.min_coverage,
        baseline=load_results(settings.baseline) if settings.baseline else None,
        fail_if_regressed=settings.fail_if_regressed,
    )


@dataclass
class RunFiles:
    """What the controller writes of a run; a file that cannot be written is told once, and stops nothing.

    The verdicts are in memory and in the store of whoever made them: a full disk costs no measurement and
    ends no run.
    """

    run: Path
    tell: Callable[[str], None]
    #: Reports of other packages that were asked for, by name.
    more: tuple[str, ...] = ()
    lost: set[str] = field(default_factory=set)

    def verdict(self, verdict: Verdict) -> None:
        """Append a verdict to ``results.jsonl``."""
        from ..reports.results import append_row

        self._write("results.jsonl", lambda path: append_row(path, verdict))

    def review(self, review: ReviewRecord) -> None:
        """Append what is known of a review to ``reviews.jsonl``; the last row of one counts."""
        from ..reports.results import append_row

        self._write("reviews.jsonl", lambda path: append_row(path, review))

    def record(self, record: RunRecord) -> None:
        """Write ``run.json``; what workers have noted in it is taken into ``record``."""
        from ..evaluation.run_record import write_run

        self._write("run.json", lambda path: write_run(path.parent, record))

    def reports(self, results: Results, decision: Decision) -> None:
        """Write every report, and append the Markdown one to the job summary of GitHub."""
        from ..reports.markdown import append_step_summary

        for name in dict.fromkeys((*REPORTS.own, *self.more)):
            report = REPORTS.get(name)
            try:
                content = report.content(results, decision, self.run)
                self._write(report.file, partial(_write, content=content))
            except Exception as error:
                if name in REPORTS.own:
                    raise
                self.tell(f"the report {name!r} failed: {type(error).__name__}: {printable(str(error), 300)}")
                self.lost.add(report.file)
            if name == "markdown":
                summary = str(content)
        self._write("", lambda _path: append_step_summary(summary, os.environ))
        if self.lost:
            names = ", ".join(sorted(name for name in self.lost if name))
            self.tell(f"incomplete in {self.run}: {names}. pytest --crbench-resume writes what is missing")

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        try:
            write(self.run / name)
        except InfraError as error:
            if name not in self.lost:
                self.tell(str(error))
            self.lost.add(name)


def _write(path: Path, content: Any) -> None:
    from ..host.files import write_atomic, write_json

    if isinstance(content, str):
        write_atomic(path, content.encode(errors="replace"))
    else:
        write_json(path, content)


def check_reports(names: Iterable[str]) -> None:
    """Look for reports by name before a run starts.

    Raises:
        UsageError: there is none, it cannot be loaded, or its file is one that a run has already.
    """
    taken = {"run.json", "results.jsonl", "reviews.jsonl", *(REPORTS.get(name).file for name in REPORTS.own)}
    for name in dict.fromkeys(names):
        file = REPORTS.get(name).file
        if name not in REPORTS.own and (not SIMPLE.fullmatch(file) or file in taken):
            raise UsageError(
                f"the report {name!r} cannot be written: {printable(file, 80)!r} is no name of a file, or is "
                "that of another file of the run. Correct the package that has it, or leave the report out"
            )
        taken.add(file)


def table(results: Results, decision: Decision | None, files: str, width: int, misses: bool) -> list[str]:
    """Return the lines of the table for the terminal; ``misses``: say of each why."""
    from ..reports.table import table as lines

    return lines(
        results,
        results.summaries,
        files=files,
        logs=files,
        width=width,
        decision=decision,
        misses=misses,
    )
