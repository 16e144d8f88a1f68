"""The controller's way to gate and reports: one call each, heavy imports inside."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.model import ReviewRecord, Verdict
    from ..core.run_record import RunRecord
    from ..core.settings import Settings
    from ..statistics.gate import Decision, Gate
    from ..statistics.results import Results


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
        """Write ``results.json`` and ``summary.md``, and append the latter to the job summary of GitHub."""
        from ..host.files import write_atomic
        from ..reports.markdown import append_step_summary, markdown
        from ..reports.results import write_results

        text = markdown(results, results.summaries, decision, files=str(self.run))
        self._write("results.json", lambda path: write_results(path, results, decision))
        self._write("summary.md", lambda path: write_atomic(path, text.encode()))
        self._write("", lambda _path: append_step_summary(text, os.environ))
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
