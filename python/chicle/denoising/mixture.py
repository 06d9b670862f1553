"""Empirical Bayes for many effects at once, of which most are small and a few large.

An effect is seen as ``x = t + noise`` with noise of known variance. The true effects t of all tables together are taken
as drawn from a mixture of normals of mean 0, from a standard deviation of 0 up to the largest that the values bear out;
the weights of the mixture are fitted to the values (EM), and each effect is estimated by its mean given its value
(Stephens, "False discovery rates: a new deal", Biostatistics 2017). A single normal, as in `denoising.shrink`, would
shrink the few large effects as much as the many small ones.

Cost: O(values * components) a step; the mixture is fitted to at most `_MOST` of the values.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["posterior_means"]

Floats = npt.NDArray[np.float64]

_STEPS = 60
_RATIO = math.sqrt(2)
_BELOW, _MOST_COMPONENTS = 8.0, 60
_MOST = 20_000  # values that the mixture is fitted to


def posterior_means(values: Floats, variances: Floats) -> Floats:
    """Return the expected true effects, given noisy ones.

    Parameters
    ----------
    values
        The noisy effects, in units in which they are alike.
    variances
        The variance of the noise of each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.where(rng.random(2_000) < 0.02, 30.0, 0.0)
    >>> found = posterior_means(truth + rng.standard_normal(2_000), np.ones(2_000))
    >>> bool(np.abs(found - truth).mean() < 0.15)
    True
    """
    if not values.size or not (variances > 0).any():
        return values.copy()
    some = np.linspace(0, values.size - 1, min(values.size, _MOST)).astype(np.int64)
    squares = _deviations(values[some], variances[some]) ** 2
    weights = np.full(squares.size, 1 / squares.size)
    likelihood, _ = _fit(values[some], variances[some], squares)
    for _ in range(_STEPS):
        given = likelihood * weights
        given /= given.sum(axis=1, keepdims=True)
        weights = given.sum(axis=0) + 1 / squares.size  # no component dies out, so a step has always a next one
        weights /= weights.sum()
    found = np.empty_like(values)
    for start in range(0, values.size, _MOST):
        part = slice(start, start + _MOST)
        likelihood, kept = _fit(values[part], variances[part], squares)
        given = likelihood * weights
        found[part] = values[part] * (given * kept).sum(axis=1) / given.sum(axis=1)
    return found


def _deviations(values: Floats, variances: Floats) -> Floats:
    """Return the standard deviations of the components: 0, and a geometric row of others."""
    least = math.sqrt(max(float(variances.min()), 1e-12)) / _BELOW
    most = 2 * math.sqrt(max(float((values**2 - variances).max()), least**2))
    number = min(math.ceil(math.log(most / least, _RATIO)) + 1, _MOST_COMPONENTS)
    return np.concatenate([[0.0], np.geomspace(least, most, number)])


def _fit(values: Floats, variances: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Return the likelihood of each component, relative to the best, and the part of a value that it keeps."""
    whole = np.maximum(variances, 1e-12)[:, None] + squares
    logs = -0.5 * (values[:, None] ** 2 / whole + np.log(whole))
    return np.exp(logs - logs.max(axis=1, keepdims=True)), squares / whole
