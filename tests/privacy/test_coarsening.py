"""Marginals in buckets: counts, cost and sensitivity are those of any other clique."""

import pickle
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Budget, BudgetExceeded, DomainError, InfeasibleError, Ledger, Measurement, Records
from chicle.measurements.measurement import best_one_ways
from chicle.privacy import GaussianEvent, TestNoise
from tests.strategies import cliques_of, records

TINY = 0.01
"""Noise of this sigma rounds to 0 for sure, as far as anybody will see."""


def naive_count(table: Records, clique: tuple[str, ...], coarsening: dict[str, Any]) -> Any:
    size = {name: max(coarsening[name]) + 1 if name in coarsening else table.domain[name] for name in clique}
    counts = np.zeros([size[name] for name in clique], dtype=np.int64)
    for row in range(len(table)):
        codes = {name: int(table[name][row]) for name in clique}
        counts[tuple(int(coarsening[name][codes[name]]) if name in coarsening else codes[name] for name in clique)] += 1
    return counts


@st.composite
def coarsenings_of(draw: st.DrawFn, table: Records, clique: tuple[str, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    chosen = draw(st.lists(st.sampled_from(clique), unique=True)) if clique else []
    return {name: rng.integers(draw(st.integers(1, 6)), size=table.domain[name]) for name in chosen}


@given(st.data(), records(max_rows=60))
def test_buckets_are_counted_and_paid_for_as_cells(data: st.DataObject, table: Records) -> None:
    cliques = data.draw(cliques_of(table.domain))
    maps = [data.draw(coarsenings_of(table, clique)) for clique in cliques]
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    found = chicle.measure(table, cliques, TINY, ledger, coarsening=maps)
    for measurement, event, clique, coarse in zip(found, ledger.events, cliques, maps, strict=True):
        counts = naive_count(table, clique, coarse)
        np.testing.assert_array_equal(measurement.values, counts)
        assert measurement.clique == event.clique == clique
        assert isinstance(event, GaussianEvent)
        assert (event.values, event.l2_sensitivity) == (counts.size, 1)
        assert set(measurement.coarsening) == set(coarse)
        for name, buckets in coarse.items():
            np.testing.assert_array_equal(measurement.coarsening[name], buckets)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_exactly_k_in_buckets_too(k: int) -> None:
    domain = {"a": 2, "b": 3}
    cells = list(product(range(2), range(3)))
    cliques = [("a", "b"), ("b",), ("b", "a"), ("a",)]
    maps: list[dict[str, Any]] = [{"b": [1, 0, 1]}, {"b": [0, 0, 2]}, {"a": [0, 0], "b": [0, 0, 0]}, {}]
    table = Records({"a": [0, 1], "b": [2, 0]}, domain, max_records_per_person=k)
    most = np.zeros(len(cliques))
    ledger = Ledger(Budget(rho=1e12), noise=TestNoise(1))
    before = chicle.measure(table, cliques, TINY, ledger, coarsening=maps)
    for size in range(1, k + 1):
        for person in combinations_with_replacement(cells, size):
            rows = np.array([(0, 2), (1, 0), *person]).T
            more = Records({"a": rows[0], "b": rows[1]}, domain, max_records_per_person=k)
            after = chicle.measure(more, cliques, TINY, ledger, coarsening=maps)
            moved = [np.linalg.norm((x.values - y.values).ravel()) for x, y in zip(before, after, strict=True)]
            most = np.maximum(most, moved)
    assert most.tolist() == [k] * len(cliques)
    assert {event.l2_sensitivity for event in ledger.events if isinstance(event, GaussianEvent)} == {k}


def test_a_bucket_without_codes_has_a_cell_of_noise() -> None:
    table = Records({"a": [0, 1, 2]}, {"a": 3})
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    (measurement,) = chicle.measure(table, [("a",)], TINY, ledger, coarsening=[{"a": [0, 4, 4]}])
    assert measurement.values.tolist() == [1, 0, 0, 0, 2]
    assert ledger.events[0].values == 5


def test_names_of_columns_cannot_clash() -> None:
    domain = {"a": 4, "a in 2 buckets": 3, "a in 2 buckets'": 2}
    rng = np.random.default_rng(0)
    table = Records({name: rng.integers(size, size=200) for name, size in domain.items()}, domain)
    cliques = [tuple(domain), ("a",), ("a in 2 buckets", "a"), ("a in 2 buckets",)]
    maps: list[dict[str, Any]] = [
        {"a": [0, 0, 1, 1]},
        {"a": [1, 0, 0, 1]},
        {"a": np.array([0, 0, 1, 1], dtype=np.int8), "a in 2 buckets": [0, 1, 1]},
        {"a in 2 buckets": (1, 1, 0)},
    ]
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    found = chicle.measure(table, cliques, TINY, ledger, coarsening=maps)
    for measurement, clique, coarse in zip(found, cliques, maps, strict=True):
        np.testing.assert_array_equal(measurement.values, naive_count(table, clique, coarse))
        assert measurement.clique == clique, "no made-up name is shown"
    assert [event.clique for event in ledger.events] == cliques


@pytest.mark.parametrize(
    ("cliques", "coarsening", "error", "rule"),
    [
        ([("a",)], [], DomainError, "an entry for each of the 1 cliques"),
        ([("a",)], [{}, {}], DomainError, "an entry for each of the 1 cliques"),
        ([("a",)], [{"b": [0, 1]}], DomainError, "coarsening of 'b'"),
        ([("a",)], [{"z": [0, 1]}], DomainError, "coarsening of 'z'"),
        ([("a",)], [{"a": [0, 1]}], DomainError, "coarsening of 'a' .* for each of its 3 codes"),
        ([("a",)], [{"a": [0, 1, 0, 0]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": [[0, 1, 0]]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": [0, -1, 0]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": [0.0, 1.0, 0.0]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": [True, False, True]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": ["x", "y", "z"]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": None}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": [0, 1, 2**32]}], DomainError, "coarsening of 'a'"),
        ([("a",)], [{"a": [0, 1, 2**32 - 2]}], InfeasibleError, "bytes"),
        ([("a",), ("b",)], [{"a": [0, 0, 0]}, {"b": [0]}], DomainError, "coarsening of 'b'"),
        ([("a",), ("b",)], [{"a": [0, 0, 0]}] * 2, DomainError, "coarsening of 'a'"),
        ([("a",)] * 60, [{"a": [0, 0, 0]}] * 60, BudgetExceeded, "nothing was spent"),
    ],
)
def test_whatever_is_refused_costs_nothing(cliques: Any, coarsening: Any, error: type[Exception], rule: str) -> None:
    table = Records({"a": [0, 1, 2], "b": [0, 1, 1]}, {"a": 3, "b": 2})
    ledger = Ledger(Budget(rho=1))
    with pytest.raises(error, match=rule):
        chicle.measure(table, cliques, 5.0, ledger, coarsening=coarsening)
    assert ledger.events == ()
    assert ledger.spent == 0


def test_the_buckets_stay_with_the_measurement() -> None:
    buckets = {"a": np.array([0, 0, 1])}
    measurement = Measurement(("a",), np.array([3, 4]), 2.0, private=False, coarsening=buckets)
    buckets["b"] = np.array([0])
    assert list(measurement.coarsening) == ["a"]
    with pytest.raises(TypeError):
        measurement.coarsening["a"] = [0, 0, 0]  # type: ignore[index]
    again = pickle.loads(pickle.dumps(measurement))  # noqa: S301
    assert (again.clique, again.sigma, again.private) == (("a",), 2.0, False)
    np.testing.assert_array_equal(again.values, measurement.values)
    np.testing.assert_array_equal(again.coarsening["a"], [0, 0, 1])


def test_a_1_way_in_buckets_does_not_pass_for_one_of_values() -> None:
    """Not even where there are as many buckets as values."""
    turned = Measurement(("a",), np.array([10, 90]), 1.0, coarsening={"a": [1, 0]})
    plain = Measurement(("a",), np.array([80, 20]), 5.0)
    assert best_one_ways([turned, plain], {"a": 2})["a"] is plain
    with pytest.raises(DomainError, match="no 1-way measurement"):
        best_one_ways([turned], {"a": 2})
    with pytest.raises(DomainError):
        chicle.gum([turned], {"a": 2}, 100, seed=0)
    with pytest.raises(DomainError):
        chicle.project([turned], {"a": 2})
    with pytest.raises(DomainError):
        chicle.mcf([turned], {"a": 2}, 100, seed=0)
    made = chicle.descend([turned, plain], {"a": 2}, 1_000, seed=0)
    assert np.bincount(made["a"])[0] > 800
