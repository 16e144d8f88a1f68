"""What a controller does with the workers of pytest-xdist."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from .distributed import to_worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .session import ControllerSession


class DistributedPlugin:
    """Registered in a controller that has workers."""

    def __init__(self, session: ControllerSession) -> None:
        self.session = session
        #: Process ids of the workers on this machine that run.
        self.workers: dict[str, int] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which run it works for."""
        if self.session.run.invocation is not None:
            node.workerinput["crbench"] = to_worker(self.session.run.invocation)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Learn from a worker which checks are selected; every worker says the same."""
        self.session.select(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Note a worker's process."""
        # Nothing public tells it. For a worker on another machine it would be the id of its ssh.
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        if node.gateway.spec.popen and process is not None:
            self.workers[node.gateway.id] = process.pid

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """End what a crashed worker left running: its programs, its sandboxes."""
        self.workers.pop(node.gateway.id, None)
        if error and self.session.run.invocation is not None:
            self.session.run.reap_orphans()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Interrupt the workers too: left alone, they notice only seconds after the controller is gone."""
        if excinfo.type is not KeyboardInterrupt:
            return  # pytest's own end of a run, by -x: the workers have been told
        for pid in self.workers.values():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
