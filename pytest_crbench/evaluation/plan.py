"""What a run could measure, and what each measurement is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.model import Key
from ..core.scoring import SCORINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.model import Check, Dataset, Instance
    from ..core.settings import Settings


@dataclass(frozen=True)
class Planned:
    """One measurement: a check in one scoring and one repeat. ``name`` is that of its pytest item."""

    name: str
    key: Key
    instance: Instance
    check: Check

    @property
    def node(self) -> str:
        """Its node id, the same on every machine."""
        return f"{self.key.dataset}::{self.key.instance}::{self.name}"


@dataclass(frozen=True)
class Plan:
    """What decides which measurements there are.

    ``scorings`` empty: what each dataset was made for. ``file_level``: comments without lines can be
    matched.
    """

    repeats: int = 1
    scorings: tuple[str, ...] = ()
    file_level: bool = False

    def scorings_of(self, dataset: Dataset) -> tuple[str, ...]:
        """How the checks of a dataset are scored."""
        return self.scorings or (dataset.scoring,)

    def of(self, dataset: Dataset, instance: Instance) -> Iterator[Planned]:
        """Yield the measurements of one instance, check by check."""
        for check in instance.checks:
            for scoring in self.scorings_of(dataset):
                if not self.applies(check, scoring):
                    continue
                for repeat in range(1, self.repeats + 1):
                    # A check has the same name in every run that scores it as its dataset was made for.
                    marks: list[str] = [scoring] if scoring != dataset.scoring else []
                    marks += [f"r{repeat}"] if self.repeats > 1 else []
                    name = f"{check.id}[{'-'.join(marks)}]" if marks else check.id
                    key = Key(dataset.name, instance.id, check.id, scoring=scoring, repeat=repeat)
                    yield Planned(name, key, instance, check)

    def applies(self, check: Check, scoring: str) -> bool:
        """Whether a check can be scored so."""
        return SCORINGS.get(scoring).applies(check, file_level=self.file_level)

    def all_of(self, datasets: Iterable[Dataset]) -> Iterator[Planned]:
        """Yield every measurement of some datasets, in order."""
        for dataset in datasets:
            for instance in dataset.instances:
                yield from self.of(dataset, instance)


def plan_of(settings: Settings) -> Plan:
    """Return what decides which measurements a run with these settings has."""
    return Plan(settings.repeats, settings.scoring, file_level=settings.file_level == "file")
