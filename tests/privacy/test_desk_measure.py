"""`Desk.measure`: sensitivity by enumerating neighbours, noise and cost, in buckets, in groups and for functionals."""

import math
import pickle
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import chicle
from chicle import (
    Budget,
    BudgetExceeded,
    Desk,
    DomainError,
    InfeasibleError,
    Ledger,
    Measurement,
    ParameterError,
    PrivacyError,
    Query,
    Records,
)
from chicle.measurements.measurement import best_one_ways, estimate_total, total_sigma
from chicle.models.mcf import mcf
from chicle.privacy import GaussianEvent, TestNoise, calibrate
from chicle.query import Functional, QueryLike
from tests.privacy.test_noise import SIGNIFICANCE
from tests.strategies import cliques_of, records

DOMAIN = {"a": 2, "b": 3}
CELLS = list(product(range(2), range(3)))
TINY = 0.01
"""Noise of this sigma rounds to 0 for sure, as far as anybody will see."""


def table_of(rows: Sequence[tuple[int, ...]], k: int = 1) -> Records:
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(DOMAIN)).T
    return Records(dict(zip(DOMAIN, columns, strict=True)), DOMAIN, max_records_per_person=k)


def measure(table: Records, queries: Sequence[QueryLike], sigma: Any, ledger: Ledger) -> list[Measurement]:
    return Desk(table, ledger).measure(queries, sigma=sigma)


def without_noise(table: Records, queries: Sequence[QueryLike]) -> list[Measurement]:
    return measure(table, queries, TINY, Ledger(Budget(rho=1e9), noise=TestNoise(0)))


def naive_answer(table: Records, asked: QueryLike) -> Any:
    """The oracle: rows one by one, then the functional."""
    query = asked if isinstance(asked, Query) else Query(asked)
    size = {
        name: int(max(query.buckets[name])) + 1 if name in query.buckets else table.domain[name]
        for name in query.clique
    }
    counts = np.zeros([size[name] for name in query.clique], dtype=np.int64)
    for row in range(len(table)):
        if all(table[name][row] == code for name, code in query.where.items()):
            codes = {name: int(table[name][row]) for name in query.clique}
            counts[
                tuple(int(query.buckets[name][codes[name]]) if name in query.buckets else codes[name] for name in codes)
            ] += 1
    if query.functional is None:
        return counts
    return np.array([int((weights * counts).sum()) for weights in query.functional.weights])


def largest_moves(queries: Sequence[QueryLike], k: int, most: int = 2) -> list[int]:
    """The squares of the largest L2 moves of exact answers, over all neighbours of all tables of a few rows."""
    found = [0] * len(queries)
    for size in range(most + 1):
        for rows in combinations_with_replacement(CELLS, size):
            before = table_of(list(rows)).count(queries)
            for person in (p for j in range(1, k + 1) for p in combinations_with_replacement(CELLS, j)):
                after = table_of([*rows, *person]).count(queries)
                moves = [int(((x - y) ** 2).sum()) for x, y in zip(before, after, strict=True)]
                found = [max(pair) for pair in zip(found, moves, strict=True)]
    return found


def sensitivities(queries: Sequence[QueryLike], k: int) -> list[float]:
    """What the ledger is told of each query."""
    ledger = Ledger(Budget(rho=1e6))
    measure(table_of(CELLS, k), queries, 5.0, ledger)
    events = [event for event in ledger.events if isinstance(event, GaussianEvent)]
    assert [event.rho("gdp") for event in events] == [pytest.approx(event.l2_sensitivity**2 / 50) for event in events]
    return [event.l2_sensitivity for event in events]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_exactly_k(k: int) -> None:
    """Every table of a tiny domain, every person with at most k rows: the L2 distance reaches k and never more."""
    cliques: list[QueryLike] = [(), ("a",), ("b",), ("a", "b"), ("b", "a")]
    assert largest_moves(cliques, k) == [k**2] * len(cliques)
    assert sensitivities(cliques, k) == [k] * len(cliques)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_exactly_k_in_buckets_too(k: int) -> None:
    queries: list[QueryLike] = [
        Query(("a", "b"), {"b": np.array([1, 0, 1])}),
        Query(("b",), {"b": np.array([0, 0, 2])}),
        Query(("b", "a"), {"a": np.array([0, 0]), "b": np.array([0, 0, 0])}),
        Query(("a",)),
    ]
    assert largest_moves(queries, k) == [k**2] * len(queries)
    assert sensitivities(queries, k) == [k] * len(queries)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_exactly_k_in_a_group_too(k: int) -> None:
    """Rows outside the group move nothing, and all k rows of a person may be inside it."""
    queries: list[QueryLike] = [
        Query(("a",), where={"b": 2}),
        Query(("b",), where={"a": 0}),
        Query(("b",), {"b": np.array([0, 1, 0])}, where={"a": 1}),
        Query((), where={"a": 1}),
        Query((), where={"b": 0, "a": 1}),
    ]
    assert largest_moves(queries, k) == [k**2] * len(queries)
    assert sensitivities(queries, k) == [k] * len(queries)


FUNCTIONALS: dict[str, Query] = {
    "difference": Query(("a",), functional=Functional(np.array([[1, -1]]))),
    "two sums": Query(("b",), functional=Functional(np.array([[1, 1, 0], [0, 1, 1]]))),  # sqrt 2, in the middle
    "weighted": Query(("b",), functional=Functional(np.array([[0, 1, -7]]))),
    "of a pair": Query(
        ("b", "a"), functional=Functional(np.array([[[1, 2], [0, 0], [-3, 1]], [[0, 2], [5, 0], [0, 1]]]))
    ),
    "one cell": Query(("a", "b"), functional=Functional(np.array([[[0, 0, 0], [0, 2, 0]]]))),
    "in buckets": Query(("b",), {"b": np.array([0, 1, 0])}, functional=Functional(np.array([[3, 1], [-3, 1]]))),
    "in a group": Query(("b",), where={"a": 1}, functional=Functional(np.array([[2, 3, 0], [2, 1, 1], [1, 0, 0]]))),
    "of the total": Query((), functional=Functional(np.array([4, -4, 1]))),
}


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_the_sensitivity_of_a_functional_is_attained_and_no_smaller_integer_would_do(name: str, k: int) -> None:
    query = FUNCTIONALS[name]
    (square,) = largest_moves([query], k, most=1)
    (told,) = sensitivities([query], k)
    assert told == query.l2_sensitivity(k)
    assert square <= told**2
    assert square > (told - 1) ** 2, "and somebody attains it, up to rounding to integers"


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.integers(0, 2**32), st.integers(0, 12))
def test_the_sensitivity_of_any_functional_is_the_longest_column(
    answers: int, cells: int, k: int, seed: int, bits: int
) -> None:
    """In exact arithmetic: the norm of k times the longest column, rounded up."""
    weights = np.random.default_rng(seed).integers(-(2**bits), 2**bits + 1, (answers, cells))
    square = k**2 * max(sum(int(weight) ** 2 for weight in column) for column in weights.T)
    found = Functional(weights).l2_sensitivity(k)
    assert found**2 >= square
    assert (found - 1) ** 2 < square or found == square == 0


def test_the_cost_of_a_functional_follows_from_its_sensitivity() -> None:
    query, rho = FUNCTIONALS["weighted"], 0.3
    ledger = Ledger(Budget(rho=1))
    (found,) = Desk(table_of(CELLS, 2), ledger).measure([query], rho=rho)
    (event,) = ledger.events
    assert isinstance(event, GaussianEvent)
    assert (event.l2_sensitivity, event.values, event.clique) == (14, 1, ("b",))
    assert found.sigma == event.sigma == calibrate(rho, l2_sensitivity=14)
    assert rho * (1 - 1e-9) <= ledger.spent <= rho


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ([[0, 0]], PrivacyError),
        ([[0.5, 1.0]], ParameterError),
        ([[True, False]], ParameterError),
        (1, ParameterError),
        ([["1", "2"]], ParameterError),
        ([[2**40, 1]], ParameterError),
        (np.array([[2**63, 1]], dtype=np.uint64), ParameterError),
        ([[1, 2, 3]], DomainError),
        ([1, 2], DomainError),
    ],
)
def test_weights_that_cannot_be_paid_for_are_refused(weights: Any, error: type[Exception]) -> None:
    """No answer moves: nothing to protect. Fractions: no exact noise. Huge weights: sums of counts could overflow."""
    ledger = Ledger(Budget(rho=1))
    with pytest.raises(error):
        measure(table_of([(0, 0)]), [Query(("a",), functional=Functional(np.array(weights)))], 5.0, ledger)
    assert ledger.events == ()


def test_the_weights_of_a_functional_are_its_own() -> None:
    weights = np.array([[1, -1]])
    functional = Functional(weights)
    weights[0, 0] = 100
    assert functional.weights.tolist() == [[1, -1]]
    with pytest.raises(ValueError, match="read-only"):
        functional.weights[0, 0] = 100


@given(st.data(), records(), st.integers(0, 2**32))
def test_neighbours_with_the_same_noise_differ_as_their_counts_do(
    data: st.DataObject, table: Records, seed: int
) -> None:
    cliques = data.draw(cliques_of(table.domain))
    neighbour = Records({name: table[name][1:] for name in table}, table.domain)
    released = []
    for rows in (table, neighbour):
        ledger = Ledger(Budget(rho=1e9), noise=TestNoise(seed))
        released.append(measure(rows, cliques, 3.0, ledger))
        assert not ledger.protected
    for mine, theirs in zip(*released, strict=True):
        difference = mine.values - theirs.values
        assert difference.sum() == min(len(table), 1)
        assert abs(difference).sum() == min(len(table), 1)


def test_the_noise_has_its_sigma() -> None:
    census = chicle.datasets.census(5_000, d=4)
    cliques = list(combinations(census.domain, 2))
    sigmas = [2.0 + i for i in range(len(cliques))]
    ledger = Ledger(Budget(rho=10))
    measurements = measure(census, cliques, sigmas, ledger)
    exact = chicle.count(census, cliques)
    assert ledger.protected
    for clique, sigma, marginal, measurement in zip(cliques, sigmas, exact, measurements, strict=True):
        assert (measurement.clique, measurement.sigma) == (clique, sigma)
        noise = (measurement.values - marginal).ravel()
        # Rounding noise of variance 1/12 spreads the integers over the line again.
        smooth = noise + np.random.default_rng(0).uniform(-0.5, 0.5, noise.size)
        assert stats.kstest(smooth / np.hypot(sigma, 12**-0.5), "norm").pvalue > SIGNIFICANCE
        with pytest.raises(ValueError, match="read-only"):
            measurement.values[0] = 0


def test_rho_is_shared_as_asked_and_by_cells_otherwise() -> None:
    census = chicle.datasets.census(1_000, d=4)
    cliques: list[QueryLike] = [(name,) for name in census.domain]
    for shares in (None, [0.1, 0.2, 0.3, 0.4]):
        ledger = Ledger(Budget(rho=1))
        found = Desk(census, ledger).measure(cliques, rho=0.4, shares=shares)
        weights = shares or [census.domain.cells(one.clique) ** (2 / 3) for one in found]
        costs = [event.rho("gdp") for event in ledger.events]
        assert costs == [pytest.approx(0.4 * weight / math.fsum(weights)) for weight in weights]
        assert 0.4 * (1 - 1e-9) <= ledger.spent <= 0.4


def test_negative_counts_stay() -> None:
    ledger = Ledger(Budget(rho=1), noise=TestNoise(0))
    (measurement,) = measure(table_of([]), [("a", "b")], 50.0, ledger)
    assert measurement.values.min() < 0


def test_what_test_noise_made_is_marked() -> None:
    ledger = Ledger(Budget(rho=1), noise=TestNoise(0))
    (measurement,) = measure(table_of([(0, 0)]), [("a",)], 5.0, ledger)
    assert not measurement.protected
    assert "protected=False" in repr(measurement)
    (measurement,) = measure(table_of([(0, 0)]), [("a",)], 5.0, Ledger(Budget(rho=1)))
    assert measurement.protected


@pytest.mark.parametrize(
    ("cliques", "sigma", "options", "error"),
    [
        ([("a", "z")], 5.0, {}, DomainError),
        ([("a", "a")], 5.0, {}, DomainError),
        (["ab"], 5.0, {}, DomainError),
        ("ab", 5.0, {}, DomainError),
        ([("a",)], 0.1, {}, BudgetExceeded),
        ([("a",), ("b",)], 0.9, {}, BudgetExceeded),
        ([("a",)], 0.0, {}, PrivacyError),
        ([("a",)], float("nan"), {}, PrivacyError),
        ([("a",)], [5.0, 5.0], {}, PrivacyError),
        ([("a",), ("b",)], [5.0], {}, PrivacyError),
        ([("a",)], "5", {}, PrivacyError),
        ([("a",)], None, {}, PrivacyError),
        ([("a",)], [[5.0]], {}, PrivacyError),
        ([("a",)], 5.0, {"rho": 0.1}, PrivacyError),
        ([("a",)], None, {"rho": 0.0}, PrivacyError),
        ([("a",)], None, {"rho": float("nan")}, PrivacyError),
        ([("a",)], None, {"rho": 2.0}, BudgetExceeded),
        ([("a",), ("b",)], None, {"rho": 0.9, "shares": [1.0, 1.0]}, PrivacyError),
        ([("a",), ("b",)], None, {"rho": 0.9, "shares": [1.0]}, PrivacyError),
        ([("a", "b")], 5.0, {"memory_limit": 40}, InfeasibleError),
        ([("a", "b")], 5.0, {"threads": 0}, ParameterError),
    ],
)
def test_whatever_is_refused_costs_nothing(cliques: Any, sigma: Any, options: Any, error: type[Exception]) -> None:
    ledger = Ledger(Budget(rho=1))
    threads = options.pop("threads") if "threads" in options else None
    desk = Desk(table_of([(0, 0)]), ledger, threads=threads)
    with pytest.raises(error):
        desk.measure(cliques, sigma=sigma, **options)
    assert ledger.events == ()
    assert ledger.spent == 0
    assert len(desk.transcript) == 0


def test_only_a_ledger_pays() -> None:
    with pytest.raises(PrivacyError, match="Ledger, not a Budget"):
        Desk(table_of([(0, 0)]), Budget(rho=1))  # type: ignore[arg-type]


def test_one_sigma_may_be_any_number() -> None:
    for sigma in (5, np.float32(5), np.array(5.0), [5], np.array([5])):
        (measurement,) = measure(table_of([(0, 0)]), [("a",)], sigma, Ledger(Budget(rho=1)))
        assert measurement.sigma == 5.0


def test_the_callers_array_is_left_alone() -> None:
    values = np.zeros(3)
    measurement = Measurement(("a",), values, 1.0)
    assert values.flags.writeable
    assert not measurement.values.flags.writeable


def test_nothing_measured_costs_nothing() -> None:
    ledger = Ledger(Budget(rho=1))
    assert measure(table_of([(0, 0)]), [], 5.0, ledger) == []
    assert Desk(table_of([(0, 0)]), ledger).measure([], rho=0.5) == []
    assert ledger.spent == 0


class TestEstimateTotal:
    def test_it_weighs_by_precision(self) -> None:
        good = Measurement(("a",), np.array([40, 60]), 1.0)
        bad = Measurement(("b",), np.array([100, 100, 100]), 1e6)
        assert estimate_total([good, bad]) == 100
        assert estimate_total([Measurement(("a",), np.array([-7, 2]), 1.0)]) == 0
        with pytest.raises(PrivacyError, match="there are none"):
            estimate_total([])

    def test_it_comes_near(self) -> None:
        census = chicle.datasets.census(20_000, d=5)
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        measurements = measure(census, [(name,) for name in census.domain], 20.0, ledger)
        assert abs(estimate_total(measurements) - 20_000) < 600

    def test_groups_and_functionals_say_nothing_of_it(self) -> None:
        whole = Measurement(("a",), np.array([40, 60]), 5.0)
        group = Measurement(("a",), np.array([1, 2]), 0.1, where={"b": 0})
        difference = Measurement(("a",), np.array([-20]), 0.1, functional=Functional(np.array([[1, -1]])))
        assert estimate_total([group, difference, whole]) == 100
        assert total_sigma([group, difference, whole]) == total_sigma([whole])
        with pytest.raises(PrivacyError, match="there are none"):
            estimate_total([group, difference])


# --- In buckets and in groups: counts and cost are those of any other clique ------------------------------------------


@st.composite
def queries_of(draw: st.DrawFn, table: Records, clique: tuple[str, ...]) -> Query:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    coarse = draw(st.lists(st.sampled_from(clique), unique=True)) if clique else []
    buckets: dict[str, npt.NDArray[Any]] = {
        name: rng.integers(draw(st.integers(1, 6)), size=table.domain[name]) for name in coarse
    }
    others = [name for name in table.domain if name not in clique and table.domain[name] < 10]
    fixed = draw(st.lists(st.sampled_from(others), unique=True, max_size=2)) if others else []
    return Query(clique, buckets, {name: draw(st.integers(0, table.domain[name] - 1)) for name in fixed})


@given(st.data(), records(max_rows=60))
def test_buckets_and_groups_are_counted_and_paid_for_as_cells(data: st.DataObject, table: Records) -> None:
    cliques = [clique for clique in data.draw(cliques_of(table.domain)) if table.domain.cells(clique) <= 10_000]
    queries = [data.draw(queries_of(table, clique)) for clique in cliques]
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    found = measure(table, queries, TINY, ledger)
    for measurement, event, query in zip(found, ledger.events, queries, strict=True):
        counts = naive_answer(table, query)
        np.testing.assert_array_equal(measurement.values, counts)
        assert measurement.clique == event.clique == query.clique
        assert isinstance(event, GaussianEvent)
        assert (event.values, event.l2_sensitivity) == (counts.size, 1)
        assert measurement.query.key == query.checked(table.domain).key
        assert set(measurement.buckets) == set(query.buckets)
        for name, buckets in query.buckets.items():
            np.testing.assert_array_equal(measurement.buckets[name], buckets)


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_functionals_are_computed_of_the_counts(name: str) -> None:
    query = FUNCTIONALS[name]
    table = table_of([CELLS[i] for i in np.random.default_rng(3).integers(0, 6, 50)])
    (found,) = without_noise(table, [query])
    np.testing.assert_array_equal(found.values, naive_answer(table, query))
    assert found.values.shape == (query.functional.answers,)  # type: ignore[union-attr]


def test_the_groups_of_a_partition_add_up() -> None:
    """A group costs as much as the whole table: that groups are disjoint is not used."""
    table = table_of([CELLS[i] for i in np.random.default_rng(3).integers(0, 6, 50)])
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    groups = measure(table, [Query(("a",), where={"b": code}) for code in range(3)], TINY, ledger)
    (whole,) = measure(table, [("b", "a")], TINY, ledger)
    np.testing.assert_array_equal([group.values for group in groups], whole.values)
    assert {event.rho("gdp") for event in ledger.events} == {ledger.events[-1].rho("gdp")}


def test_a_bucket_without_codes_has_a_cell_of_noise() -> None:
    table = Records({"a": [0, 1, 2]}, {"a": 3})
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    (measurement,) = measure(table, [Query(("a",), {"a": np.array([0, 4, 4])})], TINY, ledger)
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
    queries = [Query(clique, buckets) for clique, buckets in zip(cliques, maps, strict=True)]
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    found = measure(table, queries, TINY, ledger)
    for measurement, query in zip(found, queries, strict=True):
        np.testing.assert_array_equal(measurement.values, naive_answer(table, query))
        assert measurement.clique == query.clique, "no made-up name is shown"
    assert [event.clique for event in ledger.events] == cliques


BUCKETS: list[tuple[Any, Any, type[Exception], str]] = [
    (("a",), {"b": [0, 1]}, DomainError, "buckets of 'b'"),
    (("a",), {"z": [0, 1]}, DomainError, "buckets of 'z'"),
    (("a",), {"a": [0, 1]}, DomainError, "buckets of 'a' .* for each of its 3 codes"),
    (("a",), {"a": [0, 1, 0, 0]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": [[0, 1, 0]]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": [0, -1, 0]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": [0.0, 1.0, 0.0]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": [True, False, True]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": ["x", "y", "z"]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": None}, DomainError, "buckets of 'a'"),
    (("a",), {"a": [0, 1, 2**32]}, DomainError, "buckets of 'a'"),
    (("a",), {"a": [0, 1, 2**32 - 2]}, InfeasibleError, "bytes"),
]
GROUPS: list[tuple[Any, Any, type[Exception], str]] = [
    (("a",), {"a": 0}, DomainError, "cannot also fix 'a'"),
    (("a",), {"z": 0}, DomainError, "'z' is not an attribute"),
    (("a",), {"b": 2}, DomainError, "a group of 'b' must be one of its codes, 0 to 1, not 2"),
    (("a",), {"b": -1}, DomainError, "a group of 'b'"),
    (("a",), {"b": True}, DomainError, "a group of 'b'"),
    (("a",), {"b": 0.0}, DomainError, "a group of 'b'"),
    (("a",), {"b": [0]}, DomainError, "a group of 'b'"),
]


@pytest.mark.parametrize(
    ("queries", "error", "rule"),
    [
        *(([Query(clique, buckets)], error, rule) for clique, buckets, error, rule in BUCKETS),
        *(([Query(clique, where=where)], error, rule) for clique, where, error, rule in GROUPS),
        (
            [Query(("a",), {"a": np.array([0, 0, 0])}), Query(("b",), {"b": np.array([0])})],
            DomainError,
            "buckets of 'b'",
        ),
        ([Query((name,), {"a": np.array([0, 0, 0])}) for name in "ab"], DomainError, "buckets of 'a'"),
        ([Query(("a",), {"a": np.array([0, 0, 0])})] * 60, BudgetExceeded, "nothing was spent"),
        ([Query(("a",), where={"b": 0})] * 60, BudgetExceeded, "nothing was spent"),
        ([Query(("a",), functional=Functional(np.array([[8, 0, 0]])))], BudgetExceeded, "nothing was spent"),
    ],
)
def test_queries_that_are_refused_cost_nothing(queries: Any, error: type[Exception], rule: str) -> None:
    table = Records({"a": [0, 1, 2], "b": [0, 1, 1]}, {"a": 3, "b": 2})
    ledger = Ledger(Budget(rho=1))
    with pytest.raises(error, match=rule):
        measure(table, queries, 5.0, ledger)
    assert ledger.events == ()
    assert ledger.spent == 0


def test_the_buckets_stay_with_the_measurement() -> None:
    buckets = {"a": np.array([0, 0, 1])}
    measurement = Measurement(("a",), np.array([3, 4]), 2.0, protected=False, buckets=buckets, where={"b": 1})
    buckets["b"] = np.array([0])
    assert list(measurement.buckets) == ["a"]
    for mapping in (measurement.buckets, measurement.where):
        with pytest.raises(TypeError):
            mapping["a"] = [0, 0, 0]  # type: ignore[index]
    again = pickle.loads(pickle.dumps(measurement))  # noqa: S301
    assert (again.clique, again.sigma, again.protected, dict(again.where)) == (("a",), 2.0, False, {"b": 1})
    np.testing.assert_array_equal(again.values, measurement.values)
    np.testing.assert_array_equal(again.buckets["a"], [0, 0, 1])
    assert again.query.key == measurement.query.key


def test_a_1_way_in_buckets_does_not_pass_for_one_of_values() -> None:
    """Not even where there are as many buckets as values."""
    turned = Measurement(("a",), np.array([10, 90]), 1.0, buckets={"a": np.array([1, 0])})
    plain = Measurement(("a",), np.array([80, 20]), 5.0)
    assert best_one_ways([turned, plain], {"a": 2})["a"] is plain
    with pytest.raises(DomainError, match="no 1-way measurement"):
        best_one_ways([turned], {"a": 2})
    with pytest.raises(DomainError):
        chicle.gum([turned], {"a": 2}, 100, seed=0)
    with pytest.raises(DomainError):
        chicle.project([turned], {"a": 2})
    with pytest.raises(DomainError):
        mcf([turned], {"a": 2}, 100, seed=0)
    made = chicle.descend([turned, plain], {"a": 2}, 1_000, seed=0)
    assert np.bincount(made["a"])[0] > 800


def test_a_1_way_of_a_group_does_not_pass_for_one_of_all_rows() -> None:
    domain = {"a": 2, "b": 2}
    group = Measurement(("a",), np.array([10, 90]), 1.0, where={"b": 0})
    difference = Measurement(("a",), np.array([10, 90]), 1.0, functional=Functional(np.array([[1, -1], [1, 1]])))
    plain = [Measurement((name,), np.array([80, 20]), 5.0) for name in domain]
    assert best_one_ways([group, difference, *plain], domain)["a"] is plain[0]
    for unlike in (group, difference):
        with pytest.raises(DomainError, match="no 1-way measurement"):
            best_one_ways([unlike, plain[1]], domain)
        with pytest.raises(DomainError, match="a group or a functional"):
            chicle.descend([unlike, *plain], domain, 100, seed=0)
