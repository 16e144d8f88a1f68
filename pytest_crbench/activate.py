"""Turns the benchmark on in one pytest process: reads the options, and registers what the run needs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .core.errors import NO_WINDOWS, CrbenchError, UsageError
from .options import ini_name
from .settings import read

if TYPE_CHECKING:
    from .core.model import Dataset
    from .core.plan import Plan
    from .settings import Settings


@dataclass(frozen=True)
class Selection:
    """What the command line chose: the datasets, and prefixes of node ids (empty: everything).

    ``open`` are the datasets that a test of the vendor's own may ask for, chosen or not.
    """

    datasets: tuple[Dataset, ...]
    prefixes: tuple[str, ...]
    open: tuple[Dataset, ...]

    def names(self, node: str) -> bool:
        """Whether the command line names a node id (every one, if it names none)."""
        return not self.prefixes or any(is_below(node, prefix) for prefix in self.prefixes)


def activate(config: pytest.Config) -> None:
    """Register collection, fixtures and outcomes; in the controller also the session's book-keeping.

    Raises:
        pytest.UsageError: for options that contradict one another or name nothing.
    """
    if sys.platform == "win32":
        raise pytest.UsageError(f"crbench: {NO_WINDOWS}")
    from . import distributed, fixtures
    from .assemble import open_datasets
    from .collect import CollectPlugin
    from .outcome import OutcomePlugin
    from .scrubbing import ScrubPlugin

    try:
        settings = read_settings(config)
        datasets = tuple(open_datasets(settings))
        selection = take_arguments(config, settings, datasets)
    except CrbenchError as error:
        raise pytest.UsageError(f"crbench: {error}") from None
    manager = config.pluginmanager
    manager.register(CollectPlugin(settings, selection, datasets), "crbench-collect")
    manager.register(fixtures, "crbench-fixtures")
    manager.register(OutcomePlugin(settings), "crbench-outcome")
    manager.register(ScrubPlugin(), "crbench-scrub")
    if distributed.is_worker(config):
        _join(config, settings)
    else:
        _lead(config, settings, selection)


def _join(config: pytest.Config, settings: Settings) -> None:
    from .distributed import hide_title, invocation_of_worker
    from .fixtures import FixturePlugin
    from .interrupt import interrupt_without, terminate_as_interrupt

    invocation = invocation_of_worker(config)
    hide_title(config)
    if invocation is not None:
        terminate_as_interrupt()
        # execnet ends a worker that has lost its controller too, but lets it go on for some seconds.
        config.add_cleanup(interrupt_without(invocation.controller))
        config.pluginmanager.register(FixturePlugin(settings, invocation), "crbench-state")


def _lead(config: pytest.Config, settings: Settings, selection: Selection) -> None:
    from .distributed import DistributedPlugin
    from .junit import JunitPlugin
    from .session import ControllerSession

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

    def given(name: str) -> Any:
        option = "crbench_" + name
        value = config.getoption(option, None)
        return value if value is not None else config.getini(ini_name(name))

    settings = read(given, config.invocation_params.dir)
    if not settings.resume and not settings.replay:
        return settings
    from .rundir import check_given, find_run, recorded_options

    run = find_run(settings.run_dir, settings.resume or settings.replay or "")
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


def take_arguments(config: pytest.Config, settings: Settings, datasets: tuple[Dataset, ...]) -> Selection:
    """Take node ids of ours off pytest's arguments; without any path, run the datasets and nothing else.

    With paths, those are collected, and the datasets that were named on the command line.
    """
    names = {dataset.name for dataset in datasets}
    prefixes, paths = [], []
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    for argument in config.args:
        head = argument.split("::")[0]
        below = _place(Path(config.invocation_params.dir, head), datasets) if named else None
        if below is not None:
            prefixes.append(below + argument[len(head) :])
            continue
        # A folder cannot be followed by "::", so that a folder named like a dataset does no harm.
        exists = Path(config.invocation_params.dir, head).exists()
        if head in names and ("::" in argument or not exists):
            prefixes.append(argument)
        else:
            paths.append(argument)
    if prefixes:
        _known(prefixes, datasets, settings.plan)
        config.args[:] = paths
        return Selection(datasets, tuple(prefixes), datasets)
    if not named:
        config.args[:] = []
        return Selection(datasets, (), datasets)
    wanted = datasets if config.getoption("crbench_dataset", None) else ()
    return Selection(wanted, (), datasets)


def _place(path: Path, datasets: tuple[Dataset, ...]) -> str | None:
    """The node id of a dataset's or an instance's folder: the hidden tests in it are no tests of pytest's."""
    place = path.resolve()
    for dataset in datasets:
        folder = dataset.path.resolve() if dataset.path is not None else None
        if folder == place:
            return dataset.name
        if folder == place.parent and place.name in {i.id for i in dataset.instances}:
            return f"{dataset.name}::{place.name}"
    return None


def _known(prefixes: list[str], datasets: tuple[Dataset, ...], plan: Plan) -> None:
    ids = [planned.node for planned in plan.all_of(datasets)]
    for prefix in prefixes:
        if not any(is_below(node, prefix) for node in ids):
            raise UsageError(f"{prefix}: no such check; list them with --collect-only -q")


def is_below(node: str, prefix: str) -> bool:
    """Whether a node id is ``prefix`` or lies below it."""
    return node == prefix or node.startswith((prefix + "::", prefix + "["))
