"""Assigning comments to references, one to one, among allowed pairs only.

Of all assignments that use allowed pairs, the one that is taken has most pairs; of these, the smallest total
distance; of these, the smallest list of (reference id, comment id), sorted, in the order of lists and of
strings. That is exactly one assignment, whatever the order in which pairs are given.

Method: pairs fall into connected components. In each, scipy's sparse solver (LAPJVsp) finds one assignment
of least cost, where every reference also has a dearer place of its own that stands for "not found", so that
no pair that is not allowed is ever chosen. Shortest paths in its residual graph give dual prices, which both
prove that it is least and tell which pairs belong to any least assignment: those whose reduced cost is 0.
Among these, exchanges along cycles and paths lead to the one with the smallest list.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import nsmallest
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError
from .exchange import Exchange
from .place import Candidate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    #: An array of numpy: types are checked also where that is not installed.
    Ints = Any
#: Whole numbers up to here are exact in the solver's arithmetic.
_EXACT = 2**53


def assign(pairs: Iterable[Candidate]) -> list[Candidate]:
    """Return the assignment of this module's rule, sorted by reference.

    A pair that is given twice counts with its smaller distance. Distances are whole numbers from 0 on.

    Raises:
        UsageError: if scipy is not installed.
        ValueError: if distances are so large that sums would not be exact.
    """
    of_reference: dict[str, dict[str, int]] = defaultdict(dict)
    for reference, comment, distance in pairs:
        known = of_reference[reference]
        known[comment] = min(distance, known.get(comment, distance))
    ordered = [
        Candidate(reference, comment, distance)
        for reference in sorted(of_reference)
        for comment, distance in sorted(_useful(of_reference[reference].items(), len(of_reference)))
    ]
    chosen: list[Candidate] = []
    for component in _components(ordered):
        chosen += _least(component)
    return sorted(chosen)


def require_scipy() -> None:
    """Make sure that `assign` can work.

    Raises:
        UsageError: naming the extra to install.
    """
    from importlib.util import find_spec

    if find_spec("scipy") is None:
        raise UsageError("matching needs scipy: pip install 'pytest-crbench[matching]'")


def _useful(comments: Collection[tuple[str, int]], references: int) -> Iterable[tuple[str, int]]:
    """Return those of a reference's (comment, distance) that it may have in the end: the best ones.

    With n references in all, one that had its n+1st best comment could take a better one that is free.
    """
    if len(comments) <= references:
        return comments
    return nsmallest(references, comments, key=lambda item: (item[1], item[0]))


def _components(ordered: list[Candidate]) -> list[list[Candidate]]:
    """Split pairs so that no two parts share a reference or a comment; each part keeps its order."""
    if len(ordered) < 2:
        return [ordered] if ordered else []
    import numpy as np

    require_scipy()
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, row_count = _numbered(pair.reference for pair in ordered)
    columns, column_count = _numbered(pair.comment for pair in ordered)
    nodes = row_count + column_count
    graph = coo_array((np.ones(len(rows), bool), (rows, columns + row_count)), shape=(nodes, nodes))
    _, label = connected_components(graph, directed=False)
    part = label[rows]
    order = np.argsort(part, kind="stable")
    label_of = part.tolist()
    return [[ordered[i] for i in group] for _, group in groupby(order.tolist(), key=label_of.__getitem__)]


def _numbered(names: Iterable[str]) -> tuple[Ints, int]:
    import numpy as np

    numbers: dict[str, int] = {}
    found = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int64)
    return found, len(numbers)


def _least(pairs: list[Candidate]) -> list[Candidate]:
    """Assign within one component, whose pairs are sorted."""
    references = sorted({pair.reference for pair in pairs})
    if len(references) == 1:
        return [min(pairs, key=lambda pair: (pair.distance, pair.comment))]
    by_reference = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.reference)]
    pairs = [
        Candidate(reference, comment, distance)
        for reference, group in zip(references, by_reference, strict=True)
        for comment, distance in _useful([(p.comment, p.distance) for p in group], len(references))
    ]
    comments = sorted({pair.comment for pair in pairs})
    row = {name: number for number, name in enumerate(references)}
    column = {name: number for number, name in enumerate(comments)}
    edges = sorted((row[p.reference], column[p.comment], p.distance) for p in pairs)
    distance = {(r, c): d for r, c, d in edges}
    taken = _Problem(edges, len(references), len(comments)).solve()
    return [
        Candidate(references[r], comments[c], distance[r, c])
        for r, c in enumerate(taken)
        if c < len(comments)
    ]


class _Problem:
    """One component as arrays. Row r may also take column ``columns + r``, which means it is not found."""

    def __init__(self, edges: list[tuple[int, int, int]], rows: int, columns: int) -> None:
        import numpy as np

        real: Any = np.array(edges, np.int64)
        own = np.arange(rows, dtype=np.int64)
        self.rows, self.columns = rows, columns
        self.row = np.concatenate([real[:, 0], own])
        self.column = np.concatenate([real[:, 1], own + columns])
        # The solver knows no pair of cost 0. Every row is assigned, so that 1 for each changes nothing.
        cost = real[:, 2] + 1
        # Dearer than all that one more pair could make the others lose.
        unfound = (rows + 1) * int(cost.max()) + 1
        if rows * unfound >= _EXACT:
            raise ValueError(f"{rows} references with distances up to {int(cost.max()) - 1} are too many")
        self.cost = np.concatenate([cost, np.full(rows, unfound, np.int64)])

    def solve(self) -> list[int]:
        """Return the column of each row."""
        chosen = self._first()
        prices, tight = self._duals(chosen)
        neighbours: list[list[int]] = [[] for _ in range(self.rows)]
        for r, c in zip(self.row[tight].tolist(), self.column[tight].tolist(), strict=True):
            neighbours[r].append(c)
        free_to_go = {c for c in range(len(prices)) if prices[c] == 0}
        exchange = Exchange([sorted(n) for n in neighbours], chosen.tolist(), free_to_go)
        return exchange.smallest()

    def _first(self) -> Ints:
        """Return some assignment of least cost: the column of each row."""
        import numpy as np

        require_scipy()
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching

        shape = (self.rows, self.columns + self.rows)
        matrix = csr_array((self.cost.astype(float), (self.row, self.column)), shape=shape)
        rows, chosen = min_weight_full_bipartite_matching(matrix)
        return np.asarray(chosen, np.int64)[np.argsort(rows)]

    def _duals(self, chosen: Ints) -> tuple[Ints, Ints]:
        """Return a price (0 or less) for each column, and which edges are tight.

        A row that moves from its column to another pays the difference in cost. Prices are the shortest
        ways to each column; there is no negative cycle if, and only if, the assignment is of least cost.
        """
        import numpy as np

        order = np.lexsort((self.column, self.row))
        row, column, cost = self.row[order], self.column[order], self.cost[order]
        width = self.columns + self.rows
        at = np.searchsorted(row * width + column, np.arange(self.rows) * width + chosen)
        paid = cost[at]
        prices = np.zeros(width, np.int64)
        for _ in range(self.rows + 2):
            better = prices.copy()
            np.minimum.at(better, column, (prices[chosen] - paid)[row] + cost)
            if np.array_equal(better, prices):
                break
            prices = better
        else:
            raise AssertionError("the solver's assignment is not of least cost")
        left = np.ones(width, bool)
        left[chosen] = False
        if prices[left].any():
            raise AssertionError("the solver's assignment is not of least cost")
        worth = (paid - prices[chosen])[self.row] + prices[self.column]
        return prices, worth == self.cost
