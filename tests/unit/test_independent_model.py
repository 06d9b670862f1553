from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import chicle
from chicle import Domain, DomainError, Measurement, ParameterError, Records
from chicle.measurements.measurement import estimate_total, onto_simplex
from chicle.models import IndependentModel

DOMAIN = Domain({"a": 3, "b": 300})
MEASURED = [Measurement(("a",), np.array([10_000, -400, 29_250]), 1.0), Measurement(("b",), np.arange(300) - 20, 1.0)]

TOTAL = estimate_total(MEASURED)


def independent(measured: list[Measurement], domain: Any, n: Any = None, seed: int | None = None) -> Records:
    model = IndependentModel().fit(measured, Domain(domain))
    return model.records(estimate_total(measured) if n is None else n, seed)


def test_one_ways_are_followed() -> None:
    table = independent(MEASURED, DOMAIN, n=40_000, seed=1)
    counts = chicle.count(table, [("a",), ("b",), ("a", "b")])
    assert counts[0][1] == 0
    np.testing.assert_allclose(counts[0], onto_simplex(MEASURED[0].values, TOTAL) / TOTAL * 40_000, atol=1)
    np.testing.assert_allclose(counts[1], onto_simplex(MEASURED[1].values, TOTAL) / TOTAL * 40_000, atol=1)
    expected = np.outer(counts[0], counts[1]) / 40_000
    chi2 = ((counts[2] - expected) ** 2 / np.maximum(expected, 1)).sum()
    assert chi2 < 1_000, "and the attributes are independent"


def test_the_seed_decides_the_draw() -> None:
    first, again, other = (independent(MEASURED, DOMAIN, seed=seed) for seed in (3, 3, 4))
    assert all((first[name] == again[name]).all() for name in DOMAIN)
    assert len(first) == len(other)
    assert any((first[name] != other[name]).any() for name in DOMAIN)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_tables(n: int) -> None:
    assert len(independent(MEASURED, DOMAIN, n=n)) == n


def test_noise_alone_still_gives_a_table() -> None:
    nothing = [Measurement(("a",), np.array([-5, -9, -2]), 5.0)]
    assert len(independent(nothing, {"a": 3})) == 0
    assert len(independent(nothing, {"a": 3}, n=10)) == 10


@pytest.mark.parametrize(
    ("measured", "domain", "rule"),
    [
        (MEASURED[:1], DOMAIN, "'b' has no 1-way measurement"),
        (MEASURED, {"a": 4, "b": 300}, "another number of cells.*3 along 'a'"),
    ],
)
def test_missing_measurements_are_named(measured: Any, domain: Any, rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        independent(measured, domain)


@pytest.mark.parametrize("n", [-1, 2.5, True])
def test_n_is_a_number_of_rows(n: Any) -> None:
    with pytest.raises(ParameterError, match="n must be"):
        independent(MEASURED, DOMAIN, n=n)


@given(hnp.arrays(np.int64, st.integers(1, 50), elements=st.integers(-1000, 1000)), st.integers(0, 10_000))
def test_onto_simplex_is_the_nearest_point(values: Any, total: int) -> None:
    nearest = onto_simplex(values, total)
    assert (nearest >= 0).all()
    assert nearest.sum() == pytest.approx(total, abs=1e-6)
    # Optimality: cells above zero all moved by the same amount, the others by no less.
    shift = values - nearest
    above = nearest > 1e-9
    if above.any():
        assert np.ptp(shift[above]) < 1e-6
        assert (shift[~above] <= shift[above].min() + 1e-6).all()
