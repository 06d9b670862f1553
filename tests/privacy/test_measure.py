from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import chicle
from chicle import Budget, BudgetExceeded, DomainError, InfeasibleError, Ledger, Measurement, PrivacyError, Records
from chicle.measurements.measurement import estimate_total
from chicle.privacy import GaussianEvent, TestNoise
from tests.privacy.test_noise import SIGNIFICANCE
from tests.strategies import cliques_of, records

DOMAIN = {"a": 2, "b": 3}


def table_of(rows: Sequence[tuple[int, ...]], k: int = 1) -> Records:
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(DOMAIN)).T
    return Records(dict(zip(DOMAIN, columns, strict=True)), DOMAIN, max_records_per_person=k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_exactly_k(k: int) -> None:
    """Every table of a tiny domain, every person with at most k rows: the L2 distance reaches k and never more."""
    cells = list(product(range(2), range(3)))
    cliques = [(), ("a",), ("b",), ("a", "b"), ("b", "a")]
    most = dict.fromkeys(cliques, 0.0)
    for size in range(3):
        for rows in combinations_with_replacement(cells, size):
            before = chicle.count(table_of(list(rows)), cliques)
            for person in (p for j in range(1, k + 1) for p in combinations_with_replacement(cells, j)):
                after = chicle.count(table_of([*rows, *person]), cliques)
                for clique, x, y in zip(cliques, before, after, strict=True):
                    most[clique] = max(most[clique], float(np.linalg.norm((x - y).ravel())))
    assert most == dict.fromkeys(cliques, float(k))

    ledger = Ledger(Budget(rho=100))
    chicle.measure(table_of(cells, k), cliques, 5.0, ledger)
    for event in ledger.events:
        assert isinstance(event, GaussianEvent)
        assert event.l2_sensitivity == k
        assert event.rho("gdp") == pytest.approx(k**2 / 50)


@given(st.data(), records(), st.integers(0, 2**32))
def test_neighbours_with_the_same_noise_differ_as_their_counts_do(
    data: st.DataObject, table: Records, seed: int
) -> None:
    cliques = data.draw(cliques_of(table.domain))
    neighbour = Records({name: table[name][1:] for name in table}, table.domain)
    released = []
    for rows in (table, neighbour):
        ledger = Ledger(Budget(rho=1e9), noise=TestNoise(seed))
        released.append(chicle.measure(rows, cliques, 3.0, ledger))
        assert not ledger.private
    for mine, theirs in zip(*released, strict=True):
        difference = mine.values - theirs.values
        assert difference.sum() == min(len(table), 1)
        assert abs(difference).sum() == min(len(table), 1)


def test_the_noise_has_its_sigma() -> None:
    census = chicle.datasets.census(5_000, d=4)
    cliques = list(combinations(census.domain, 2))
    sigmas = [2.0 + i for i in range(len(cliques))]
    ledger = Ledger(Budget(rho=10))
    measurements = chicle.measure(census, cliques, sigmas, ledger)
    exact = chicle.count(census, cliques)
    assert ledger.private
    for clique, sigma, marginal, measurement in zip(cliques, sigmas, exact, measurements, strict=True):
        assert (measurement.clique, measurement.sigma) == (clique, sigma)
        noise = (measurement.values - marginal).ravel()
        # Rounding noise of variance 1/12 spreads the integers over the line again.
        smooth = noise + np.random.default_rng(0).uniform(-0.5, 0.5, noise.size)
        assert stats.kstest(smooth / np.hypot(sigma, 12**-0.5), "norm").pvalue > SIGNIFICANCE
        with pytest.raises(ValueError, match="read-only"):
            measurement.values[0] = 0


def test_negative_counts_stay() -> None:
    ledger = Ledger(Budget(rho=1), noise=TestNoise(0))
    (measurement,) = chicle.measure(table_of([]), [("a", "b")], 50.0, ledger)
    assert measurement.values.min() < 0


def test_what_test_noise_made_is_marked() -> None:
    ledger = Ledger(Budget(rho=1), noise=TestNoise(0))
    (measurement,) = chicle.measure(table_of([(0, 0)]), [("a",)], 5.0, ledger)
    assert not measurement.private
    assert "private=False" in repr(measurement)
    (measurement,) = chicle.measure(table_of([(0, 0)]), [("a",)], 5.0, Ledger(Budget(rho=1)))
    assert measurement.private


@pytest.mark.parametrize(
    ("cliques", "sigmas", "options", "error"),
    [
        ([("a", "z")], 5.0, {}, DomainError),
        ([("a", "a")], 5.0, {}, DomainError),
        (["ab"], 5.0, {}, DomainError),
        ([("a",)], 0.1, {}, BudgetExceeded),
        ([("a",), ("b",)], 0.9, {}, BudgetExceeded),
        ([("a",)], 0.0, {}, PrivacyError),
        ([("a",)], float("nan"), {}, PrivacyError),
        ([("a",)], [5.0, 5.0], {}, PrivacyError),
        ([("a",), ("b",)], [5.0], {}, PrivacyError),
        ([("a",)], "5", {}, PrivacyError),
        ([("a",)], None, {}, PrivacyError),
        ([("a",)], [[5.0]], {}, PrivacyError),
        ([("a", "b")], 5.0, {"memory_limit": 40}, InfeasibleError),
        ([("a", "b")], 5.0, {"threads": 0}, chicle.ParameterError),
    ],
)
def test_whatever_is_refused_costs_nothing(cliques: Any, sigmas: Any, options: Any, error: type[Exception]) -> None:
    ledger = Ledger(Budget(rho=1))
    with pytest.raises(error):
        chicle.measure(table_of([(0, 0)]), cliques, sigmas, ledger, **options)
    assert ledger.events == ()
    assert ledger.spent == 0


def test_only_a_ledger_pays() -> None:
    with pytest.raises(PrivacyError, match="Ledger, not a Budget"):
        chicle.measure(table_of([(0, 0)]), [("a",)], 5.0, Budget(rho=1))  # type: ignore[arg-type]


def test_one_sigma_may_be_any_number() -> None:
    for sigma in (5, np.float32(5), np.array(5.0), [5], np.array([5])):
        (measurement,) = chicle.measure(table_of([(0, 0)]), [("a",)], sigma, Ledger(Budget(rho=1)))  # type: ignore[arg-type]
        assert measurement.sigma == 5.0


def test_the_callers_array_is_left_alone() -> None:
    values = np.zeros(3)
    measurement = Measurement(("a",), values, 1.0)
    assert values.flags.writeable
    assert not measurement.values.flags.writeable


def test_nothing_measured_costs_nothing() -> None:
    ledger = Ledger(Budget(rho=1))
    assert chicle.measure(table_of([(0, 0)]), [], 5.0, ledger) == []
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
        measurements = chicle.measure(census, [(name,) for name in census.domain], 20.0, ledger)
        assert abs(estimate_total(measurements) - 20_000) < 600
