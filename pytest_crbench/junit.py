"""What JUnit's file says beside pytest's own outcomes: the status of each check, and the rates of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fractions import Fraction

    from _pytest.junitxml import LogXML

    from .core.model import Verdict
    from .core.score import Group
    from .session import ControllerSession


def junit_properties(verdict: Verdict) -> list[tuple[str, object]]:
    """Return the properties of one test case, which to pytest is a pass, a skip or an error."""
    found: list[tuple[str, object]] = [("crbench_status", verdict.status.value)]
    if verdict.cause:
        found.append(("crbench_cause", verdict.cause))
    return found


class JunitPlugin:
    """Registered in the controller."""

    def __init__(self, session: ControllerSession) -> None:
        self.session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Put the rates into JUnit's file, if one is to be written, before it is."""
        from _pytest.junitxml import xml_key  # what the fixture record_testsuite_property uses

        xml = self.session.config.stash.get(xml_key, None)
        if xml is not None and self.session.invocation is not None and self.session.selected:
            _add_totals(xml, self.session.results_so_far(exitstatus).summary().overall)


def _add_totals(xml: LogXML, overall: Group) -> None:
    """Add both rates, their intervals and the coverage as properties of the suite."""
    for name, rate in (("strict", overall.strict), ("measured", overall.measured)):
        xml.add_global_property(f"crbench_{name}", f"{rate.passed}/{rate.of}")
        xml.add_global_property(f"crbench_{name}_rate", _number(rate.value))
        if rate.interval is not None:
            limits = f"{rate.interval.low:.6f} {rate.interval.high:.6f}"
            xml.add_global_property(f"crbench_{name}_interval", limits)
    xml.add_global_property("crbench_coverage", _number(overall.coverage))
    xml.add_global_property("crbench_unmeasured", str(overall.unmeasured))
    xml.add_global_property("crbench_bounds", f"{_number(overall.lowest)} {_number(overall.highest)}")


def _number(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):.6f}"
