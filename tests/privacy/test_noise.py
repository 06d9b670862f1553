"""Goodness of fit of the samplers, at a significance that fails by chance once in millions of runs."""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import opendp.prelude as dp
import pytest
from scipy import special, stats

from chicle import InfeasibleError, ParameterError, PrivacyError
from chicle.privacy import TestNoise, discrete_laplace, rounded_gaussian
from chicle.privacy.noise import MAX_SCALE, MIN_SCALE

SIGNIFICANCE = 1e-7
DRAWS = 4_000_000

Cdf = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def chi_square(draws: npt.NDArray[np.int64], cdf: Cdf, width: int, reach: int) -> float:
    """Return the p-value of integer draws in bins of `width` up to `reach`, tails pooled until each bin expects 20."""
    edges = np.arange(0, reach, width) + 0.5
    edges = np.concatenate([-edges[::-1], edges])
    # The distribution is symmetric: take upper tails from the lower side, where they are exact.
    below = np.concatenate([[0.0], cdf(edges[edges < 0]), 1 - cdf(-edges[edges > 0]), [1.0]])
    upper = cdf(-edges[edges > 0])
    middle = len(edges) // 2
    probability = np.diff(below)
    probability[middle + 1 : -1] = upper[:-1] - upper[1:]
    probability[-1] = upper[-1]
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1).astype(float)
    expected = probability * len(draws)
    keep = np.flatnonzero(expected >= 20)
    first, last = keep[0], keep[-1]

    def pool(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.concatenate([[values[: first + 1].sum()], values[first + 1 : last], [values[last:].sum()]])

    return float(stats.chisquare(pool(observed), pool(expected) * (observed.sum() / expected.sum())).pvalue)


@pytest.mark.parametrize(("sigma", "width"), [(0.3, 1), (1.0, 1), (3.7, 1), (50.0, 1), (1e4, 97)])
def test_the_gaussian_has_its_exact_probabilities(sigma: float, width: int) -> None:
    draws = rounded_gaussian(sigma, DRAWS)
    p = chi_square(draws, lambda x: np.asarray(special.ndtr(x / sigma)), width, int(8 * sigma) + 8)
    assert p > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [0.9, 3.8])
def test_the_goodness_of_fit_test_can_fail(sigma: float) -> None:
    draws = rounded_gaussian(sigma * 1.005, DRAWS)
    p = chi_square(draws, lambda x: np.asarray(special.ndtr(x / sigma)), 1, 100)
    assert p < SIGNIFICANCE


@pytest.mark.parametrize(("scale", "width"), [(0.3, 1), (1.0, 1), (7.5, 1), (1000.0, 11)])
def test_the_laplace_has_its_exact_probabilities(scale: float, width: int) -> None:
    ratio = np.exp(-1 / scale)
    # P(y <= -m) = ratio^m / (1 + ratio) for m >= 1; the edges lie half-way between integers.
    p = chi_square(
        discrete_laplace(scale, DRAWS), lambda x: ratio ** np.ceil(-x) / (1 + ratio), width, int(30 * scale) + 8
    )
    assert p > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [20.0, 1000.0])
def test_the_gaussian_agrees_with_opendp(sigma: float) -> None:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=20_000), dp.l2_distance(T=float)
    theirs = dp.m.make_gaussian(*space, scale=sigma)([0] * 20_000)
    assert stats.ks_2samp(theirs, rounded_gaussian(sigma, 400_000)).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("sigma", [MIN_SCALE, 1e-3, 1e9, 1e12, MAX_SCALE])
def test_extreme_scales(sigma: float) -> None:
    draws = rounded_gaussian(sigma, 200_000)
    if sigma < 0.01:
        assert not draws.any()
    else:
        assert stats.kstest(draws / sigma, "norm").pvalue > SIGNIFICANCE


def test_signs_are_fair_and_tails_are_there() -> None:
    draws = rounded_gaussian(1.0, DRAWS)
    positive, negative = int((draws > 0).sum()), int((draws < 0).sum())
    assert stats.binomtest(positive, positive + negative).pvalue > SIGNIFICANCE
    for reach in (3, 4, 5):
        tail = 2 * special.ndtr(-(reach - 0.5))
        assert stats.binomtest(int((abs(draws) >= reach).sum()), DRAWS, tail).pvalue > SIGNIFICANCE


def test_no_two_parts_of_a_vector_are_alike() -> None:
    parts = rounded_gaussian(1e6, 2**20).reshape(256, 4096).astype(float)
    correlation = np.corrcoef(parts) - np.eye(256)
    assert abs(correlation).max() < 7 / np.sqrt(4096)
    lag = np.corrcoef(parts.ravel()[:-1], parts.ravel()[1:])[0, 1]
    assert abs(lag) < 6 / 2**10


def _draw(_: int) -> list[int]:
    draws: list[int] = rounded_gaussian(1e11, 50).tolist()
    return draws


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_do_not_repeat_each_other() -> None:
    mine = _draw(0)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        drawn = [number for draws in pool.map(_draw, range(6), chunksize=1) for number in draws]
    assert len(set(drawn) | set(mine)) == 350


def test_sizes_and_shapes() -> None:
    assert rounded_gaussian(2.0, 0).shape == (0,)
    assert rounded_gaussian(2.0, (3, 4)).shape == (3, 4)
    assert discrete_laplace(2.0, np.int64(5)).shape == (5,)
    assert rounded_gaussian(2.0, 7).dtype == np.int64
    with pytest.raises(ParameterError, match="at least 0"):
        rounded_gaussian(2.0, -1)
    with pytest.raises(ParameterError, match="at most"):
        rounded_gaussian(2.0, 2**64)
    with pytest.raises(InfeasibleError, match="bytes of memory"):
        rounded_gaussian(2.0, 10**14)
    assert rounded_gaussian(2.0, 5, threads=1).shape == (5,)


@pytest.mark.parametrize("scale", [0, -1.0, 1e-4, 1e13, float("inf"), float("nan")])
@pytest.mark.parametrize("draw", [rounded_gaussian, discrete_laplace])
def test_scales_out_of_range_are_refused(draw: Any, scale: float) -> None:
    with pytest.raises(PrivacyError, match="must lie between"):
        draw(scale, 10)


def test_test_noise_repeats() -> None:
    first, second = TestNoise(4), TestNoise(4)
    np.testing.assert_array_equal(
        first.rounded_gaussian([2.0, 9.0], [5, 5]), second.rounded_gaussian([2.0, 9.0], [5, 5])
    )
    again = second.rounded_gaussian([2.0, 9.0], [5, 5])
    assert (again != first.discrete_laplace([2.0], [10])).any()
    np.testing.assert_array_equal(again, TestNoise(5).rounded_gaussian([2.0, 9.0], [5, 5]))
