"""Datasets: a path or a bundled name becomes instances of one shape, offline and in a stable order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.datasets import DATASETS, DatasetKind
from ..core.errors import UsageError
from ..text.printable import printable
from ..text.secrets import in_text, register

if TYPE_CHECKING:
    from ..core.datasets import Note
    from ..core.model import Dataset


def open_dataset(spec: str) -> Dataset:
    """Load a dataset by name or path.

    Args:
        spec: the name of a bundled dataset (``releases``), a folder of instances, or the folder of one
            instance; ``native:PATH`` says the kind. A bundled name wins over a folder of the same name:
            write ``./releases`` for the folder. ``aacr:PATH`` is the folder of AACR-Bench's files.

    Raises:
        UsageError: if there is no such dataset, or one of its files is broken; all problems are listed.
    """
    kind, path = located(spec)
    if kind == "native" and not spec.startswith("native:") and not _exists(path):
        raise UsageError(
            f"no dataset {printable(spec)!r}: neither a bundled one "
            f"({', '.join(bundled_names()) or 'none found'}) nor an existing folder. "
            "Name a folder that holds <id>/instance.toml, or one such <id> folder."
        )
    dataset = DATASETS.use(kind, lambda found: found.load(path))
    register(secret for instance in dataset.instances for secret in in_text(instance.source.url or ""))
    return dataset


def located(spec: str) -> tuple[str, Path]:
    """Return the kind of a dataset and where it would be loaded from, whether that is there or not."""
    kind, separator, rest = spec.partition(":")
    if separator and kind in DATASETS:
        return kind, _expand(rest)
    return "native", bundled(spec) if spec in bundled_names() else _expand(spec)


def folder_of(spec: str) -> Path:
    """Return the folder that a dataset would be loaded from, whether it is there or not."""
    kind, path = located(spec)
    return DATASETS.get(kind).folder(path).absolute()


def notes_of(spec: str, dataset: Dataset) -> list[Note]:
    """Return what is odd about the dataset that ``spec`` names, as it was loaded; nothing is fetched or run.

    Raises:
        UsageError: if its files cannot be read any more.
    """
    kind, path = located(spec)
    return DATASETS.get(kind).notes(path, dataset)


def bundled(name: str = "releases") -> Path:
    """Return the folder of a dataset that ships with the package.

    Raises:
        UsageError: if there is none of that name.
    """
    for root in _roots():
        if name in _names(root):
            return root / name
    raise UsageError(
        f"no bundled dataset {name!r}; there are: {', '.join(bundled_names()) or 'none'}. "
        "For a folder of your own give its path."
    )


def bundled_names() -> tuple[str, ...]:
    """Return the names of the datasets that ship with the package, sorted."""
    return tuple(sorted({name for root in _roots() for name in _names(root)}))


def _roots() -> tuple[Path, ...]:
    """Where bundled datasets lie: in the installed package, or at the top of a source checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_instances"
    if installed.is_dir():
        return (installed,)
    checkout = package.parent
    # A folder named "instances" that happens to lie beside the package in site-packages is not ours.
    is_ours = (checkout / "pyproject.toml").is_file() and (checkout / "instances").is_dir()
    return (checkout / "instances",) if is_ours else ()


def _names(root: Path) -> list[str]:
    return [folder.name for folder in root.iterdir() if (folder / "dataset.toml").is_file()]


def _expand(spec: str) -> Path:
    try:
        return Path(spec).expanduser()
    except (RuntimeError, ValueError):  # "~name" of nobody
        return Path(spec)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no disk can hold, or in a folder that may not be looked into
        return False


class Native(DatasetKind):
    """A folder of instances, or of one (docs/writing-an-instance.md)."""

    def load(self, path: Path) -> Dataset:
        """Return the dataset; see `native.load`."""
        from . import native

        return native.load(path)

    def notes(self, path: Path, dataset: Dataset) -> list[Note]:
        """Return what is odd about it."""
        from .native import notes

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
