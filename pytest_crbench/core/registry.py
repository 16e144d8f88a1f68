"""What can be registered by name: parts of this package, and of others by their entry points."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from ..text.printable import printable
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """Parts of one kind by name; each is imported when it is first asked for.

    Args:
        what: the kind, for messages.
        kind: the class that every part is an instance of.
        group: the group of entry points in which other packages announce theirs.
        own: ours, as ``module:attribute`` below this package, in the order of tables. No other package can
            take one of these names.
    """

    def __init__(self, what: str, kind: type[T], group: str, own: Mapping[str, str]) -> None:
        self.what = what
        self.kind = kind
        self.group = group
        self.own = own
        self._loaded: dict[str, T] = {}
        self._foreign: dict[str, EntryPoint] | None = None

    def names(self) -> tuple[str, ...]:
        """Every name: ours, then those of other packages, sorted."""
        return (*self.own, *sorted(self._others()))

    def get(self, name: str) -> T:
        """Return the part of that name.

        Raises:
            UsageError: there is none, or its package cannot be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        if name in self.own:
            module, _, attribute = self.own[name].partition(":")
            found: T = getattr(import_module(f"{__name__.partition('.')[0]}.{module}"), attribute)
            return found
        entry = self._others().get(name)
        if entry is None:
            raise UsageError(f"unknown {self.what} {printable(name, 80)!r}; known: {', '.join(self.names())}")
        try:
            found = entry.load()
        except Exception as error:
            raise UsageError(
                f"{self.what} {printable(name, 80)!r} cannot be loaded from {entry.value}: "
                f"{printable(f'{type(error).__name__}: {error}', 300)}"
            ) from error
        if not isinstance(found, self.kind):
            raise UsageError(
                f"{self.what} {printable(name, 80)!r}: {entry.value} is no instance of a subclass of "
                f"pytest_crbench.{self.kind.__name__}, but {type(found).__name__}"
            )
        return found

    def _others(self) -> dict[str, EntryPoint]:
        if self._foreign is None:
            from importlib.metadata import entry_points

            found = {entry.name: entry for entry in entry_points(group=self.group)}
            self._foreign = {name: entry for name, entry in found.items() if name not in self.own}
        return self._foreign
