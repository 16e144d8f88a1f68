"""What is one place, at the boundaries of each rule."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.matching import comment

from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.scoring.matching.place import FILE_DISTANCE, Rules, candidates, is_placeless

RENAMED = {"old.py": "new.py"}


def meet(
    one: ReviewComment,
    other: ReviewComment,
    rules: Rules | None = None,
    renames: dict[str, str] | None = None,
) -> int | None:
    """The distance of two comments that are at one place; None if they are not."""
    found = candidates([one], [other], renames or {}, rules or Rules())
    back = candidates([other], [one], renames or {}, rules or Rules())
    assert [pair.distance for pair in found] == [pair.distance for pair in back]
    return found[0].distance if found else None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((10, 12), 0),
        ((12, 30), 0),
        ((1, 10), 0),
        ((11, 11), 0),
        ((1, 50), 0),
        ((13, 14), 1),
        ((8, 9), 1),
        ((14, 14), None),
        ((1, 8), None),
        ((12, 10), 0),  # reversed
        ((14, 13), 1),
        ((9, 1), 1),
    ],
)
def test_ranges_overlap_or_are_neighbours(lines: tuple[int, int], expected: int | None) -> None:
    assert meet(comment("r", (10, 12)), comment("c", lines)) == expected


@pytest.mark.parametrize(("tolerance", "far"), [(0, 13), (1, 14), (2, 15), (10, 23)])
def test_the_tolerance_is_the_last_distance_that_counts(tolerance: int, far: int) -> None:
    rules = Rules(tolerance)
    assert meet(comment("r", (10, 12)), comment("c", far - 1), rules) == tolerance
    assert meet(comment("r", (10, 12)), comment("c", far), rules) is None


def test_another_file_or_side_is_another_place() -> None:
    assert meet(comment("r"), comment("c", path="b.py")) is None
    assert meet(comment("r"), comment("c", path="A.py")) is None
    assert meet(comment("r"), comment("c", side="left")) is None
    assert meet(comment("r", side="left"), comment("c", side="left")) == 0


def test_a_renamed_file_is_one_file_on_each_side() -> None:
    new, old = comment("r", path="new.py"), comment("c", path="old.py")
    assert meet(new, old) is None
    assert meet(new, old, renames=RENAMED) == 0
    left_new, left_old = (comment(n, path=p, side="left") for n, p in (("r", "new.py"), ("c", "old.py")))
    assert meet(left_new, left_old, renames=RENAMED) == 0
    assert meet(new, left_old, renames=RENAMED) is None


def test_files_that_swap_their_names_are_told_apart_by_the_side() -> None:
    swapped = {"a.py": "b.py", "b.py": "a.py"}
    assert meet(comment("r", path="a.py"), comment("c", path="a.py"), renames=swapped) == 0
    assert meet(comment("r", path="a.py"), comment("c", path="b.py"), renames=swapped) is None
    one, other = comment("r", path="a.py", side="left"), comment("c", path="b.py", side="left")
    assert meet(one, other, renames=swapped) is None


def test_a_name_that_another_file_takes_over_means_that_file_on_its_side() -> None:
    moved_on = {"a.py": "b.py", "c.py": "a.py"}
    assert meet(comment("r", path="a.py"), comment("c", path="c.py"), renames=moved_on) == 0
    assert meet(comment("r", path="a.py"), comment("c", path="b.py"), renames=moved_on) is None
    left = {"side": "left"}
    assert meet(comment("r", path="a.py", **left), comment("c", path="b.py", **left), renames=moved_on) == 0
    assert (
        meet(comment("r", path="a.py", **left), comment("c", path="c.py", **left), renames=moved_on) is None
    )


@pytest.mark.parametrize(
    "vague",
    [
        {"lines": None},
        {"lines": (0, 0)},
        {"lines": (0, 12)},
        {"lines": (-3, 12)},
        {"lines": (1, 101)},
        {"lines": (101, 1)},
        {"lines": (1, 99_999)},
    ],
)
def test_what_names_no_lines_matches_nothing_or_its_file(vague: dict[str, object]) -> None:
    of_file = comment("c", **vague)
    assert is_placeless(of_file)
    assert meet(comment("r"), of_file) is None
    rules = Rules(file_level="file")
    assert meet(comment("r"), of_file, rules) == FILE_DISTANCE
    assert meet(comment("r", side="left"), of_file, rules) == FILE_DISTANCE
    assert meet(comment("r", path="b.py"), of_file, rules) is None
    assert meet(comment("r", None), of_file, rules) == FILE_DISTANCE
    assert meet(comment("r", None), of_file) is None


def test_a_hundred_lines_are_still_a_place() -> None:
    assert not is_placeless(comment("c", (1, 100)))
    assert meet(comment("r", (100, 199)), comment("c", (1, 100))) == 0
    assert meet(comment("r", (101, 200)), comment("c", (1, 100))) == 1


@pytest.mark.parametrize("path", [None, "", "  "])
@pytest.mark.parametrize("lines", [None, (10, 12)])
def test_what_names_no_file_matches_nothing_under_any_policy(path: str | None, lines: object) -> None:
    nowhere = comment("c", lines, path=path)
    assert is_placeless(nowhere)
    for rules in (Rules(), Rules(file_level="file")):
        assert meet(comment("r"), nowhere, rules) is None
        assert meet(comment("r", lines, path=path), nowhere, rules) is None


def test_under_the_policy_file_the_names_of_a_renamed_file_are_one_file() -> None:
    rules = Rules(file_level="file")
    of_file = comment("c", None, path="old.py")
    assert meet(comment("r", path="new.py"), of_file, rules, RENAMED) == FILE_DISTANCE
    assert meet(comment("r", path="old.py", side="left"), of_file, rules, RENAMED) == FILE_DISTANCE


def test_comments_with_lines_match_each_other_only_by_lines_also_under_the_policy_file() -> None:
    rules = Rules(file_level="file")
    assert meet(comment("r", 10), comment("c", 900), rules) is None


LINES = st.tuples(st.integers(0, 250), st.integers(0, 250)) | st.none()
SOME = st.lists(st.tuples(st.sampled_from(["a.py", "b.py", ""]), st.sampled_from(["left", "right"]), LINES))


@given(SOME, SOME, st.integers(0, 30), st.sampled_from(["nothing", "file"]))
@settings(max_examples=200, deadline=None)
def test_the_index_finds_what_comparing_every_pair_finds(one: list, other: list, near: int, how: str) -> None:
    references = [comment(f"r{i}", lines, path=p, side=s) for i, (p, s, lines) in enumerate(one)]
    comments = [comment(f"c{i}", lines, path=p, side=s) for i, (p, s, lines) in enumerate(other)]
    expected = set()
    for r in references:
        for c in comments:
            if r.path != c.path or not r.path:
                continue
            placed = not is_placeless(r) and not is_placeless(c)
            if placed and r.side == c.side:
                (a, b), (x, y) = sorted(r.lines or ()), sorted(c.lines or ())
                gap = max(0, a - y, x - b)
                if gap <= near:
                    expected.add((r.id, c.id, gap))
            elif not placed and how == "file":
                expected.add((r.id, c.id, FILE_DISTANCE))
    found = candidates(references, comments, {}, Rules(near, how))  # type: ignore[arg-type]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_many_comments_are_looked_up_not_compared() -> None:
    chance = random.Random(4)
    references = [comment(f"r{i}", chance.randint(1, 5000), path=f"f{i % 300}.py") for i in range(1500)]
    comments = [comment(f"c{i}", chance.randint(1, 5000), path=f"f{i % 300}.py") for i in range(20_000)]
    began = time.process_time()
    candidates(references, comments, {}, Rules())
    assert time.process_time() - began < 2


def test_a_tolerance_of_the_whole_file_is_refused() -> None:
    with pytest.raises(UsageError, match="file-level=file"):
        Rules(1_000_000)
