"""From one assignment of least cost to the one that is smallest in order, by exchanges that cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Exchange:
    """An assignment of rows to columns that can be changed without changing its cost.

    Args:
        neighbours: for each row the columns that it has in any assignment of least cost, sorted.
        chosen: the column of each row.
        free_to_go: the columns that need not be taken. Columns that nobody has are all among these.

    A row may take a column if all that follows ends well: whoever had it moves on to another, and so on,
    until somebody takes what the first row leaves; or somebody takes a column that was free, and what the
    first row leaves is taken by another whose own may be left, or need not be taken at all.
    """

    def __init__(
        self, neighbours: Sequence[Sequence[int]], chosen: Sequence[int], free_to_go: set[int]
    ) -> None:
        self._neighbours = neighbours
        self._chosen = list(chosen)
        self._free_to_go = free_to_go
        self._owner = {column: row for row, column in enumerate(self._chosen)}
        #: Sets of rows are the bits of a number: those that may have a column, and those not yet settled.
        self._wanted_by: dict[int, int] = {}
        for row, columns in enumerate(neighbours):
            for column in columns:
                self._wanted_by[column] = self._wanted_by.get(column, 0) | 1 << row
        self._open = (1 << len(self._chosen)) - 1
        self._beside_free = 0
        for row in range(len(self._chosen)):
            self._look_for_free(row)

    def smallest(self) -> list[int]:
        """Settle row after row on the first column that it may have; returns the column of each row."""
        for row, columns in enumerate(self._neighbours):
            self._open &= ~(1 << row)
            if columns[0] != self._chosen[row]:
                self._settle(row)
        return self._chosen

    def _settle(self, row: int) -> None:
        left = self._chosen[row]
        way, released = self._ways_to(left)
        for column in self._neighbours[row]:
            if column == left:
                return
            owner = self._owner.get(column)
            if owner in way or (owner is None and released is not None):
                self._move(dict(self._moves(row, column, left, way, released)))
                return

    def _ways_to(self, left: int) -> tuple[dict[int, int], int | None]:
        """Return the column that each row can move to so that in the end ``left`` is dealt with.

        The second value is the column that is left empty where a free one is taken; None if there is none.
        """
        way: dict[int, int] = {}
        released: int | None = None
        reached = 0
        columns = [left]
        while columns:
            column = columns.pop()
            coming = self._wanted_by[column] & self._open & ~reached
            newly = [(row, column) for row in _bits(coming)]
            if released is None and column in self._free_to_go:
                released = column
                more = self._beside_free & self._open & ~reached & ~coming
                newly += [(row, self._free_beside(row)) for row in _bits(more)]
                coming |= more
            reached |= coming
            way.update(newly)
            columns += [self._chosen[row] for row, _ in newly]
        return way, released

    def _moves(
        self, row: int, column: int, left: int, way: dict[int, int], released: int | None
    ) -> Iterator[tuple[int, int]]:
        """Yield who moves where, beginning with ``row`` taking ``column``."""
        yield row, column
        while column != left:
            if column not in self._owner:
                assert released is not None
                column = released
                if column == left:
                    return
            mover = self._owner[column]
            column = way[mover]
            yield mover, column

    def _move(self, moves: dict[int, int]) -> None:
        before = {self._chosen[row] for row in moves}
        for row in moves:
            del self._owner[self._chosen[row]]
        for row, column in moves.items():
            self._chosen[row] = column
            self._owner[column] = row
        for column in before ^ set(moves.values()):
            for row in _bits(self._wanted_by[column] & self._open):
                self._look_for_free(row)

    def _look_for_free(self, row: int) -> None:
        if any(column not in self._owner for column in self._neighbours[row]):
            self._beside_free |= 1 << row
        else:
            self._beside_free &= ~(1 << row)

    def _free_beside(self, row: int) -> int:
        return next(column for column in self._neighbours[row] if column not in self._owner)


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
