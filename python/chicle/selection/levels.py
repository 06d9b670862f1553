"""Levels: the same attribute at fewer and fewer values, so that a table has no more cells than its noise allows.

Buckets are made from released 1-ways alone: of equal mass for an ordinal attribute, the most frequent values and all
others together for a nominal one. Level 0 is the attribute as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SIZES", "Level", "levels"]

SIZES = (20, 10, 5)
"""Most buckets of levels 1, 2, 3."""


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
        Which share of the records would land on another code, if each code were drawn anew within its bucket.
    """

    counts: npt.NDArray[np.float64]
    buckets: npt.NDArray[np.uint32] | None
    lost: float

    @property
    def size(self) -> int:
        """Number of buckets."""
        return self.counts.size


def levels(counts: npt.NDArray[np.float64], *, ordinal: bool, sizes: Sequence[int] = SIZES) -> list[Level]:
    """Return an attribute at all its levels; those that would not be coarser than the attribute are left out.

    Parameters
    ----------
    counts
        Released counts of its values, none negative.
    ordinal
        Whether the codes have an order.
    sizes
        Most buckets of each level.

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
        if size >= counts.size:
            continue
        buckets = _equal_mass(counts / total, size) if ordinal else _most_frequent(counts, size)
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
