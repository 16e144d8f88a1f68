"""What can be registered by name: parts of this package, and of others by their entry points."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..text.printable import printable
from .errors import CrbenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.metadata import EntryPoint

T = TypeVar("T")
R = TypeVar("R")


class Registry(Generic[T]):
    """Parts of one kind by name; each is imported when it is first asked for.

    The entry points of other packages are looked up only for a name that is not ours.

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
        self.entries: dict[str, list[EntryPoint]] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.own or name in self._loaded or name in self._others()

    def names(self) -> tuple[str, ...]:
        """Every name: ours, then those of other packages, sorted."""
        return (*self.own, *self.foreign())

    def foreign(self) -> tuple[str, ...]:
        """The names of other packages, sorted."""
        return tuple(sorted({*self._others(), *self._loaded}.difference(self.own)))

    def get(self, name: str) -> T:
        """Return the part of that name.

        Raises:
            UsageError: there is none, or its package cannot be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def add(self, name: str, part: T) -> None:
        """Make a part known under a name in this process."""
        self._loaded[name] = self.checked(part, name)

    def use(self, name: str, call: Callable[[T], R]) -> R:
        """Return what ``call`` makes of the part of a name.

        Raises:
            UsageError: there is none, or it is of another package and raised what it may not.
        """
        part = self.get(name)
        try:
            return call(part)
        except CrbenchError:
            raise
        except Exception as error:
            entry = self.entry(name)
            if entry is None:
                raise
            raise UsageError(f"{self._named(name)} failed: {_said(error)}. It is {origin(entry)}") from error

    def entry(self, name: str) -> EntryPoint | None:
        """Return the entry point of a name; None if it is ours, or nobody's.

        Raises:
            UsageError: two packages have registered the name.
        """
        if name in self.own or not (found := self._others().get(name)):
            return None
        if len({entry.value for entry in found}) > 1:
            both = " and ".join(sorted(origin(entry) for entry in found))
            raise UsageError(f"{self._named(name)} is registered by {both}: uninstall one of them")
        return found[0]

    def checked(self, found: Any, where: str) -> T:
        """Return a part from elsewhere, if it is one.

        Raises:
            UsageError: it is of another type.
        """
        if not isinstance(found, self.kind):
            raise UsageError(
                f"{where} is no instance of a subclass of pytest_crbench.{self.kind.__name__}, but "
                f"{type(found).__name__}"
            )
        return found

    def _load(self, name: str) -> T:
        if name in self.own:
            module, _, attribute = self.own[name].partition(":")
            return self.checked(
                getattr(import_module(f"{__name__.partition('.')[0]}.{module}"), attribute), name
            )
        entry = self.entry(name)
        if entry is None:
            raise UsageError(f"unknown {self.what} {printable(name, 80)!r}; known: {', '.join(self.names())}")
        try:
            found = entry.load()
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{self._named(name)} cannot be loaded from {entry.value}: "
                f"{_said(error)}. It is {origin(entry)}: repair or uninstall that package"
            ) from error
        return self.checked(found, f"{self._named(name)}: {entry.value}, {origin(entry)},")

    def _named(self, name: str) -> str:
        return f"{self.what} {printable(name, 80)!r}"

    def _others(self) -> dict[str, list[EntryPoint]]:
        if self.entries is None:
            from importlib.metadata import entry_points

            self.entries = {}
            for entry in entry_points(group=self.group):
                if entry.name not in self.own:
                    self.entries.setdefault(entry.name, []).append(entry)
        return self.entries


def _said(error: BaseException) -> str:
    return printable(f"{type(error).__name__}: {error}", 300)


def origin(entry: EntryPoint) -> str:
    """Say in words which entry point of which package it is."""
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an installed package"
    return f"the entry point {printable(entry.name, 80)} ({entry.group}) of {printable(package, 80)}"
