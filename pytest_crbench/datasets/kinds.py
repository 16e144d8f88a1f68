"""The kinds of datasets of this package; each reads its files only when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.datasets import DatasetKind

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.datasets import Note
    from ..core.model import Dataset


class Native(DatasetKind):
    """A folder of instances, or of one (docs/writing-an-instance.md)."""

    def load(self, path: Path) -> Dataset:
        """Return the dataset; see `native.load`."""
        from . import native

        return native.load(path)

    def notes(self, path: Path, dataset: Dataset) -> list[Note]:
        """Return what is odd about it."""
        from .native_notes import notes

        return notes(dataset)


class Aacr(DatasetKind):
    """The files of AACR-Bench (docs/aacr.md)."""

    def load(self, path: Path) -> Dataset:
        """Return the dataset; see `aacr.load`."""
        from . import aacr

        return aacr.load(path)

    def folder(self, path: Path) -> Path:
        """Return the folder of the files, of which one may be named."""
        from . import aacr

        return aacr.folder_of(path)

    def notes(self, path: Path, dataset: Dataset) -> list[Note]:
        """Return what is odd about it."""
        from .aacr_notes import notes

        return notes(path)


NATIVE = Native()
AACR = Aacr()
