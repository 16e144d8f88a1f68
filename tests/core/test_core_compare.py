"""Comparisons: pairing, refusals, and the differences."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_builders import results, run, verdict

from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.status import Status
from pytest_crbench.statistics.compare import compare, differing, pair_up


def test_who_passed_what() -> None:
    found = compare(results(run("ppmmri")), results(run("pmpmpp")))
    assert [key.instance for key in found.keys(first=True, second=True)] == ["pr-000"]
    assert [key.instance for key in found.keys(first=True, second=False)] == ["pr-001"]
    assert [key.instance for key in found.keys(first=False, second=True)] == ["pr-002", "pr-004"]
    assert [key.instance for key in found.keys(first=False, second=False)] == ["pr-003"]
    assert [(one.key.instance, one.first, one.second) for one in found.unmeasured] == [
        ("pr-005", Status.INFRA_ERROR, Status.PASSED)
    ]
    assert found.overall.change == Fraction(1, 5)
    assert (found.overall.first, found.overall.second) == (Fraction(2, 5), Fraction(3, 5))
    assert found.overall.p == 1.0
    assert found.coverage == Fraction(5, 6)


def test_checks_of_one_side_and_changed_ones_are_listed() -> None:
    first = results([verdict("a"), verdict("b"), verdict("c", check_digest="1")])
    second = results([verdict("b"), verdict("c", check_digest="2"), verdict("d")])
    found = compare(first, second)
    assert [key.instance for key in found.only_in_first] == ["a"]
    assert [key.instance for key in found.only_in_second] == ["d"]
    assert [key.instance for key in found.changed] == ["c"]
    assert found.overall.pairs == 1


def test_pairs_are_of_one_repeat_and_arm() -> None:
    first = results([verdict("a", repeat=1), verdict("a", repeat=2)])
    second = results([verdict("a", repeat=2, status="m"), verdict("a", arm="none")])
    found = compare(first, second)
    assert [(pair.key.repeat, pair.first, pair.second) for pair in found.pairs] == [(2, True, False)]


def test_nothing_in_common() -> None:
    found = compare(results(run("p")), results([]))
    assert found.overall.change is None
    assert found.overall.interval is None
    assert found.coverage is None
    assert found.groups == ()


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (results([], agent={"name": "llm"}), results([]), "coding agents differ (llm and suggestions)"),
        (results([], agent=None), results([]), "coding agents differ"),
        (results([], sandbox={"name": "docker"}), results([]), "sandboxes differ (docker and local)"),
        (
            results(run("p", sandbox="docker"), sandbox=None),
            results(run("p", sandbox="local"), sandbox=None),
            "sandboxes differ (docker and local)",
        ),
        (
            results(run("p", environment="aaaa")),
            results(run("p", environment="bbbb")),
            "environments of demo::pr-000 differ (aaaa and bbbb)",
        ),
    ],
)
def test_unlike_runs_are_refused(first: object, second: object, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        compare(first, second)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_what_need_not_be_alike() -> None:
    """Reviewers differ by purpose; a verdict that never had an environment says nothing about it."""
    first = results(run("pi", environment=None), reviewer={"name": "one"})
    second = results(run("pm", environment="e"), reviewer={"name": "two"})
    assert differing(first, second) == ()


def test_facets_are_compared_too() -> None:
    first = [
        *run("ppp", facets={"kind": "structural"}),
        *[verdict(f"b{n}", facets={"kind": "behavioral"}) for n in range(2)],
    ]
    second = [
        *run("mmm", facets={"kind": "structural"}),
        *[verdict(f"b{n}", facets={"kind": "behavioral"}) for n in range(2)],
    ]
    found = compare(results(first), results(second))
    groups = {(group.facet, group.value): group for group in found.groups}
    assert groups["kind", "structural"].change == -1
    assert groups["kind", "behavioral"].change == 0
    assert groups["kind", "structural"].p == pytest.approx(0.25)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from("pmraitv"), st.sampled_from("pmraitv")), max_size=40
    )
)
def test_swapping_the_sides_mirrors_everything(spec: list[tuple[int, str, str]]) -> None:
    first = results([verdict(f"pr{i}", f"c{n}", a) for n, (i, a, _) in enumerate(spec)])
    second = results([verdict(f"pr{i}", f"c{n}", b) for n, (i, _, b) in enumerate(spec)])
    there, back = pair_up(first, second), pair_up(second, first)
    assert there.overall.pairs + len(there.unmeasured) == len(spec)
    assert there.overall.p == back.overall.p
    assert (there.overall.only_first, there.overall.both) == (back.overall.only_second, back.overall.both)
    if there.overall.change is not None:
        assert back.overall.change == -there.overall.change
        assert there.overall.interval is not None
        assert back.overall.interval is not None
        assert there.overall.interval.low == pytest.approx(-back.overall.interval.high, abs=1e-9)
