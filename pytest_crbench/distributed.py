"""Everything that knows pytest-xdist: who is a worker, and what a worker is told."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .assemble import Invocation
from .core.owner import is_elsewhere, is_gone, own_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .session import ControllerSession


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def hide_title(config: pytest.Config) -> None:
    """Keep a worker's process title still: pytest-xdist puts the running item into it, for all to read.

    It does so where setproctitle is installed. Nothing public turns it off.
    """
    for plugin in config.pluginmanager.get_plugins():
        known = getattr(getattr(plugin, "run_one_test", None), "__globals__", {})
        if "worker_title" in known:
            known["worker_title"] = lambda _title: None


def is_distributing(config: pytest.Config) -> bool:
    """Whether this process is a controller that has its items run by workers."""
    return config.pluginmanager.has_plugin("dsession")


def to_worker(invocation: Invocation) -> dict[str, str]:
    """Return what a worker must know, as plain text for ``workerinput``."""
    return {
        "run": str(invocation.run),
        "session": invocation.session,
        "sandbox": invocation.sandbox,
        "replay": str(invocation.replay or ""),
        "reviewer_image": invocation.reviewer_image,
        "scorings": ",".join(invocation.scorings),
        "secret": invocation.secret,
        "controller": own_token(),
    }


def invocation_of_worker(config: pytest.Config) -> Invocation | None:
    """Return what the controller told this worker; None if the run is only collected."""
    given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    told = given.get("crbench")
    if told is None:
        return None
    return Invocation(
        run=Path(told["run"]),
        session=told["session"],
        sandbox=told["sandbox"],
        worker=given["workerid"],
        replay=Path(told["replay"]) if told["replay"] else None,
        reviewer_image=told["reviewer_image"],
        scorings=tuple(told["scorings"].split(",")),
        secret=told["secret"],
        controller=_visible(told["controller"]),
    )


def _visible(controller: str) -> str:
    """The controller's token if its process is seen from here; "" on another machine and in a container."""
    return "" if is_elsewhere(controller) or is_gone(controller) else controller


def late_reports(config: pytest.Config) -> Iterator[pytest.TestReport]:
    """Give the reports that workers sent and that nobody took, because the run was interrupted."""
    arrived = getattr(config.pluginmanager.get_plugin("dsession"), "queue", None)
    while arrived is not None and not arrived.empty():
        name, details = arrived.get_nowait()
        if name == "testreport":
            yield details["rep"]


class DistributedPlugin:
    """Registered in a controller that has workers."""

    def __init__(self, session: ControllerSession) -> None:
        self.session = session
        #: Process ids of the workers on this machine that run.
        self.workers: dict[str, int] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which run it works for."""
        if self.session.invocation is not None:
            node.workerinput["crbench"] = to_worker(self.session.invocation)

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
        if error and self.session.invocation is not None:
            self.session.reap_orphans()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Interrupt the workers too: left alone, they notice only seconds after the controller is gone."""
        if excinfo.type is not KeyboardInterrupt:
            return  # pytest's own end of a run, by -x: the workers have been told
        for pid in self.workers.values():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
