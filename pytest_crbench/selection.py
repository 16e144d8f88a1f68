"""What a run takes of its datasets: by the arguments of pytest, and by the run that it goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .core.errors import UsageError
from .register import TYPED

if TYPE_CHECKING:
    import pytest

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


def take_arguments(config: pytest.Config, settings: Settings, datasets: tuple[Dataset, ...]) -> Selection:
    """Take node ids of ours off pytest's arguments; without any path, run the datasets and nothing else.

    With paths, those are collected, and the datasets that were named on the command line.
    """
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
