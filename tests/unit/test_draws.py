from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import DomainError, Measurement, ParameterError, Records
from chicle.measurements.measurement import best_margins, check_all
from chicle.models.draws import draw_independent, draw_mixed, draw_tree
from tests.strategies import cliques_of, naive_count, records


def measured(table: Records, cliques: Any, sigma: float = 1.0) -> list[Measurement]:
    return [
        Measurement(clique, counts, sigma) for clique, counts in zip(cliques, chicle.count(table, cliques), strict=True)
    ]


def same(a: Records, b: Records) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


@given(st.data(), records(), st.sampled_from([draw_independent, draw_mixed, draw_tree]))
def test_attributes_follow_their_margins(data: st.DataObject, table: Records, start: Any) -> None:
    cliques = [clique for clique in data.draw(cliques_of(table.domain)) if clique]
    if not cliques:
        return
    drawn = start(measured(table, cliques), table.domain, len(table), seed=1)
    assert len(drawn) == len(table)
    known = {name for clique in cliques for name in clique}
    if start is draw_independent:
        for name in known:
            np.testing.assert_array_equal(naive_count(drawn, (name,)), naive_count(table, (name,)))


def test_a_tree_of_pairs_is_reproduced() -> None:
    table = chicle.datasets.census(20_000, d=8)
    edges = list(pairwise(table.domain))
    drawn = draw_tree(measured(table, edges), table.domain, seed=3)
    alone = draw_independent(measured(table, edges), table.domain, seed=3)
    for edge, target, tree, none in zip(edges, *(chicle.count(t, edges) for t in (table, drawn, alone)), strict=True):
        assert np.abs(target - tree).sum() < 0.05 * len(table), edge
        assert np.abs(target - tree).sum() <= np.abs(target - none).sum()


def test_the_heaviest_edges_make_the_tree() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(4, size=4_000)
    b = np.where(rng.random(4_000) < 0.1, rng.integers(4, size=4_000), a)
    c = np.where(rng.random(4_000) < 0.1, rng.integers(4, size=4_000), b)
    table = Records({"a": a, "b": b, "c": c}, {"a": 4, "b": 4, "c": 4})
    pairs = chicle.pairs(table.domain)
    drawn = draw_tree(measured(table, pairs), table.domain, seed=0)
    for target, counts in zip(chicle.count(table, pairs), chicle.count(drawn, pairs), strict=True):
        assert np.abs(target - counts).sum() < 0.1 * 4_000, "even (a, c), which follows from the tree a - b - c"


def test_pairs_are_taken_from_larger_cliques_and_the_most_precise() -> None:
    table = chicle.datasets.census(2_000, d=4)
    a, b, c, _ = table.domain
    wide, narrow = measured(table, [(c, a, b)], sigma=1.0), measured(table, [(a, b)], sigma=500.0)
    found = best_margins(check_all([*wide, *narrow], table.domain), table.domain, 2)
    assert set(found) == {(a, b), (a, c), (b, c)}
    np.testing.assert_array_equal(found[a, c], chicle.count(table, [(a, c)])[0])


def test_coarse_measurements_are_spread_over_their_buckets() -> None:
    measurement = Measurement(("a", "b"), np.array([[6, 2], [4, 0]]), 1.0, buckets={"a": np.array([0, 1, 0])})
    (target,) = check_all([measurement], chicle.Domain({"a": 3, "b": 2}))
    assert target.margin(("a", "b")).spread(chicle.Domain({"a": 3, "b": 2})).tolist() == [[3, 1], [4, 0], [3, 1]]
    assert target.margin(("b", "a")).spread(chicle.Domain({"a": 3, "b": 2})).tolist() == [[3, 4, 3], [1, 0, 1]]


@pytest.mark.parametrize("start", [draw_independent, draw_mixed, draw_tree])
def test_the_seed_decides_and_threads_do_not(start: Any) -> None:
    table = chicle.datasets.census(5_000, d=10)
    targets = measured(table, chicle.pairs(table.domain))
    first = start(targets, table.domain, seed=1, threads=1)
    assert all(same(first, start(targets, table.domain, seed=1, threads=threads)) for threads in (2, 8))
    assert not same(first, start(targets, table.domain, seed=2))


@pytest.mark.parametrize("start", [draw_independent, draw_mixed, draw_tree])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_tables_and_noise_alone(start: Any, n: int) -> None:
    noise = [Measurement(("a", "b"), np.array([[-5.5, -9.0]]), 5.0)]
    drawn = start(noise, {"a": 1, "b": 2, "unmeasured": 70_000}, n=n)
    assert len(drawn) == n
    assert len(start(noise, {"a": 1, "b": 2})) == 0


@pytest.mark.parametrize(
    ("measurement", "rule"),
    [
        (Measurement(("z",), np.zeros(2), 1.0), "'z' is not an attribute"),
        (Measurement(("a",), np.zeros(3), 1.0), "another number of cells.*3 along 'a'"),
        (Measurement(("a",), np.zeros((2, 2)), 1.0), "2 axes"),
        (Measurement(("a",), np.array([np.nan, 1]), 1.0), "finite"),
        (Measurement(("a",), np.array([np.inf, 1]), 1.0), "finite"),
        (Measurement(("a",), np.array([1e300, 1]), 1.0), "finite"),
        (Measurement(("a",), np.zeros(2), 0.0), "sigma"),
        (Measurement(("a",), np.array(["x", "y"]), 1.0), "dtype"),
    ],
)
def test_bad_measurements_are_named(measurement: Measurement, rule: str) -> None:
    for make in (draw_independent, draw_tree, chicle.descend):
        with pytest.raises(DomainError, match=rule):
            make([measurement], {"a": 2}, 5)


def test_an_empty_list_and_bad_numbers_are_refused() -> None:
    good = [Measurement(("a",), np.ones(2), 1.0)]
    for make in (draw_independent, draw_tree, chicle.descend):
        with pytest.raises(DomainError, match="no measurements"):
            make([], {"a": 2}, 5)
        for n in (-1, 2.5, True, 2**31):
            with pytest.raises(ParameterError, match="n must be"):
                make(good, {"a": 2}, n)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="seed"):
            make(good, {"a": 2}, 5, seed=-1)
