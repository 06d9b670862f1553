"""The rule that picks how partitions are fitted, and what part of the budget says how they differ.

It reads sizes that were released, so it is free. What a partition can tell about itself depends on its signal
``x = N mu / k``: its rows in units of the noise of a count.

*Independent or pooled.* If every pair of attributes were measured in a partition, with shares alike, its tables would
be off by about ``0.4 C sqrt(K) / x``, for K pairs of C cells on average (half the mean absolute noise of a cell, times
the cells, over the rows). Mechanisms do better, by a factor that hardly depends on the data. Pooled partitions are off
by how much the dependences of attributes differ between partitions, which no 1-way tells. So partitions are fitted by
themselves where the mean of this forecast is at most `_INDEPENDENT`.

*The share.* Small partitions have little to say, so the whole table gets most. It grows with the logarithm of x.

Both were set on the states of the American Community Survey (`benches/partitions.py`, states and large).
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

_INDEPENDENT = 0.027
_AT = ((57.0, 0.3), (182.0, 0.6))  # signals, and the shares that were best there
_SHARES = (0.25, 0.7)


@dataclass(frozen=True)
class Chosen:
    """How a partitioned table is fitted.

    Attributes
    ----------
    way
        ``"pooled"`` or ``"independent"``.
    share
        The share of the budget that says how partitions differ; 1 where they are fitted by themselves.
    note
        A sentence for the reader of the release.
    """

    way: Way
    share: float
    note: str


def choose(domain: Domain, partition: Partition, sizes: Measurement, *, k: int, rho: float) -> Chosen:
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
    """
    counted = np.maximum(sizes.floats.reshape(-1), 0.0)
    held = counted[counted > 2 * sizes.sigma]  # the rest may be empty
    signal = (held if held.size else counted) * math.sqrt(2 * rho) / k
    way = partition.way
    if way == "auto":
        way = "independent" if held.size and forecast(domain, signal) <= _INDEPENDENT else "pooled"
    share = 1.0 if way == "independent" else partition.share
    if share is None:
        share = share_of_partitions(float(signal.mean()))
    return Chosen(way, share, _said(partition, sizes.values.size, way, share))


def forecast(domain: Domain, signal: Floats) -> float:
    """Return the mean distance of pairs to expect of partitions that are fitted by themselves, before any skill.

    Examples
    --------
    >>> round(forecast(Domain({"age": 20, "sex": 2, "job": 30}), np.array([16_000.0])), 4)
    0.0101
    """
    cells = [one * other for one, other in combinations(domain.values(), 2)] or [max(domain.values())]
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
    if way == "independent":
        return f"{number:,} partitions by {by}, each fitted by itself; together they cost what one costs"
    return f"{number:,} partitions by {by}, pooled: {share:.0%} of the budget says how they differ from the whole"
