"""The ``tree`` source: folders, copied into the cache so that nobody writes to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import Trees
from ..host import digest

if TYPE_CHECKING:
    from ..core.model import Source, Tree
    from .cache import Cache
    from .writer import TreeWriter


def trees(source: Source, cache: Cache, *, fixed: bool) -> Trees:
    """Return copies of the folders of a ``tree`` source.

    Raises:
        InvalidInstanceError: if a folder is absent, or holds a link that leaves it.
        InfraError: if a folder cannot be read, or changes while it is copied.
    """
    base, head = _copy(source.base, "base", cache), _copy(source.head, "head", cache)
    return Trees(base, head, _copy(source.fixed, "fixed", cache) if fixed else None)


def _copy(folder: object, side: str, cache: Cache) -> Tree:
    if not isinstance(folder, Path) or not folder.is_dir():
        raise InvalidInstanceError(
            f"source.{side}: there is no folder {folder}; name an existing one, relative to the instance.",
            reason="no-tree",
        )
    place = folder

    def make(writer: TreeWriter) -> None:
        for path, mode, content in digest.walk(place):
            if mode == "120000":
                writer.link(path, content.decode("utf-8", "surrogateescape"))
            else:
                writer.file(path, [content], executable=mode == "100755")
        if digest.of_tree(place) != before:
            raise InfraError(f"{place} changed while it was copied; run again.", reason="changed")

    try:
        before = digest.of_tree(place)
        return cache.tree(digest.of(["tree", 1, before]), str(place), make)
    except OSError as error:
        raise InfraError(f"cannot read {place}: {error.strerror or error}", reason="disk") from error
