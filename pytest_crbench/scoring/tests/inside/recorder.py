"""Loaded by ``launch.py`` before the code under test: reports what happens through the supervisor's pipe.

Each record is written at once, so that a process that ends early leaves what it did until then. Each
carries its number and a keyed hash: a line that the recorder did not write is known for what it is, and so
is one that is missing, repeated or out of order. Whoever shares a process with the recorder can find the
key in memory, with some effort; see docs/trust.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import Any, Callable, Generator

import pytest


def _writer(
    descriptor: int,
    key: bytes,
    write: Callable[[int, bytes], int] = os.write,
    dumps: Callable[[Any], str] = json.dumps,
    getpid: Callable[[], int] = os.getpid,
) -> Callable[..., None]:
    keyed = hashlib.blake2b(key=key, digest_size=16)
    owner, number = getpid(), 0

    def record(**fields: Any) -> None:
        nonlocal number
        # A child that the product forked off, and that came back here, has nothing to say.
        if getpid() != owner:
            return
        text = dumps([number, fields]).encode()
        number += 1
        mac = keyed.copy()
        mac.update(text)
        data = mac.hexdigest().encode() + b" " + text + b"\n"
        while data:
            data = data[write(descriptor, data) :]

    return record


class Recorder:
    """The plugin that records collection, each phase of each test, and the end."""

    def __init__(self, descriptor: int, key: bytes, tops: str, intact: Any, executed: Any) -> None:
        self._record = _writer(descriptor, key)
        with open(tops, encoding="utf-8") as stream:
            self._tops = frozenset(stream.read().split("\n"))
        #: The module ``intact``.
        self._intact = intact
        #: An object of ``executed.Executed``.
        self._executed = executed
        self._snapshot: Any = None
        self._written: Any = None
        self._tests: dict[str, tuple[Any, Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Remember what runs tests: pytest has patched itself by now, and no product is loaded yet."""
        self._snapshot = self._intact.Snapshot(session.config)
        self._written = self._intact.Written(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be collected."""
        if report.failed:
            text = str(report.longrepr).strip().splitlines()
            file = report.nodeid.split("::")[0]
            self._record(event="collect-error", file=file, message=text[-1] if text else "")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record what was collected."""
        for item in session.items:
            function = getattr(item, "function", None)
            self._tests[item.nodeid] = (function, getattr(function, "__code__", None))
        self._record(event="collected", tests=[item.nodeid for item in session.items])

    # Innermost: nothing stands between it and the test's own function.
    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Record what left the test itself, beside and before what pytest makes of it."""
        before = self._patched(item)
        module = getattr(item, "module", None)
        names = dict(vars(module)) if module else {}
        self._record(event="called", test=item.nodeid)
        outcome = yield
        raised = outcome.excinfo
        after = [*self._patched(item), *(self._intact.rebound(names, module) if module else ())]
        self._record(
            event="returned",
            test=item.nodeid,
            raised=raised[0].__name__ if raised else "",
            patched=before or after[:5],
        )

    def _patched(self, item: pytest.Item) -> list[str]:
        """Name up to five things, of pytest or the test's own, that are not what they were before."""
        found: list[str] = self._snapshot.changed(item)
        function = getattr(item, "function", None)
        code = getattr(function, "__code__", None)
        if self._tests.get(item.nodeid) != (function, code) or self._written.differs(item.nodeid, code):
            found.append("the test's own function")
        return found[:5]

    # Outermost: what others make of the outcome (xfail marks) is in the report by then.
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """Record the outcome of each phase."""
        outcome = yield
        report = outcome.get_result()
        fields = {"exception": "", "message": ""}
        if call.excinfo is not None:
            lines = call.excinfo.exconly().splitlines()
            fields = {"exception": call.excinfo.typename, "message": lines[0][:500] if lines else ""}
        self._record(
            event="report",
            test=item.nodeid,
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            **fields,
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Record which modules of the tree were loaded, and that the run came to its end."""
        files = {}
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if name.split(".")[0] in self._tops and isinstance(path, str):
                files[name] = os.path.realpath(path)
        self._record(event="modules", files=files, executed=self._executed.files())
        self._record(event="finished", exitstatus=int(exitstatus))
