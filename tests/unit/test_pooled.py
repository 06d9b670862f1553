"""What tables say together about an attribute: least squares, with an honest covariance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle.denoising.absorb import absorb
from chicle.denoising.pooled import pooled
from chicle.denoising.tails import steady_tails
from chicle.measurements.measurement import Measurement


def coarse(truth: np.ndarray, bucket: np.ndarray, sigma: float, rng: np.random.Generator) -> Measurement:
    """A table of the attribute in buckets and another attribute of two values."""
    sums = np.bincount(bucket, weights=truth)
    cells = np.stack([sums / 2, sums / 2], axis=1) + sigma * rng.standard_normal((len(sums), 2))
    return Measurement(("a", "b"), cells, sigma=sigma, buckets={"a": bucket})


@given(size=st.integers(1, 9), tables=st.integers(0, 4), seed=st.integers(0, 99))
def test_it_is_the_naive_least_squares(size: int, tables: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, total = rng.integers(0, 100, size).astype(float), 50.0 * size
    told = [Measurement(("a",), truth + 3 * rng.standard_normal(size), sigma=3.0)]
    for _ in range(tables):
        bucket = np.unique(np.sort(rng.integers(0, 3, size)), return_inverse=True)[1]
        told.append(coarse(truth, bucket, float(rng.uniform(0.5, 5)), rng))
    values, covariance = pooled("a", size, total, told)
    rows, answers, weights = [np.eye(size)], [np.full(size, total / size)], [np.full(size, 1 / total**2)]
    for one in told:
        margin = one.margin(("a",)).values
        rows.append(np.eye(len(margin))[:, one.buckets.get("a", np.arange(size))])
        answers.append(margin)
        weights.append(np.full(len(margin), 1 / (one.sigma**2 * one.values.size / len(margin))))
    root = np.sqrt(np.concatenate(weights))
    naive = np.linalg.lstsq(np.vstack(rows) * root[:, None], np.concatenate(answers) * root, rcond=None)[0]
    np.testing.assert_allclose(values, naive, atol=1e-6)
    precision = (np.vstack(rows) * root[:, None] ** 2).T @ np.vstack(rows)
    np.testing.assert_allclose(covariance @ precision, np.eye(size), atol=1e-6)


def test_very_many_values_have_variances_only() -> None:
    rng = np.random.default_rng(0)
    one = Measurement(("a",), rng.integers(0, 9, 3_000), sigma=2.0)
    values, noise = pooled("a", 3_000, 100.0, [one])
    np.testing.assert_allclose(values, absorb("a", np.full(3_000, 1 / 30), np.full(3_000, 1e4), [one])[0])
    assert noise.shape == (3_000,)


def test_many_tables_of_a_group_do_not_make_noise_in_its_values_credible() -> None:
    """Thirty tables know the sum of a tail; its cells are as noisy as one table leaves them, and empty ones stay so."""
    truth = np.array([60_000, 15_000, 6_000, 3_000, 1_900, 800, 250, 60, 5, 0], dtype=float)
    starts = np.array([0, 1, 2, 3, 4, 6, 9, 13, 19, 28, 51], dtype=float)
    places = (starts[:-1] + starts[1:] - 1) / 2
    bucket = np.minimum(np.arange(10), 4)
    spreads, before, off = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        told = [Measurement(("a",), truth + 280 * rng.standard_normal(10), sigma=280.0)]
        told += [coarse(truth, bucket, 700.0, rng) for _ in range(30)]
        values, covariance = pooled("a", 10, truth.sum(), told)
        spreads.append((values - truth) / np.sqrt(np.diagonal(covariance)))
        shares = steady_tails(values, covariance, starts, truth.sum()) / truth.sum()
        off.append(np.sqrt(shares @ places**2 - (shares @ places) ** 2))
        before.append((absorb("a", truth * 0 + 1, truth * 0 + 1e10, told)[1] / np.diagonal(covariance))[-1])
    real = truth / truth.sum()
    sd = np.sqrt(real @ places**2 - (real @ places) ** 2)
    assert np.sqrt(np.mean(np.square(spreads))) == pytest.approx(1.0, abs=0.2)
    assert max(before) < 0.7, "variances without correlations are too small"
    assert np.quantile(np.abs(np.array(off) / sd - 1), 0.8) < 0.15
