"""What is written at the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import Registry

if TYPE_CHECKING:
    from pathlib import Path


class Report:
    """One file in the folder of a run. A subclass has ``file`` and ``content``.

    Other packages register an instance in the group ``pytest_crbench.reports`` of their entry points;
    ``--crbench-report=NAME`` asks for it by its name there.
    """

    #: The name of the file.
    file = ""

    def content(self, results: Any, decision: Any, run: Path) -> str | dict[str, Any]:
        """Return the text of the file, or plain JSON; the same for the same arguments, which are not changed.

        Credentials are taken out of it afterwards. What it raises is told, and changes no verdict.

        Args:
            results: a `pytest_crbench.Results`; its verdicts hold text of programs under test, as it came.
            decision: of the gate: ``outcome``, ``verdict``, ``exit_status``.
            run: the folder of the run.
        """
        raise NotImplementedError


#: Ours are written at the end of every run.
REPORTS: Registry[Report] = Registry(
    "report",
    Report,
    "pytest_crbench.reports",
    {"json": "reports.results:REPORT", "markdown": "reports.markdown:REPORT"},
)
