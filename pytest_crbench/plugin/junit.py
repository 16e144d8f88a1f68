"""What JUnit's file says beside pytest's own outcomes: the status of each check, and the rates of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..core.scoring import scoring_of
from ..text.secrets import scrubbed

if TYPE_CHECKING:
    from fractions import Fraction

    from _pytest.junitxml import LogXML

    from ..statistics.score import Summary
    from .session import ControllerSession


class JunitPlugin:
    """Registered in the controller."""

    def __init__(self, session: ControllerSession) -> None:
        self.session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Put the rates into JUnit's file, if one is to be written, before it is."""
        from _pytest.junitxml import xml_key  # what the fixture record_testsuite_property uses

        from ..reports.lines import notes

        xml = self.session.config.stash.get(xml_key, None)
        if xml is not None and self.session.run.invocation is not None and self.session.selected:
            results = self.session.results_so_far(exitstatus)
            first, *others = results.summaries
            _add_totals(xml, first, "")
            for summary in others:
                _add_totals(xml, summary, f"{summary.scoring}_")
            for note in notes(results):
                xml.add_global_property("crbench_note", scrubbed(note))


def _add_totals(xml: LogXML, summary: Summary, of: str) -> None:
    """Add both rates, their intervals and the coverage as properties of the suite; ``of`` names a scoring."""
    overall = summary.overall
    rates = [("strict", overall.strict), ("measured", overall.measured)]
    if summary.self_reported:
        rates.append(("gated", summary.gated.overall.strict))
    for name, rate in rates:
        xml.add_global_property(f"crbench_{of}{name}", f"{rate.passed}/{rate.of}")
        xml.add_global_property(f"crbench_{of}{name}_rate", _number(rate.value))
        if rate.interval is not None:
            limits = f"{rate.interval.low:.6f} {rate.interval.high:.6f}"
            xml.add_global_property(f"crbench_{of}{name}_interval", limits)
    xml.add_global_property(f"crbench_{of}coverage", _number(overall.coverage))
    xml.add_global_property(f"crbench_{of}unmeasured", str(overall.unmeasured))
    xml.add_global_property(f"crbench_{of}bounds", f"{_number(overall.lowest)} {_number(overall.highest)}")
    if summary.own is not None:
        for metric in scoring_of(summary.scoring).headline:
            xml.add_global_property(f"crbench_{of}{metric}", _number(summary.own.value(metric)))


def _number(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):.6f}"
