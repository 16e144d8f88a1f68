"""The controller's way to gate and reports: one call each, heavy imports inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from .core.gate import Decision, Gate
    from .core.model import Verdict
    from .core.results import Results
    from .settings import Settings


def make_gate(settings: Settings) -> Gate:
    """Make the gate that the settings ask for.

    Raises:
        UsageError: naming the option, what was found and what is possible.
    """
    from .core import gate
    from .reporting.results import read_results

    return gate.make_gate(
        fail_under=settings.fail_under,
        fail_over=settings.fail_over,
        min_coverage=settings.min_coverage,
        baseline=read_results(settings.baseline) if settings.baseline else None,
        fail_if_regressed=settings.fail_if_regressed,
    )


def keep_verdict(run: Path, verdict: Verdict) -> None:
    """Append a verdict to the run's ``results.jsonl``.

    Raises:
        InfraError: if it cannot be written.
    """
    from .reporting.results import append_row

    append_row(run / "results.jsonl", verdict)


def write_reports(run: Path, results: Results, decision: Decision) -> None:
    """Write ``results.json`` and ``summary.md``, and append the latter to the job summary of GitHub.

    Raises:
        InfraError: if one cannot be written.
    """
    from .core.store import write_atomic
    from .reporting.markdown import append_step_summary, markdown
    from .reporting.results import write_results

    summary = results.summary()
    write_results(run / "results.json", results, summary, decision)
    text = markdown(results, summary, decision, files=str(run))
    write_atomic(run / "summary.md", text.encode())
    append_step_summary(text, os.environ)


def table(results: Results, files: str, width: int) -> list[str]:
    """Return the lines of the table for the terminal."""
    from .reporting.table import table as lines

    return lines(results, results.summary(), files=files, width=width)
