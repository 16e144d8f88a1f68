"""The assignment: one to one, most pairs, least distance, and one answer whatever the order."""

from __future__ import annotations

import functools
import random
import time
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_crbench.core.errors import UsageError
from pytest_crbench.scoring.matching import assign as module
from pytest_crbench.scoring.matching.assign import assign
from pytest_crbench.scoring.matching.place import FILE_DISTANCE, Candidate

pytest.importorskip("scipy")

REFERENCES = ["r1", "r10", "r2", "R3", "r4"]
COMMENTS = ["c1", "c10", "c2", "c3", "é", "c5"]
PAIRS = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(REFERENCES),
        st.sampled_from(COMMENTS),
        st.sampled_from([0, 0, 0, 1, 2, FILE_DISTANCE]),
    ),
    max_size=14,
)


def best(pairs: list[Candidate]) -> list[Candidate]:
    """Try every one-to-one assignment."""
    least: dict[tuple[str, str], Candidate] = {}
    for pair in sorted(pairs, reverse=True):
        least[pair.reference, pair.comment] = pair
    found: tuple[object, ...] | None = None
    chosen: list[Candidate] = []
    for size in range(min(len(REFERENCES), len(COMMENTS)), -1, -1):
        for some in combinations(sorted(least.values()), size):
            if len({p.reference for p in some}) < size or len({p.comment for p in some}) < size:
                continue
            key = (sum(p.distance for p in some), [(p.reference, p.comment) for p in some])
            if found is None or key < found:
                found, chosen = key, list(some)
        if found is not None:
            return chosen
    return chosen


@given(PAIRS)
@settings(max_examples=250, deadline=None)
@example([Candidate("r1", "c1", 0), Candidate("r1", "c2", 0), Candidate("r2", "c1", 0)])
@example([Candidate("r1", "c2", 0), Candidate("r2", "c1", 0), Candidate("r1", "c1", 1)])
def test_brute_force_finds_the_same(pairs: list[Candidate]) -> None:
    assert assign(pairs) == best(pairs)


def best_by_parts(rows: int, columns: int, cost: dict[tuple[int, int], int]) -> tuple[tuple[int, int], ...]:
    """Try every assignment, each rest of the problem once."""

    @functools.cache
    def rest(row: int, taken: int) -> tuple[int, int, tuple[tuple[int, int], ...]]:
        if row == rows:
            return (0, 0, ())
        ways = [rest(row + 1, taken)]
        for column in range(columns):
            if (row, column) in cost and not taken >> column & 1:
                unfound, distance, pairs = rest(row + 1, taken | 1 << column)
                ways.append((unfound - 1, distance + cost[row, column], ((row, column), *pairs)))
        return min(ways)

    return rest(0, 0)[2]


@given(st.integers(0, 10**9))
@settings(max_examples=150, deadline=None)
def test_trying_every_way_finds_the_same_where_almost_all_are_ties(seed: int) -> None:
    chance = random.Random(seed)
    rows, columns, share = chance.randint(1, 7), chance.randint(1, 9), chance.choice([0.2, 0.35, 0.5, 0.8, 1])
    distances = chance.choice([[0], [0, 1], [0, 0, 0, 1, 2], [0, 1, 5, FILE_DISTANCE]])
    cells = [(r, c) for r in range(rows) for c in range(columns) if chance.random() < share]
    cost = {cell: chance.choice(distances) for cell in cells}
    found = assign(Candidate(f"r{r}", f"c{c}", d) for (r, c), d in cost.items())
    expected = best_by_parts(rows, columns, cost)
    assert [(m.reference, m.comment) for m in found] == [(f"r{r}", f"c{c}") for r, c in expected]


@given(PAIRS, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_pairs_changes_nothing(pairs: list[Candidate], chance: random.Random) -> None:
    expected = assign(pairs)
    shuffled = pairs[:]
    chance.shuffle(shuffled)
    assert assign(shuffled) == expected
    assert assign(list(reversed(pairs))) == expected


@st.composite
def larger(draw: st.DrawFn) -> list[Candidate]:
    """Graphs too large to try all, with many ties: everything at a few distances."""
    chance = random.Random(draw(st.integers(0, 10**6)))
    rows, columns = chance.randint(2, 25), chance.randint(2, 60)
    share = chance.choice([0.05, 0.2, 0.6, 1.0])
    distances = chance.choice([[0], [0, 1], [0, 1, FILE_DISTANCE]])
    return [
        Candidate(f"r{r}", f"c{c}", chance.choice(distances))
        for r in range(rows)
        for c in range(columns)
        if chance.random() < share
    ]


@given(larger())
@settings(max_examples=60, deadline=None)
def test_larger_ones_are_allowed_one_to_one_and_as_good_as_a_dense_solver(pairs: list[Candidate]) -> None:
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    chosen = assign(pairs)
    assert set(chosen) <= set(pairs)
    assert len({c.reference for c in chosen}) == len({c.comment for c in chosen}) == len(chosen)
    rows = sorted({p.reference for p in pairs})
    columns = sorted({p.comment for p in pairs})
    forbidden = 1e9
    dense = np.full((len(rows), len(columns)), forbidden)
    for pair in pairs:
        dense[rows.index(pair.reference), columns.index(pair.comment)] = pair.distance
    of_dense = [dense[at] for at in zip(*linear_sum_assignment(dense), strict=True)]
    allowed = [cost for cost in of_dense if cost < forbidden]
    assert len(chosen) == len(allowed)
    assert sum(c.distance for c in chosen) == sum(allowed)
    # No reference could have a comment of a smaller id while those before it keep theirs.
    by_reference = {c.reference: c for c in chosen}
    free = set(columns) - {c.comment for c in chosen}
    for pair in pairs:
        mine = by_reference.get(pair.reference)
        if mine and pair.comment in free:
            assert (pair.distance, pair.comment) >= (mine.distance, mine.comment)


def test_nothing_to_assign() -> None:
    assert assign([]) == []
    assert assign([Candidate("r", "c", 3)]) == [Candidate("r", "c", 3)]


def test_a_pair_given_twice_counts_with_its_smaller_distance() -> None:
    assert assign([Candidate("r", "c", 3), Candidate("r", "c", 1)]) == [Candidate("r", "c", 1)]


def test_more_pairs_come_before_nearer_ones() -> None:
    pairs = [Candidate("a", "x", 0), Candidate("a", "y", FILE_DISTANCE), Candidate("b", "x", FILE_DISTANCE)]
    assert [(c.reference, c.comment) for c in assign(pairs)] == [("a", "y"), ("b", "x")]


def test_one_place_with_everything_at_it_is_soon_assigned() -> None:
    """Twenty thousand comments on the very lines of three hundred references: all ties."""
    pairs = [Candidate(f"r{r:03}", f"c{c:05}", 0) for c in range(20_000) for r in range(0, 300, 10)]
    pairs += [Candidate(f"r{r:03}", f"d{r:03}", 0) for r in range(300)]
    began = time.process_time()
    chosen = assign(pairs)
    assert time.process_time() - began < 5
    assert len(chosen) == 300
    crowded = [c.comment for c in chosen if c.comment.startswith("c")]
    assert crowded == [f"c{n:05}" for n in range(30)]


def test_distances_beyond_exact_arithmetic_are_refused() -> None:
    far = 2**52
    with pytest.raises(ValueError, match="too many"):
        assign([Candidate(r, c, far) for r in "ab" for c in "xy"])


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"pytest-crbench\[matching\]"):
        module.require_scipy()
