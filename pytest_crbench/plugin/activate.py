"""Turns the benchmark on in one pytest process: reads the options, and registers what the run needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import NO_WINDOWS, CrbenchError
from ..run.settings import found_in, read
from .given import TYPED, ini_values
from .options import ini_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.settings import Settings
    from .selection import Selection


def activate(config: pytest.Config) -> None:
    """Register collection, fixtures and outcomes; in the controller also the session's book-keeping.

    Raises:
        pytest.UsageError: for options that contradict one another or name nothing.
    """
    if sys.platform == "win32":
        raise pytest.UsageError(f"crbench: {NO_WINDOWS}")
    from ..run.assemble import open_datasets
    from . import distributed, fixtures
    from .collect import CollectPlugin
    from .idle import Dormant, Unused
    from .outcome import OutcomePlugin, ScrubPlugin
    from .selection import take_arguments

    try:
        settings = read_settings(config)
        datasets = tuple(open_datasets(settings))
        selection = take_arguments(config, settings, datasets)
    except CrbenchError as error:
        raise pytest.UsageError(f"crbench: {error}") from None
    manager, typed = config.pluginmanager, config.stash[TYPED]
    if not selection.datasets and not config.option.collectonly:
        if not typed.options:
            manager.register(Dormant(), "crbench-dormant")
            return
        manager.register(Unused(config, typed.options[0], typed.paths), "crbench-unused")
    manager.register(CollectPlugin(settings, selection, datasets), "crbench-collect")
    manager.register(fixtures, "crbench-fixtures")
    manager.register(OutcomePlugin(settings), "crbench-outcome")
    manager.register(ScrubPlugin(), "crbench-scrub")
    if distributed.is_worker(config):
        _join(config, settings)
    else:
        _lead(config, settings, selection)


def activate_contracts(config: pytest.Config, paths: Sequence[str]) -> None:
    """Hand the options to the suites of `contracts`; no benchmark runs.

    Raises:
        pytest.UsageError: for a part that cannot be named so, or if the suites are not asked for.
    """
    from ..contracts import SETTINGS, Subject

    try:
        for text in config.getoption("crbench_contract"):
            found = Subject.parse(text)
            if not found.registered:
                found.load(config.invocation_params.dir)
        config.stash[SETTINGS] = read_settings(config)
    except CrbenchError as error:
        raise pytest.UsageError(f"crbench: {error}") from None
    if not any("contracts" in path for path in paths):
        raise pytest.UsageError("crbench: --crbench-contract goes with --pyargs pytest_crbench.contracts")


def _join(config: pytest.Config, settings: Settings) -> None:
    from ..host.signals import interrupt_without, terminate_as_interrupt
    from .distributed import hide_title, invocation_of_worker
    from .fixtures import FixturePlugin

    invocation = invocation_of_worker(config)
    hide_title(config)
    if invocation is not None:
        terminate_as_interrupt()
        # execnet ends a worker that has lost its controller too, but lets it go on for some seconds.
        config.add_cleanup(interrupt_without(invocation.controller))
        config.pluginmanager.register(FixturePlugin(settings, invocation), "crbench-state")


def _lead(config: pytest.Config, settings: Settings, selection: Selection) -> None:
    from .junit import JunitPlugin
    from .session import ControllerSession
    from .workers import DistributedPlugin

    try:
        session = ControllerSession(config, settings, selection)
    except CrbenchError as error:
        raise pytest.UsageError(f"crbench: {error}") from None
    config.pluginmanager.register(session, "crbench-session")
    config.pluginmanager.register(DistributedPlugin(session), "crbench-distributed")
    config.pluginmanager.register(JunitPlugin(session), "crbench-junit")


def read_settings(config: pytest.Config) -> Settings:
    """Read the options of this process: command line first, then ini, then those of the run to resume.

    Raises:
        UsageError: naming the option.
    """
    from .selection import origin

    ini = ini_values(config)

    def given(name: str) -> Any:
        typed = found_in(lambda option: config.getoption(ini_name(option), None), name)
        return typed if typed is not None else found_in(lambda option: ini.get(ini_name(option)), name)

    settings = read(given, config.invocation_params.dir)
    run = origin(config, settings)
    if run is None:
        return settings
    from ..run.rundir import check_given, recorded_options

    recorded = recorded_options(run)
    if settings.replay:
        # Reviews and revisions are those of the recorded run: so is who made them.
        kept = {n: v for n, v in recorded.items() if n in ("reviewer", "agent", "dataset", "repeats")}
    else:
        kept = recorded

    def merged(name: str) -> Any:
        value = given(name)
        return kept.get(name) if value is None or value == [] else value

    settings = read(merged, config.invocation_params.dir)
    if settings.resume:
        check_given(run, settings)
    return settings
