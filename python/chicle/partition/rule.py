"""The rule that picks how partitions are fitted, and what part of the budget says how they differ.

It reads sizes that were released, so it is free. What a partition can tell about itself depends on its signal
``x = N mu / k``: its rows in units of the noise of a count.

*Independent or not.* If every pair of attributes were measured in a partition, with shares alike, its tables would
be off by about ``0.4 C sqrt(K) / x``, for K pairs of C cells on average, attributes in 20 buckets at most (half the
mean absolute noise of a cell, times the cells, over the rows). Mechanisms do better, by a factor that hardly depends on
the data. Pooled partitions are off by how much the dependences of attributes differ between partitions, which no 1-way
tells. So partitions are fitted by themselves where the mean of this forecast is small; of few partitions, which each
hold much of the whole, somewhat earlier.

*As an attribute.* Few partitions of a small table, or at a small budget, differ in ways that a few measured tables tell
better than all 1-ways by partition: there the partition is one more attribute, and the budget is not split.

*The share.* Small partitions have little to say, so the whole table gets most. The share that says how they differ
grows with the logarithm of x. Few partitions need less of it.

All this was set on the states of the American Community Survey and on Adult (docs/partitions.md says where it loses).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.measurements.measurement import Measurement
from chicle.partition.declared import Partition, Way

__all__ = ["Chosen", "choose", "forecast", "share_of_partitions"]

Floats = npt.NDArray[np.float64]

_INDEPENDENT = (0.03, 0.06)  # least and most forecast to fit partitions by themselves, ...
_OVER_NUMBER = 0.12  # ... and in between this, over their number
_BUCKETS = 20
_FEW = 10  # partitions, of which the share is at most `_MOST_OF_FEW`
_HIDDEN = 16  # partitions that may be an attribute
_NOISY = 25_000.0  # signal of the whole table below which few partitions are an attribute
_AT = ((57.0, 0.3), (182.0, 0.6))  # signals, and the shares that were best there
_SHARES, _MOST_OF_FEW = (0.25, 0.7), 0.4


@dataclass(frozen=True)
class Chosen:
    """How a partitioned table is fitted.

    Attributes
    ----------
    way
        ``"pooled"``, ``"independent"`` or ``"attribute"``.
    share
        The share of the budget that says how partitions differ; of no meaning but where they are pooled.
    note
        A sentence for the reader of the release.
    """

    way: Way
    share: float
    note: str


def choose(
    domain: Domain, partition: Partition, sizes: Measurement, *, k: int, rho: float, whole: bool = True
) -> Chosen:
    """Return how to fit a partitioned table.

    Parameters
    ----------
    domain
        The attributes that do not form the partition.
    partition
        What is asked for.
    sizes
        The noisy sizes of partitions.
    k
        How many rows one person may have.
    rho
        What may be spent.
    whole
        Whether the mechanism takes all attributes at once.
    """
    counted = np.maximum(sizes.floats.reshape(-1), 0.0)
    held = counted[counted > 2 * sizes.sigma]  # the rest may be empty
    noise = k / math.sqrt(2 * rho)
    signal = (held if held.size else counted) / noise
    few = counted.size <= _FEW
    way = partition.way
    if way == "auto":
        limit = min(max(_OVER_NUMBER / counted.size, _INDEPENDENT[0]), _INDEPENDENT[1])
        alone = held.size > 0 and forecast(domain, signal) <= limit
        hidden = counted.size <= _HIDDEN and whole and counted.sum() < _NOISY * noise
        way = "independent" if alone else "attribute" if hidden else "pooled"
    share = partition.share
    if share is None:
        share = share_of_partitions(float(signal.mean()))
        share = min(share, _MOST_OF_FEW) if few else share
    return Chosen(way, share, _said(partition, counted.size, way, share))


def forecast(domain: Domain, signal: Floats) -> float:
    """Return the mean distance of pairs to expect of partitions that are fitted by themselves, before any skill.

    Examples
    --------
    >>> round(forecast(Domain({"age": 20, "sex": 2, "job": 30}), np.array([16_000.0])), 4)
    0.0069
    """
    seen = [min(size, _BUCKETS) for size in domain.values()]
    cells = [one * other for one, other in combinations(seen, 2)] or seen
    return float(np.minimum(0.4 * np.mean(cells) * math.sqrt(len(cells)) / np.maximum(signal, 1e-9), 1.0).mean())


def share_of_partitions(signal: float) -> float:
    """Return the share of the budget that says how partitions differ.

    Examples
    --------
    >>> [round(share_of_partitions(x), 2) for x in (10, 57, 182, 10_000)]
    [0.25, 0.3, 0.6, 0.7]
    """
    (low, least), (high, most) = _AT
    if signal <= 0:
        return _SHARES[0]
    share = least + (most - least) * math.log(signal / low) / math.log(high / low)
    return min(max(share, _SHARES[0]), _SHARES[1])


def _said(partition: Partition, number: int, way: str, share: float) -> str:
    by = " and ".join(map(repr, partition.names))
    if way == "attribute":
        return f"{number:,} partitions by {by}, as one more attribute: few of them, and the budget is small"
    if way == "independent":
        return f"{number:,} partitions by {by}, each fitted by itself; together they cost what one costs"
    return f"{number:,} partitions by {by}, pooled: {share:.0%} of the budget says how they differ from the whole"
