"""Datasets as pytest nodes: Suite -> InstanceNode -> check items."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import CrbenchError, UsageError
from ..core.records import to_row
from ..core.status import Status
from ..evaluation.plan import plan_of, unmeasured
from ..statistics.results import again
from ..text.printable import REASON_LIMIT, printable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from ..core.model import Check, Dataset, Instance, Key, Verdict
    from ..core.settings import Settings
    from ..evaluation.plan import Plan
    from .selection import Selection


#: Where the fixture leaves the verdict for the report.
VERDICT = pytest.StashKey["Verdict"]()


class Missed(Exception):
    """The hidden test does not pass after the revision: a measurement, not a fault."""


class Unmeasured(Exception):
    """The check has no measurement; carries the verdict that says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.status.value}: {verdict.reason}")
        self.verdict = verdict


def measure(request: pytest.FixtureRequest, crbench_verdict: object) -> None:
    """A check: its verdict is made by the fixtures; a miss is told here.

    What counts is the verdict that was recorded, not what the fixture `crbench_verdict` returned: it can be
    replaced.
    """
    verdict = request.node.stash[VERDICT]
    if verdict.status is Status.MISSED:
        raise Missed(verdict.reason)


class CheckItem(pytest.Function):
    """One check of one pull request, in one scoring and one repeat."""

    instance_: Instance
    check: Check
    key: Key

    def setup(self) -> None:
        """Have the verdict made.

        Raises:
            Unmeasured: there is none, or another check's, because a vendor's fixture took the place of ours.
        """
        # It names the check to all that is started with our environment (git, helpers of an engine).
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        super().setup()
        verdict = usable(self, self.stash.get(VERDICT, None))
        self.stash[VERDICT] = verdict
        if not verdict.status.measured:
            raise Unmeasured(verdict)

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Where reports say this item is: in its dataset, wherever the package is installed."""
        dataset, _, rest = self.nodeid.partition("::")
        return dataset, None, rest.replace("::", ".")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Path, line and name for pytest's own reports; without a line, a skip would end the run."""
        return self.path, 0, self.nodeid


class InstanceNode(pytest.Collector):
    """One pull request."""

    instance_: Instance
    dataset: Dataset
    plan: Plan

    def collect(self) -> Iterable[CheckItem]:
        """Return one item per check, scoring and repeat, check by check."""
        for planned in self.plan.of(self.dataset, self.instance_):
            item: CheckItem = CheckItem.from_parent(self, name=planned.name, callobj=measure)
            item.instance_, item.check, item.key = self.instance_, planned.check, planned.key
            facets = self.instance_.facets(planned.check)
            # "-m" takes names only: a facet that is none cannot be asked for.
            named = {name: value for name, value in facets.items() if name.isidentifier()}
            item.add_marker(pytest.mark.crbench(scoring=planned.key.scoring, **named))
            yield item


class Suite(pytest.File):
    """One dataset. Its node id is the dataset's name, never the place it was loaded from."""

    instances: list[Instance]
    dataset: Dataset
    plan: Plan

    def collect(self) -> Iterable[InstanceNode]:
        """Return one node per instance, in the dataset's order."""
        for instance in self.instances:
            node: InstanceNode = InstanceNode.from_parent(
                self, name=instance.id, nodeid=f"{self.nodeid}::{instance.id}"
            )
            node.instance_, node.dataset, node.plan = instance, self.dataset, self.plan
            yield node


class CollectPlugin:
    """Adds the suites to what pytest collects."""

    def __init__(self, settings: Settings, selection: Selection, datasets: Sequence[Dataset]) -> None:
        self.settings = settings
        self.datasets = datasets
        self.selection = selection
        self.folders = {dataset.path.resolve() for dataset in datasets if dataset.path is not None}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Keep pytest out of datasets: the hidden tests in them are no tests of its own."""
        return True if collection_path in self.folders else None

    def find(self, name: str) -> Instance:
        """Return the instance of an id (or ``dataset::id``).

        Raises:
            UsageError: if no dataset of this run has it.
        """
        for dataset in self.datasets:
            for instance in dataset.instances:
                if name in (instance.id, f"{dataset.name}::{instance.id}"):
                    return instance
        names = ", ".join(dataset.name for dataset in self.datasets) or "none"
        raise UsageError(f"no instance {name!r} in the datasets of this run ({names})")

    def scoring_of(self, instance: Instance) -> str:
        """Return what the dataset of an instance was made for: hidden tests where it is of no dataset."""
        return next((d.scoring for d in self.datasets if d.name == instance.dataset), "tests")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Append the suites to the session's own children."""
        report = yield
        if isinstance(collector, pytest.Session) and report.outcome == "passed":
            report.result.extend(self._suites(collector))
        return report

    def _suites(self, session: pytest.Session) -> list[Suite]:
        return [self._suite(session, dataset) for dataset in self.selection.datasets]

    def _suite(self, session: pytest.Session, dataset: Dataset) -> Suite:
        instances = list(dataset.instances)
        session.config.hook.pytest_crbench_select(config=session.config, instances=instances)
        suite: Suite = Suite.from_parent(
            session, path=dataset.path or Path(dataset.name), name=dataset.name, nodeid=dataset.name
        )
        suite.instances, suite.dataset, suite.plan = instances, dataset, plan_of(self.settings)
        return suite

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what the node ids on the command line do not name."""
        kept: list[Any] = [
            item for item in items if not isinstance(item, CheckItem) or self.selection.names(item.nodeid)
        ]
        items[:] = kept


def usable(item: CheckItem, verdict: Verdict | None) -> Verdict:
    """Return the recorded verdict of a check, or the one that stands for there being none."""
    if verdict is None:
        said = (
            "no verdict was recorded: a fixture crbench_verdict that replaces ours must take ours as argument"
        )
    elif verdict.key != item.key:
        said = f"the verdict is of {verdict.key.instance}::{verdict.key.check}: a fixture replaced ours"
    else:
        try:
            # One that no result file could hold would end the whole run.
            return again(to_row(verdict), verdict.review and to_row(verdict.review), "the verdict")
        except CrbenchError as error:
            said = str(error)
    reason = printable(said, REASON_LIMIT)
    return unmeasured(item.instance_, item.check, item.key, Status.INFRA_ERROR, reason, cause="fixture")
