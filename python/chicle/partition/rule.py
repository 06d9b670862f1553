"""The rule that picks between independent and pooled partitions, and how the budget is shared. Free: it reads releases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.measurements.measurement import Measurement
from chicle.partition.declared import Partition

__all__ = ["SIZES", "Choosing", "Chosen", "choose"]

Floats = npt.NDArray[np.float64]

SIZES = 0.01
"""The share of rho that buys the sizes of partitions."""


@dataclass(frozen=True)
class Choosing:
    """What the rule reads; all of it public or released.

    Attributes
    ----------
    domain
        The attributes that do not form the partition.
    sizes
        The noisy sizes of partitions.
    signal
        For each partition its size times mu / k: how much can be told about it alone.
    """

    domain: Domain
    sizes: Floats
    signal: Floats

    @classmethod
    def of(
        cls, domain: Domain, partition: Partition, sizes: Measurement, k: int, rho: float, *, protected: bool
    ) -> Choosing:
        """Return what the rule reads."""
        del protected
        rest = Domain({name: size for name, size in domain.items() if name not in partition.names})
        counted = np.maximum(sizes.floats.reshape(-1), 0.0)
        return cls(rest, counted, counted * math.sqrt(2 * rho) / k)


@dataclass(frozen=True)
class Chosen:
    """How a partitioned table is fitted.

    Attributes
    ----------
    way
        ``"pooled"`` or ``"independent"``.
    share
        The share of the budget that says how partitions differ.
    note
        A sentence for the reader of the release.
    """

    way: str
    share: float
    note: str


def choose(known: Choosing, partition: Partition) -> Chosen:
    """Return how to fit a partitioned table."""
    way = partition.way if partition.way != "auto" else "pooled"
    share = 0.4 if partition.share is None else partition.share
    return Chosen(way, share, f"{known.sizes.size:,} partitions by {', '.join(partition.names)}, fitted {way}")
