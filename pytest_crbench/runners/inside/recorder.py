"""Put beside the hidden test as ``conftest.py``: reports every outcome through the supervisor's pipe.

All that it needs is bound before the code under test is imported, and each record is written at once: a
process that ends early leaves what it did until then.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Generator

import pytest


def _writer(
    descriptor: int, write: Callable[[int, bytes], int] = os.write, dumps: Callable[[Any], str] = json.dumps
) -> Callable[..., None]:
    def record(**fields: Any) -> None:
        data = (dumps(fields) + "\n").encode()
        while data:
            data = data[write(descriptor, data) :]

    return record


_record = _writer(int(os.environ.pop("CRBENCH_RECORDS")))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tops"), encoding="utf-8") as _stream:
    _tops = frozenset(_stream.read().split("\n"))


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that cannot be collected."""
    if report.failed:
        text = str(report.longrepr).strip().splitlines()
        _record(event="collect-error", file=report.nodeid.split("::")[0], message=text[-1] if text else "")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record what was collected."""
    _record(event="collected", tests=[item.nodeid for item in session.items])


# Outermost: what others make of the outcome (xfail marks) is in the report by then.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Record the outcome of each phase."""
    outcome = yield
    report = outcome.get_result()
    fields = {"exception": "", "message": ""}
    if call.excinfo is not None:
        lines = call.excinfo.exconly().splitlines()
        fields = {"exception": call.excinfo.typename, "message": lines[0][:500] if lines else ""}
    _record(
        event="report",
        test=item.nodeid,
        when=report.when,
        outcome=report.outcome,
        xfail=hasattr(report, "wasxfail"),
        **fields,
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Record which modules of the tree were loaded, and that the run came to its end."""
    files = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.split(".")[0] in _tops and isinstance(path, str):
            files[name] = os.path.realpath(path)
    _record(event="modules", files=files)
    _record(event="finished", exitstatus=int(exitstatus))
