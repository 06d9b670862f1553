"""Interactions of three and more attributes in noisy tables, apart from what pairs already tell.

A table of three or four attributes holds its pairs too, with more noise than a table of the pair would have. Many such
tables tell of one pair; the mean of their margins, by inverse variance, tells most (`pair_margins`). What is left of a
table is its interactions: the part of its deviation from a model that has no effects of one or two attributes, in the
sense of the analysis of variance. It alone is shrunk towards the model (`interactions`): shrinking whole cells would
throw away what the table says of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.denoising.shrink import shrink
from chicle.domain import Clique
from chicle.measurements.measurement import Measurement

__all__ = ["high_order", "interactions", "pair_margins"]

Floats = npt.NDArray[np.float64]


def pair_margins(tables: Sequence[Measurement]) -> list[Measurement]:
    """Return the mean by inverse variance of the margins of each pair in the tables, in order of first occurrence.

    Examples
    --------
    >>> both = [Measurement(("a", "b", name), np.full((2, 2, 2), 5.0), 3.0) for name in "cd"]
    >>> (pair,) = [one for one in pair_margins(both) if one.clique == ("a", "b")]
    >>> pair.values.round(6).tolist(), pair.sigma  # each margin has a variance of 2 * 9, their mean half of it
    ([[10.0, 10.0], [10.0, 10.0]], 3.0)
    """
    sums: dict[Clique, tuple[Floats, float]] = {}
    for table in tables:
        for pair in combinations(table.clique, 2):
            margin = table.margin(pair).values.astype(np.float64)
            precision = margin.size / (table.sigma**2 * table.values.size)
            values, known = sums.get(pair, (np.zeros_like(margin), 0.0))
            sums[pair] = values + precision * margin, known + precision
    protected = all(table.protected for table in tables)
    return [Measurement(pair, values / known, known**-0.5, protected) for pair, (values, known) in sums.items()]


def high_order(values: Floats) -> Floats:
    """Return a table without its effects of at most two axes: what has no margins of pairs.

    Examples
    --------
    >>> high_order(np.add.outer(np.outer([1.0, 4.0], [2.0, 7.0]), [3.0, 5.0])).round(12).any()  # all of order 2
    np.False_
    """
    left = values
    for order in (2, 1, 0):
        effect = np.zeros_like(values)
        for kept in combinations(range(values.ndim), order):
            effect = effect + _effect(values, kept)
        left = left - effect
    return left


def interactions(table: Measurement, expected: Floats, *, pull: float) -> Measurement:
    """Return a table with the expected effects of one and two attributes, and its own interactions, shrunk.

    Parameters
    ----------
    table
        A noisy table of at least three attributes.
    expected
        What a model expects, that knows the pairs.
    pull
        How much of the way to its shrunk value each cell goes, from 0 to 1.
    """
    own = high_order(np.asarray(table.values, dtype=np.float64) - expected)
    shape = own.shape
    low = sum(
        math.prod(shape[i] - 1 for i in kept) for order in (0, 1, 2) for kept in combinations(range(own.ndim), order)
    )
    variance = table.sigma**2 * (1 - low / own.size)
    values = expected + own
    if variance > 0:
        values = values + pull * (shrink(values, expected, variance) - values)
    return replace(table, values=values)


def _effect(values: Floats, kept: Sequence[int]) -> Floats:
    """Return the effect of some axes: the mean over all others, without the means over each of these."""
    others = tuple(axis for axis in range(values.ndim) if axis not in kept)
    effect = values.mean(axis=others, keepdims=True)
    for axis in kept:
        effect = effect - effect.mean(axis=axis, keepdims=True)
    return np.broadcast_to(effect, values.shape)
