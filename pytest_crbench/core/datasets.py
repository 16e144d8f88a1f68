"""What reads one kind of dataset: the seam between ``--crbench-dataset=KIND:PATH`` and its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

    from .model import Dataset


@dataclass(frozen=True)
class Note:
    """One oddity of a dataset that is not broken: its name, what is done about it, and where it is."""

    name: str
    said: str
    where: tuple[str, ...]


class DatasetKind:
    """One kind of dataset. A subclass has ``load``; all else has defaults.

    Other packages register an instance in the group ``pytest_crbench.datasets`` of their entry points; its
    name there is what stands before the colon.
    """

    def load(self, path: Path) -> Dataset:
        """Return the dataset at a path, offline and in a stable order.

        Raises:
            UsageError: there is no dataset, or a file is broken. Says which file and key, what was found
                there, and what to do.
        """
        raise NotImplementedError

    def folder(self, path: Path) -> Path:
        """Return the folder of its files, which no sandbox may show, whether it is there or not."""
        return path

    def notes(self, path: Path, dataset: Dataset) -> list[Note]:
        """Return what is odd about a dataset as it was loaded; nothing is fetched or run.

        Raises:
            UsageError: if its files cannot be read any more.
        """
        return []


DATASETS: Registry[DatasetKind] = Registry(
    "kind of dataset",
    DatasetKind,
    "pytest_crbench.datasets",
    {"native": "datasets:NATIVE", "aacr": "datasets:AACR"},
)
