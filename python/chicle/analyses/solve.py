"""From sums that were bought to coefficients with honest errors. All of it is post-processing.

Let s(b) be the score of the private rows, the sum of ``features * (outcome - mean(features @ b))``. The estimate that
the private rows would give is its root. A synthetic table gives the shape of s, and bought scores give its level:

1. The products of features are bought. The synthetic features are mixed linearly, as little as possible, so that they
   have these products (the optimal map between two Gaussians). Noise enters only in directions that stand out from it.
2. b0 is the estimate of the synthetic table: biased, but a place to begin. s(b0) is bought. Then
   ``s(b) = s(b0) - (curve(b) - curve(b0))``, with ``curve(b) = sum features * mean(features @ b)``, which needs no
   outcome, so that the synthetic rows give it well. Its root is the next place. A wrong curve only matters as far as
   the step is long; a step that is within its own noise is shrunk as by James and Stein.
3. So s is bought again at the new place, where what is left is short. The roots of both scores are averaged by their
   precision: where the synthetic table was good, both count the same.

Directions of the coefficients of which the score says nothing, such as the dummy of a level without rows, stay where
the synthetic table puts them: a prior, whose standard deviation is so large that no other coefficient feels it. It is
in the variance too, so their intervals are as wide as that.

The variance is ``H^-1 (meat + noise) H^-1``: H is the slope of the curve; meat, the sum over rows of squared scores, is
the sampling error, robust to a wrong model (sandwich), from the synthetic rows; noise is what was added to a score. To
the noise of each root comes the doubt about the curve, times the step: products are known up to their noise, or up to
what a synthetic table is usually off.

Where a person of s rows may be alike in all of them, meat is larger: by Cauchy and Schwarz the score of a person,
squared, is at most s times the sum of the squares of its rows. The factor is ``E[s^2] / E[s]`` by the released numbers
of persons (`PersonRows.alike`), or k without them. So intervals hold however the rows of a person resemble each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from chicle.analyses.design import Design
from chicle.analyses.families import LOG, Family, Floats
from chicle.measurements.row_sums import RowSums

__all__ = ["VAGUE", "Shape", "next_place", "solve"]

_STEPS, _NEAR = 50, 1e-9
_RIDGE = 1e-9  # of the number of rows: keeps the slope invertible where a level has no synthetic row

VAGUE = 20.0
"""The standard deviation of the prior of each coefficient of features: far above what coefficients can be."""

_PRIOR = VAGUE**-2
_STEP = 1.0  # about how far coefficients of features are from those of a synthetic table at most
_OFF = 0.1  # by how much products of a synthetic table are off at least, in standard deviations
_BENT = 0.04  # by how much slopes may differ from what products say
_MOST_OFF = 20.0  # products are mixed by no larger factor


@dataclass(frozen=True, eq=False)
class Shape:
    """A synthetic table as an analysis sees it.

    Attributes
    ----------
    features, outcome
        Of its complete rows; the outcome as the residuals take it.
    curved
        The features by which it tells the curve: mixed, once products were bought.
    family
        The mean of the outcome.
    unscale
        From coefficients of features to those of columns.
    rows
        How many real rows one synthetic row stands for.
    root, doubt
        The square root of the products, and how far they may still be off in its coordinates: variances.
    """

    features: Floats
    outcome: Floats
    curved: Floats
    family: Family
    unscale: Floats
    rows: float
    root: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    doubt: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, design: Design, table: Mapping[str, pa.ChunkedArray], rows: float) -> Shape:
        """Return the shape of a synthetic table."""
        features, outcome = design.rows(table)
        return cls(features, outcome, features, design.family, design.unscale, rows)

    def curve(self, at: Floats) -> Floats:
        """Return the sum of features times means."""
        return self.rows * (self.curved.T @ self.family.mean(self.curved @ at))

    def slope(self, at: Floats) -> Floats:
        """Return the matrix of derivatives of the curve."""
        weights = self.family.slope(self.curved @ at)
        return self.rows * (self.curved.T @ (weights[:, None] * self.curved)) + self._ridge

    def meat(self) -> Floats:
        """Return the sum of squared scores, at the synthetic table's own estimate."""
        residuals = self.residuals(self.own)
        return self.rows * (self.features.T @ (residuals[:, None] ** 2 * self.features))

    def residuals(self, at: Floats) -> Floats:
        """Return outcomes minus their means."""
        return self.outcome - self.family.mean(self.features @ at)

    def mixed(self, bought: RowSums) -> Shape:
        """Return the shape with features mixed so that they have the products that were bought."""
        size = self.features.shape[1]
        upper = np.triu_indices(size)
        real, noise = np.zeros((size, size)), np.zeros((size, size))
        for matrix, values in ((real, bought.estimates), (noise, bought.sigma * bought.units)):
            matrix[upper] = values
            matrix.T[upper] = values
        made = self.rows * (self.features.T @ self.features) + self._ridge
        root, back = _roots(made)
        # In these coordinates the synthetic products are 1 and 0. Entries are believed as far as noise allows.
        off = back @ (real - made) @ back
        variance = (back**2) @ (noise**2) @ (back**2)
        clear = 1 / (variance + _OFF**2) ** 2
        prior = float(np.clip((clear * (off**2 - variance)).sum() / clear.sum(), _OFF**2, 1.0))
        believed = prior / (prior + variance)
        lengths, axes = np.linalg.eigh(np.eye(size) + believed * off)
        wanted = root @ (axes * np.clip(lengths, 1 / _MOST_OFF, _MOST_OFF)) @ axes.T @ root
        mix = back @ _roots(root @ wanted @ root)[0] @ back
        return replace(self, curved=self.features @ mix, root=root, doubt=believed * variance + _BENT**2)

    @cached_property
    def own(self) -> Floats:
        """The estimate of the synthetic table itself."""
        level = self.rows * (self.features.T @ self.outcome)
        plain = self if self.curved is self.features else replace(self, curved=self.features)
        return plain.nearest(self.middle(), level, np.ones(len(level)))

    def middle(self) -> Floats:
        """Return coefficients at which every mean is about that of the outcome."""
        at: Floats = np.zeros(self.features.shape[1])
        if self.family is LOG and self.outcome.size:
            at[0] = np.log(max(self.outcome.mean(), 1e-3))
        return at

    def root_of(self, bought: RowSums) -> Floats:
        """Return the root of the private score, as it was bought."""
        return self.nearest(bought.at, self.curve(bought.at) + bought.estimates, (bought.sigma * bought.units) ** -2.0)

    def spread(self, at: Floats, bought: RowSums) -> tuple[Floats, Floats]:
        """Return the covariance by noise of a root, and the matrix that turns errors of the score into its errors."""
        slope, weights = self.slope(at), (bought.sigma * bought.units) ** -2.0
        covariance = np.linalg.inv(slope @ (weights[:, None] * slope) + _PRIOR * np.eye(len(at)))
        turn = covariance @ slope * weights
        if not self.doubt.size:
            return covariance, turn
        # A slope that is off by root E root moves the root by turn root E root (at - begin).
        back = turn @ self.root * (np.trace(np.linalg.solve(self.root, slope) @ np.linalg.inv(self.root)) / len(at))
        doubted = self.doubt @ (self.root @ (at - bought.at)) ** 2
        return covariance + (back * doubted) @ back.T, turn

    @property
    def _ridge(self) -> Floats:
        return _RIDGE * (self.rows * len(self.features) + 1) * np.eye(self.features.shape[1])

    def nearest(self, begin: Floats, level: Floats, weights: Floats) -> Floats:
        """Return where the curve is nearest to a level, by Gauss and Newton: where it is equal, if that can be.

        A weak prior at the beginning keeps directions there of which the level tells nothing.
        """

        def far(at: Floats) -> float:
            return float(weights @ (level - self.curve(at)) ** 2 + _PRIOR * ((at - begin) ** 2).sum())

        at, now = begin, far(begin)
        for _ in range(_STEPS):
            slope = self.slope(at)
            downhill = slope @ (weights * (level - self.curve(at))) - _PRIOR * (at - begin)
            step = np.linalg.solve(slope @ (weights[:, None] * slope) + _PRIOR * np.eye(len(at)), downhill)
            length = min(1.0, 4.0 / max(np.abs(self.curved @ step).max(initial=0.0), 1e-12))
            while (new := far(at + length * step)) > now and length > 1e-6:
                length /= 2
            if not new < now * (1 - _NEAR):
                break
            at, now = at + length * step, new
        return at


def next_place(shape: Shape, bought: RowSums) -> Floats:
    """Return where to buy the next score: the root, as far as the step stands out from its noise."""
    step = shape.root_of(bought) - bought.at
    slope = shape.slope(bought.at) / (bought.sigma * bought.units)[:, None]
    known = slope.T @ slope
    # Directions that noise hides stay; far steps there would only make residuals long, and the next score noisy.
    step = np.linalg.solve(known + _STEP**-2 * np.eye(len(step)), known @ step)
    far = float(((slope @ step) ** 2).sum())
    return bought.at + max(0.0, 1 - len(step) / max(far, 1e-12)) * step


def solve(shape: Shape, bought: Sequence[RowSums], alike: float) -> tuple[Floats, Floats, Floats]:
    """Return coefficients of columns, their covariance by sampling and their covariance by noise.

    The roots of several scores are averaged by their precision.
    """
    roots = [shape.root_of(one) for one in bought]
    precisions = [np.linalg.inv(shape.spread(at, one)[0]) for at, one in zip(roots, bought, strict=True)]
    noise = np.linalg.inv(np.sum(precisions, axis=0))
    at = noise @ np.sum([precision @ at for precision, at in zip(precisions, roots, strict=True)], axis=0)
    turn = shape.unscale @ shape.spread(at, bought[-1])[1]
    return shape.unscale @ at, turn @ (alike * shape.meat()) @ turn.T, shape.unscale @ noise @ shape.unscale.T


def _roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the square root of a positive matrix, and its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-12 * max(values[-1], 1e-300))
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T
