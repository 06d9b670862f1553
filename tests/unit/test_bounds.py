"""Bounds from the release alone: they hold as often as they say, and say little more than they must."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import chicle
from chicle import Domain, Ledger, Measurement, Records
from chicle.mechanisms.base import Mechanism
from chicle.privacy import TestNoise
from chicle.releases.bounds import ErrorBound, error_bounds, noise_quantile

RELEASES = 200

# How many times the true error the bound on a table's error may be at the median. Prism's tables are two to three times
# nearer to the truth than the measurements they are made of, and noise of these is all that a bound can be told from.
MECHANISMS: dict[str, tuple[Callable[[], Mechanism], float]] = {
    "Independent": (lambda: chicle.Independent(epsilon=1, delta=1e-6), 3.0),
    "PrivSyn": (lambda: chicle.PrivSyn(epsilon=1, delta=1e-6, generator="descent"), 3.0),
    "Prism": (lambda: chicle.Prism(epsilon=1, delta=1e-6), 4.4),
}


def counted(records: Records, bound: ErrorBound) -> npt.NDArray[np.float64]:
    """Count the clique of a bound in its buckets, by numpy."""
    assert bound.estimate is not None
    counts = np.zeros(bound.estimate.shape)
    each = {name: np.arange(size, dtype=np.uint32) for name, size in records.domain.items()}
    maps = {**each, **bound.buckets}
    np.add.at(counts, tuple(maps[name][records[name]] for name in bound.clique), 1)
    return counts


@pytest.mark.parametrize("name", MECHANISMS)
def test_bounds_cover_and_are_near(name: str) -> None:
    real = chicle.datasets.census(2_000, d=5)
    make, times = MECHANISMS[name]
    synth = make()
    held: list[tuple[bool, bool, bool]] = []
    ratios: list[tuple[float, float]] = []
    for seed in range(RELEASES):
        release = synth.fit(real, ledger=Ledger(synth.budget, noise=TestNoise(seed * 10_000))).release_
        table = release.sample(seed=seed)
        for bound in release.error_bounds(synthetic=table):
            if bound.estimate is None:
                continue
            truth, made = counted(real, bound), counted(table, bound) / len(table)
            estimate_error = float(np.abs(truth - bound.estimate).sum())
            table_error = float(np.abs(truth - made * release.total).sum())
            apart = float(np.abs(truth / len(real) - made).sum()) / 2
            held.append(
                (estimate_error <= bound.estimate_error, table_error <= bound.table_error, apart <= bound.distance)
            )
            ratios.append((bound.estimate_error / estimate_error, bound.table_error / table_error))
    assert len(held) >= RELEASES * len(real.domain)
    assert (np.mean(held, axis=0) >= 0.95).all()
    estimate, made_of_it = np.median(ratios, axis=0)
    assert 1 < estimate < 1.6
    assert 1 < made_of_it < times


@pytest.mark.parametrize("cells", [1, 2, 5, 30, 300])
@pytest.mark.parametrize("risk", [0.2, 0.05, 0.01, 0.001])
def test_the_quantile_is_that_of_exact_convolution(cells: int, risk: float) -> None:
    step = 1 / 256
    size = 1 << int((cells + 8 * math.sqrt(cells) + 12) / step).bit_length()
    at = np.arange(size) * step
    density = np.where(at < 12, 2 * (norm.cdf(at + step / 2) - norm.cdf(np.maximum(at - step / 2, 0))), 0)
    sums = np.fft.irfft(np.fft.rfft(density) ** cells, size)
    exact = at[np.searchsorted(np.cumsum(sums), 1 - risk)]
    ratio = (noise_quantile(np.ones(cells), risk) - 0.5) / exact
    assert 0.995 < ratio < 1.07
    if risk <= 0.05:
        assert ratio > 0.999


def test_cells_of_different_noise_and_little_of_it() -> None:
    rng = np.random.default_rng(0)
    for sigmas in (np.array([0.2]), np.array([0.3, 0.3, 0.3]), np.array([1.0, 5.0, 30.0]), np.full(40, 0.25)):
        norms = np.abs(np.rint(rng.normal(size=(40_000, sigmas.size)) * sigmas)).sum(axis=1)
        bound = noise_quantile(np.sqrt(sigmas**2 + 1 / 12), 0.05)
        assert np.mean(norms <= bound) > 0.948


@given(st.integers(0, 2**32))
def test_the_estimate_is_the_mean_by_inverse_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain({"a": 4, "b": 3, "c": 2})
    buckets = rng.integers(2, size=4)
    buckets[:2] = 0, 1
    measurements = [
        Measurement(("b", "a"), rng.integers(-9, 99, (3, 4)), 2.0),
        Measurement(("a",), rng.integers(-9, 99, 4), 5.0),
        Measurement(("c", "a", "b"), rng.integers(-9, 99, (2, 4, 3)), 3.0),
        Measurement(("a", "b"), rng.integers(-9, 99, (2, 3)), 1.0, buckets={"a": buckets}),
    ]
    ab, a, ca = error_bounds(measurements, domain, [("a", "b"), ("a",), ("c", "a")])
    assert (ab.supports, a.supports, ca.supports) == (2, 3, 1)
    variances = [4 + 1 / 12, 2 * (9 + 1 / 12)]
    tables = [measurements[0].values.T, measurements[2].values.sum(axis=0)]
    assert ab.estimate is not None
    assert a.sigma is not None
    np.testing.assert_allclose(ab.estimate, np.average(tables, axis=0, weights=1 / np.array(variances)))
    precision = 1 / (3 * (4 + 1 / 12)) + 1 / (25 + 1 / 12) + 1 / (6 * (9 + 1 / 12))
    np.testing.assert_allclose(a.sigma, precision**-0.5)


def test_buckets_are_heard_at_the_finest_that_was_measured() -> None:
    domain = Domain({"a": 4, "b": 2})
    halves = {"a": np.array([0, 0, 1, 1])}
    thirds = {"a": np.array([0, 0, 1, 2])}
    crossing = {"a": np.array([0, 1, 1, 0])}
    values = np.arange(6).reshape(3, 2)
    fine = Measurement(("a", "b"), values, 1.0, buckets=thirds)
    others = [Measurement(("a", "b"), np.full((2, 2), 50), 1.0, buckets=coarse) for coarse in (halves, crossing)]
    (bound,) = error_bounds([fine, *others], domain, [("a", "b")])
    assert bound.supports == 1
    assert bound.estimate is not None
    np.testing.assert_allclose(bound.estimate, values)
    assert "in buckets" in repr(bound)
    full = Measurement(("b", "a"), np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), 10.0)
    (both,) = error_bounds([fine, full], domain, [("a", "b")])
    assert (both.supports, both.buckets) == (1, {})
    table = Records({"a": [0, 1, 2, 3, 3], "b": [0, 0, 1, 1, 1]}, domain)
    (bound,) = error_bounds([fine], domain, [("a", "b")], synthetic=table)
    made = counted(table, bound) * 15 / 5
    assert bound.table_error == pytest.approx(bound.estimate_error + np.abs(made - values).sum())


def test_a_finer_measurement_helps_a_coarser_one_where_it_is_the_finest() -> None:
    domain = Domain({"a": 4, "b": 2, "c": 2})
    coarse = {"a": np.array([0, 0, 1, 2])}
    measurements = [
        Measurement(("a", "b"), np.zeros((3, 2)), 1.0, buckets=coarse),
        Measurement(("a", "b", "c"), np.zeros((3, 2, 2)), 1.0, buckets=coarse),
    ]
    bound, alone = (error_bounds(some, domain, [("a", "b")])[0] for some in (measurements, measurements[:1]))
    assert bound.supports == 2
    assert bound.estimate_error < alone.estimate_error


def test_estimates_below_zero_use_noise_up() -> None:
    domain = Domain({"a": 3})
    measurement = Measurement(("a",), np.array([-30, 10, 20]), 20.0)
    table = Records({"a": []}, domain)
    (bound,) = error_bounds([measurement], domain, [("a",)], synthetic=table)
    assert bound.table_error == pytest.approx(bound.estimate_error - 30 + 10 + 20)
    assert bound.distance == 1.0


def test_nothing_is_claimed_without_support() -> None:
    census = chicle.datasets.census(500, d=4)
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(census).release_
    bounds = release.error_bounds(synthetic=release.sample(seed=0))
    assert [bound.supported for bound in bounds] == [True] * 4 + [False] * 6
    assert all(math.isnan(bound.distance) and math.isnan(bound.estimate_error) for bound in bounds[4:])
    assert "nothing is claimed" in repr(bounds[-1])
    (total,) = release.error_bounds([()])
    assert total.supports == 4


def test_more_confidence_costs_more() -> None:
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(chicle.datasets.census(500, d=2)).release_
    errors = [release.error_bounds(confidence=c)[0].estimate_error for c in (0.5, 0.9, 0.95, 0.999)]
    assert errors == sorted(errors)


@pytest.mark.parametrize("confidence", [0, 1, -1, 95, math.nan, True, "0.9", None])
def test_what_is_no_confidence(confidence: float) -> None:
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(chicle.datasets.census(500, d=2)).release_
    with pytest.raises(chicle.ParameterError, match="between 0 and 1"):
        release.error_bounds(confidence=confidence)


def test_what_is_no_clique_or_table_of_this_release() -> None:
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(chicle.datasets.census(500, d=2)).release_
    with pytest.raises(chicle.DomainError, match="not an attribute"):
        release.error_bounds([("shoe size",)])
    with pytest.raises(chicle.DomainError, match="another domain"):
        release.error_bounds(synthetic=chicle.datasets.census(10, d=3))
