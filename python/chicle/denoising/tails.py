"""Denoise the 1-way of an ordered attribute so that empty tails stay empty.

Noisy counts of empty cells are positive half the time. Over a wide tail, what is left after clipping at zero adds far
values to the table: the SD of a count that is mostly zero came out four times too large. Here the cells of each tail
are estimated together.

1. A tail begins at the third-last group of cells that stands out from noise: in a tail of empty cells, any group would
   reach its sum with a probability of about `_CHANCE`. Cells that stand out far from everything near them (top codes,
   365 days) are left out, and so are bins of a single declared value.
2. Its counts are expected to fall as a generalised Pareto law: the law of everything far above a high threshold. The
   expected counts are the posterior mean over a grid of scales and shapes, with the tail's total integrated out, under
   Gaussian noise and a tolerance of `_MISFIT` for laws that fit only nearly. Nothing is clipped: negative counts are
   evidence for an empty cell.
3. Between tails, groups that do not stand out are spread evenly, and emptied as far as noise explains them.
4. Each cell moves from its noisy count towards the expected one: it is expected to differ by `_APART` of it, so counts
   well above the noise stay as they are.
5. The sum is made right in proportion to what is uncertain of each cell.

Noise may be correlated: where some tables know a few groups of cells and one table knows each cell, the sum of a group
is far better known than its cells are. All steps above use the covariance.

Constants were set by simulations over all five tables of `benches/tails.py`, which is no judge of them therefore. Cost:
about 300 laws times the cells.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from chicle.columns.inside import alone

__all__ = ["steady_tails"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_CHANCE = 0.001  # how often any cell of an empty tail may stand out
_GROUPS = 3  # groups that stand out in a tail
_NEAR = 3  # cells on either side of one that stands out alone
_MISFIT = 0.15  # share of its count by which a cell may differ from its tail's law
_APART = 0.4  # share of its expected count by which a cell is expected to differ from it
_SHAPES = np.array([-0.5, -0.25, -0.1, 0.0, 0.1, 0.2, 0.35, 0.5])  # of the law; 0 is exponential
_SHAPE, _SHAPE_SD = 0.1, 0.2  # the prior of shapes
_SCALES = 40
_EMPTY = 1e-9


class _Noise:
    """The noise of some cells: its covariance matrix, or the variances of independent noise."""

    def __init__(self, covariance: Floats) -> None:
        self._covariance = covariance
        variances = covariance if covariance.ndim == 1 else np.diagonal(covariance)
        self.sigma: Floats = np.sqrt(np.maximum(variances, _EMPTY))

    def of(self, cells: npt.NDArray[np.int64] | slice) -> _Noise:
        """Return the noise of some of the cells, in this order."""
        return _Noise(self._covariance[cells] if self._covariance.ndim == 1 else self._covariance[cells][:, cells])

    def beside(self, cell: int, others: slice) -> float:
        """Return what a cell adds to the variance of the sum of others."""
        both = 0.0 if self._covariance.ndim == 1 else 2 * float(self._covariance[others, cell].sum())
        return float(self.sigma[cell] ** 2) + both

    def of_sum(self) -> float:
        """Return the variance of the sum of all cells."""
        return max(float(self._covariance.sum()), _EMPTY)

    def weigh(self, signals: Floats, misfit: Floats) -> Floats:
        """Return signals, one a row, times the inverse of the covariance of this noise and an independent misfit."""
        if self._covariance.ndim == 1:
            return np.asarray(signals / (self.sigma**2 + misfit))
        return np.asarray(np.linalg.solve(self._covariance + np.diag(misfit + _EMPTY), signals.T).T)

    def settle(self, values: Floats, expected: Floats, apart: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the variance of counts that lie apart from expected ones with these variances."""
        if self._covariance.ndim == 1:
            gain = apart / (self.sigma**2 + apart)
            return expected + gain * (values - expected), apart * (1 - gain)
        weights = self.weigh(np.eye(len(values)), apart)
        return expected + apart * (weights @ (values - expected)), apart * (1 - apart * np.diagonal(weights))


def steady_tails(values: Floats, noise: Floats, starts: Floats, total: float) -> Floats:
    """Return estimated counts: not negative, with the given total, and with tails that fall.

    Parameters
    ----------
    values
        Noisy counts of cells that have an order.
    noise
        The variance of the noise in each, or the covariance matrix.
    starts
        The start of each cell, and the end of the last.
    total
        What the counts add up to.

    Examples
    --------
    >>> truth = np.append([9000, 700, 200, 70, 30], np.zeros(95))
    >>> noisy = truth + 20 * np.random.default_rng(0).standard_normal(100)
    >>> made = steady_tails(noisy, np.full(100, 400.0), np.arange(101.0), 10_000)
    >>> round(float(np.maximum(noisy, 0)[10:].sum())), round(float(made[10:].sum()))
    (807, 7)
    """
    known = _Noise(noise)
    if len(values) < 3 or not noise.any():
        return _with_total(np.maximum(values, 0.0), np.maximum(known.sigma**2, 1.0), total)
    clear = NormalDist().inv_cdf(1 - _CHANCE / len(values))
    single = alone(starts)
    expected = _spread(values, known, np.diff(starts), clear)
    found = _tail(values, known, starts, single, clear)
    expected[len(values) - len(found) :] = found
    found = _tail(values[::-1], known.of(np.arange(len(values))[::-1]), -starts[::-1], single[::-1], clear)
    expected[: len(found)] = found[::-1]
    expected[single] = np.maximum(values[single], 0.0)
    apart = (_APART * expected) ** 2 + _EMPTY
    counts, left = known.settle(values, expected, apart)
    return _with_total(np.maximum(counts, 0.0), np.maximum(left, _EMPTY**2), total)


def _groups(values: Floats, noise: _Noise, clear: float) -> list[tuple[int, int]]:
    """Return ranges of cells, from the first on, each as short as it may be to stand out."""
    found = []
    begin, total, variance = 0, 0.0, 0.0
    for cell, value in enumerate(values.tolist()):
        total, variance = total + value, variance + noise.beside(cell, slice(begin, cell))
        if total >= clear * math.sqrt(max(variance, _EMPTY)):
            found.append((begin, cell + 1))
            begin, total, variance = cell + 1, 0.0, 0.0
    return found


def _spread(values: Floats, noise: _Noise, widths: Floats, clear: float) -> Floats:
    """Return expected counts: those of groups spread evenly over the cells that do not stand out themselves."""
    expected = np.zeros(len(values))
    there = values >= clear * noise.sigma
    expected[there] = values[there]
    for begin, end in _groups(values, noise, clear):
        rest = begin + np.flatnonzero(~there[begin:end])
        total = max(float(values[rest].sum()), 0.0)
        if total > 0:
            kept = total**2 / (total**2 + noise.of(rest).of_sum())
            expected[rest] = kept * total * widths[rest] / widths[rest].sum()
    return expected


def _tail(values: Floats, noise: _Noise, starts: Floats, single: Mask, clear: float) -> Floats:
    """Return the expected counts of the last cells, as many as the upper tail has."""
    lonely = single | _lonely(values, noise.sigma, clear)
    groups = [one for one in _groups(values, noise, clear) if not lonely[one[1] - 1]][-_GROUPS:]
    if len(groups) < 2:
        return np.empty(0)
    density = [values[begin:end].sum() / (starts[end] - starts[begin]) for begin, end in groups]
    begin = groups[int(np.argmax(density))][0]
    if begin >= len(values) - 1:
        return np.empty(0)
    values, noise, starts, single = values[begin:], noise.of(slice(begin, None)), starts[begin:], single[begin:]
    apart = lonely[begin:]
    for _ in range(2):
        expected = _law(values, noise, starts, apart)
        far = single | (values - expected > clear * np.sqrt(noise.sigma**2 + (expected / 2) ** 2))
        beyond = np.append(single[:1], far[1:])  # the law begins in the first cell, so that one is always evidence
        if (beyond == apart).all():
            break
        apart = beyond
    return np.where(apart | far, np.maximum(values, 0.0), expected)


def _lonely(values: Floats, sigma: Floats, clear: float) -> Mask:
    """Return which cells stand out while those near them are hardly above zero."""
    lonely = np.zeros(len(values), dtype=np.bool_)
    there = values > 2 * sigma
    for cell in np.flatnonzero(values > clear * sigma):
        near = there[max(cell - _NEAR, 0) : cell + _NEAR + 1].sum()
        lonely[cell] = cell >= _NEAR and near == 1
    return lonely


def _law(values: Floats, noise: _Noise, starts: Floats, apart: Mask) -> Floats:
    """Return the posterior mean of a tail's counts over generalised Pareto laws; cells `apart` are no evidence."""
    used = np.flatnonzero(~apart)
    beyond = starts - starts[0]
    scales = np.geomspace(0.2 * np.median(np.diff(beyond)[:3]), beyond[-1], _SCALES)
    shares = np.concatenate([_shares(beyond, scales, shape) for shape in _SHAPES])
    prior = np.repeat(-0.5 * ((_SHAPES - _SHAPE) / _SHAPE_SD) ** 2, _SCALES)
    # The tail's total has a Gaussian likelihood of this mean and precision, and is not negative.
    weighed = noise.of(used).weigh(shares[:, used], (_MISFIT * np.maximum(values[used], 0.0)) ** 2)
    precision = (weighed * shares[:, used]).sum(axis=1)
    usable = precision > 0
    shares, prior, precision = shares[usable], prior[usable], precision[usable]
    mean = (weighed[usable] @ values[used]) / precision
    standard = mean * np.sqrt(precision)
    mass = np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in standard])
    mass = np.maximum(mass, 1e-300)
    evidence = prior + standard**2 / 2 - np.log(precision) / 2 + np.log(mass)
    total = mean + np.exp(-(standard**2) / 2) / math.sqrt(2 * math.pi) / mass / np.sqrt(precision)
    odds = np.exp(evidence - evidence.max()) if len(evidence) else evidence
    if not len(odds):
        return np.zeros(len(values))
    odds /= odds.sum()
    total = np.maximum(total, 0.0)
    return np.asarray((odds * total) @ shares)


def _shares(beyond: Floats, scales: Floats, shape: float) -> Floats:
    """Return the share of each cell under the laws of some scales and one shape, cut off at the end."""
    far = beyond / scales[:, None]
    below = -np.expm1(-far) if shape == 0 else 1 - np.maximum(1 + shape * far, 0.0) ** (-1 / shape)
    return np.asarray(np.diff(below, axis=1) / below[:, -1:])


def _with_total(counts: Floats, variances: Floats, total: float) -> Floats:
    """Return counts with this total; each changes in proportion to its variance, and none falls below zero."""
    for _ in range(20):
        gap = total - counts.sum()
        spread = variances * ((counts > 0) | (gap > 0))
        if abs(gap) < 1e-9 * max(total, 1.0) or not spread.any():
            break
        counts = np.maximum(counts + gap * spread / spread.sum(), 0.0)
    return counts
