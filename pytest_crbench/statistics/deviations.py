"""What differs between two nested values, leaf by leaf: how two runs were made, say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 60


@dataclass(frozen=True)
class Deviation:
    """One value that was recorded and is another one now; ``where`` is its place in the file, with dots."""

    where: str
    recorded: Any
    found: Any

    def __str__(self) -> str:
        return f"{printable(self.where, 200)} was {self.text(self.recorded)}, is {self.text(self.found)}"

    @staticmethod
    def text(value: Any) -> str:
        """Return a value in few words."""
        if isinstance(value, _Absent):
            return "not there"
        return printable(value if isinstance(value, str) else json.dumps(value), _WIDTH)


class _Absent:
    """In the place of a value that one of the two does not have."""


ABSENT = _Absent()


def deviations(
    recorded: Mapping[str, Any], found: Mapping[str, Any], sections: tuple[str, ...]
) -> list[Deviation]:
    """Return what differs in some sections, leaf by leaf, in a stable order."""
    differing: list[Deviation] = []
    for section in sections:
        before, now = (
            dict(_leaves(section, recorded.get(section))),
            dict(_leaves(section, found.get(section))),
        )
        for where in dict.fromkeys([*before, *now]):
            was, is_now = before.get(where, ABSENT), now.get(where, ABSENT)
            if was != is_now:
                differing.append(Deviation(where, was, is_now))
    return differing


def listed(found: list[Deviation], limit: int = 4) -> str:
    """Return differences as one line."""
    more = f"; and {len(found) - limit} more" if len(found) > limit else ""
    return "; ".join(map(str, found[:limit])) + more


def _leaves(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        # The fingerprint says what its digest says, and why.
        for key in sorted(value.keys() - ({"digest"} if value.get("fingerprint") else set())):
            yield from _leaves(f"{where}.{key}", value[key])
    elif value is not None:
        yield where, list(value) if isinstance(value, tuple) else value
