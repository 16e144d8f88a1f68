"""Credentials in what pytest itself writes of a run: reports of failures, captured output, log records."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from ..text.secrets import scrubbed

if TYPE_CHECKING:
    from collections.abc import Generator


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
