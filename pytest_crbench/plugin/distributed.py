"""Everything that knows pytest-xdist: who is a worker, and what a worker is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..host.processes import is_elsewhere, is_gone, own_token
from ..run.assemble import Invocation

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


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
