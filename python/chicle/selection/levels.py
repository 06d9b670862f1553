"""Levels: an attribute at coarser and coarser resolutions, so that a table has no more cells than its noise allows.

Buckets are made from released 1-ways alone. Those of an ordinal attribute have equal mass; those of a nominal one are
its most frequent values, and one bucket for all others. Level 0 is the attribute as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SIZES", "Level", "levels"]

SIZES = (20, 10, 5)
"""The most buckets of levels 1, 2 and 3."""


@dataclass(frozen=True, eq=False)
class Level:
    """One attribute at one resolution.

    Attributes
    ----------
    counts
        The released count of each bucket.
    buckets
        The bucket of each code; ``None`` at level 0.
    lost
        The share of records that would get another code, if codes were redrawn within their buckets.
    """

    counts: npt.NDArray[np.float64]
    buckets: npt.NDArray[np.uint32] | None
    lost: float

    @property
    def size(self) -> int:
        """Number of buckets."""
        return self.counts.size


def levels(
    counts: npt.NDArray[np.float64], *, ordinal: bool, sizes: Sequence[int] = SIZES, apart: int = 0
) -> list[Level]:
    """Return an attribute at all its levels; levels that are not coarser than the attribute are left out.

    Parameters
    ----------
    counts
        Released counts of its values, not negative.
    ordinal
        Whether the codes have an order.
    sizes
        The most buckets of each level.
    apart
        How many last values have a bucket of their own at every level.

    Examples
    --------
    >>> import numpy as np
    >>> for level in levels(np.array([50.0, 10.0, 10.0, 30.0]), ordinal=True, sizes=[2]):
    ...     print(level.counts, level.buckets, round(level.lost, 2))
    [50. 10. 10. 30.] None 0.0
    [50. 50.] [0 1 1 1] 0.28
    """
    total = max(float(counts.sum()), 1e-300)
    found = [Level(counts, None, 0.0)]
    for size in sizes:
        values = counts[: counts.size - apart]
        if size >= counts.size or size <= apart + 1 or values.size <= size - apart:
            continue
        share = values / max(float(values.sum()), 1e-300) if apart else values / total
        buckets = _equal_mass(share, size - apart) if ordinal else _most_frequent(values, size - apart)
        if apart:
            buckets = np.append(buckets, buckets.max() + 1 + np.arange(apart, dtype=np.uint32)).astype(np.uint32)
        sums = np.bincount(buckets, weights=counts).astype(np.float64)
        mixed = np.divide(counts, sums[buckets], out=np.ones_like(counts), where=sums[buckets] > 0)
        found.append(Level(sums, buckets, float((counts * (1 - mixed)).sum() / total)))
    return found


def _equal_mass(shares: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.uint32]:
    middle = np.cumsum(shares) - shares / 2
    slots = np.minimum((middle * size).astype(np.int64), size - 1)
    return np.cumsum(np.diff(slots, prepend=slots[0]) != 0).astype(np.uint32)


def _most_frequent(counts: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.uint32]:
    rank = np.empty(counts.size, dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
    return np.minimum(rank, size - 1).astype(np.uint32)
