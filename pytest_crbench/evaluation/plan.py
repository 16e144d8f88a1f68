"""What a run could measure, what each measurement is called, and verdicts for what was never measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.model import Key, Verdict
from ..core.scoring import SCORINGS
from ..host import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.model import Check, Dataset, Environment, Instance
    from ..core.settings import Settings
    from ..core.status import Status


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


def unmeasured(
    instance: Instance,
    check: Check,
    key: Key,
    status: Status,
    reason: str,
    sandbox: str | None = None,
    cause: str = "",
) -> Verdict:
    """Return the verdict of a check that no stage came to."""
    return Verdict(
        **vars(key),
        status=status,
        reason=reason,
        facets=instance.facets(check),
        check_digest=check.digest,
        sandbox=sandbox,
        log=log_path(instance),
        cause=cause,
    )


def environment_name(wanted: Environment) -> str:
    """Name of what an instance asks for, before it is known what that resolves to."""
    return digest.of(
        [
            wanted.python,
            wanted.requirements,
            wanted.as_of,
            wanted.install,
            *([wanted.version] if wanted.version else []),
        ]
    )[:16]


def log_path(instance: Instance) -> str:
    """Path of an instance's log, relative to the run directory."""
    return f"logs/{instance.dataset}/{instance.id}.log"
