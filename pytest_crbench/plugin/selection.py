"""What a run takes of its datasets: by the arguments of pytest, and by the run that it goes on with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.run_record import SelectionInfo
from ..evaluation.plan import plan_of
from ..evaluation.run_record import read_run
from ..run.rundir import find_run
from .given import TYPED, holds_everything

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pytest

    from ..core.model import Dataset
    from ..core.run_record import RunRecord
    from ..core.settings import Settings
    from ..evaluation.plan import Plan


@dataclass(frozen=True)
class Selection:
    """What the command line chose: the datasets, and prefixes of node ids (empty: everything).

    ``open`` are the datasets that a test of the vendor's own may ask for, chosen or not. ``recorded`` holds
    the node ids of the run that is resumed or replayed; None: there is no such run, or it was of everything.
    """

    datasets: tuple[Dataset, ...]
    prefixes: tuple[str, ...]
    open: tuple[Dataset, ...]
    recorded: frozenset[str] | None = None

    def names(self, node: str) -> bool:
        """Whether a node id is one of those chosen (every one, if nothing was chosen)."""
        if self.recorded is not None and not {node, _check(node)} & self.recorded:
            return False
        return not self.prefixes or any(is_below(node, prefix) for prefix in self.prefixes)


def origin(config: pytest.Config, settings: Settings) -> Path | None:
    """Return the folder of the run that this one resumes or replays; None if it does neither.

    Raises:
        UsageError: if there is no such run.
    """
    name = settings.resume or settings.replay
    if not name:
        return None
    # A worker is told: the latest run may be the controller's new one by now.
    told = getattr(config, "workerinput", {}).get("crbench")
    return Path(told["replay"] or told["run"]) if told else find_run(settings.run_dir, name)


def recorded_nodes(run: Path, *, replay: bool) -> frozenset[str] | None:
    """Return the node ids that a recorded run had selected; None if those were all.

    A replay may score otherwise, and so name its measurements otherwise: it is given the checks.

    Raises:
        UsageError: if the record is missing or unreadable.
    """
    nodes = read_run(run).selected_nodes
    return None if nodes is None else frozenset(_check(node) if replay else node for node in nodes)


def note(record: RunRecord, selected: Sequence[str], known: Collection[str]) -> None:
    """Put into the record of a run what of its datasets was selected.

    The node ids are those of its first invocation, and only there if they are a part: resuming inherits them.
    """
    if record.selection is None and len(selected) < len(known):
        record.selected_nodes = list(selected)
    record.selection = SelectionInfo(selected=len(selected), of=len(known))


def _check(node: str) -> str:
    """A node id without its scoring and repeat."""
    return re.sub(r"\[[^\[\]]*\]$", "", node)


def take_arguments(config: pytest.Config, settings: Settings, datasets: tuple[Dataset, ...]) -> Selection:
    """Take node ids of ours off pytest's arguments; without any path, run the datasets and nothing else.

    With paths, those are collected, and the datasets that were named on the command line.

    Raises:
        UsageError: if a node id names no check, or none of the run that is resumed or replayed.
    """
    run = origin(config, settings)
    recorded = recorded_nodes(run, replay=bool(settings.replay)) if run else None
    names = {dataset.name for dataset in datasets}
    prefixes, paths = [], []
    # A path in `addopts` of the ini file belongs to every run: like `testpaths`, it is no choice of this one.
    named = bool(config.stash[TYPED].paths)
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
        _known(prefixes, datasets, plan_of(settings))
        config.args[:] = paths
        selection = Selection(datasets, tuple(prefixes), datasets, recorded)
        if run and not any(map(selection.names, _nodes(datasets, plan_of(settings)))):
            raise UsageError(
                f"{prefixes[0]}: not among the checks that {run.name} had selected: start a new run for it"
            )
        return selection
    if not named:
        config.args[:] = []
        return Selection(datasets, (), datasets, recorded)
    base = config.invocation_params.dir
    everything = any(holds_everything(config, base / path) for path in config.stash[TYPED].paths)
    wanted = datasets if everything or config.getoption("crbench_dataset", None) else ()
    return Selection(wanted, (), datasets, recorded)


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
    ids = _nodes(datasets, plan)
    for prefix in prefixes:
        if not any(is_below(node, prefix) for node in ids):
            raise UsageError(f"{prefix}: no such check; list them with --collect-only -q")


def _nodes(datasets: tuple[Dataset, ...], plan: Plan) -> list[str]:
    return [planned.node for planned in plan.all_of(datasets)]


def is_below(node: str, prefix: str) -> bool:
    """Whether a node id is ``prefix`` or lies below it."""
    return node == prefix or node.startswith((prefix + "::", prefix + "["))
