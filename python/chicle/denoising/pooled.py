"""Pool all that tables say about one attribute, with the covariance of what stays uncertain.

Tables that see the attribute through the same buckets are averaged by inverse variance. What the averages say together
is a linear least-squares problem; its solution has a covariance. `chicle.denoising.absorb` ignores it, which is cheaper
and right for values. But where one table measures each value and thirty tables measure a bucket of six, the bucket
becomes thirty times as certain and the six values hardly do: with variances alone, noise in an empty tail looked like
people.

Cost: the cube of the number of values; beyond `_MOST` values, `absorb` is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chicle.denoising.absorb import absorb
from chicle.measurements.measurement import Measurement

__all__ = ["pooled"]

Floats = npt.NDArray[np.float64]

_MOST = 1024
_LEAST = 1e-6  # variance of a margin, so that exact ones have a finite weight


def pooled(name: str, size: int, total: float, tables: Sequence[Measurement]) -> tuple[Floats, Floats]:
    """Return an attribute's estimated counts, and their covariance matrix; of very many values, their variances.

    Parameters
    ----------
    name
        The attribute.
    size
        How many values it has.
    total
        About how many records there are. Before any table, all values are alike and nothing is known.
    tables
        Measurements of whole tables.

    Examples
    --------
    >>> fine = Measurement(("a",), np.array([30, 10, 0]), sigma=2.0)
    >>> pair = Measurement(("a", "b"), np.array([[24, 24]]), sigma=0.1, buckets={"a": np.array([0, 0, 0])})
    >>> values, covariance = pooled("a", 3, 40.0, [fine, pair])
    >>> values.round(1), np.diagonal(covariance).round(1)  # the sum is known, its parts are not
    (array([32.6, 12.7,  2.7]), array([2.7, 2.7, 2.7]))
    """
    prior = max(float(total), 1.0) ** 2.0
    if size > _MOST:
        return absorb(name, np.full(size, total / size), np.full(size, prior), tables)
    averages: dict[bytes, tuple[npt.NDArray[np.int64], Floats, float]] = {}
    for table in tables:
        if name not in table.clique:
            continue
        margin = np.asarray(table.margin((name,)).values, dtype=np.float64)
        weight = 1 / max(table.sigma**2 * table.values.size / margin.size, _LEAST)
        bucket = np.asarray(table.buckets.get(name, np.arange(size)), dtype=np.int64)
        _, sums, weights = averages.get(bucket.tobytes(), (bucket, np.zeros(margin.size), 0.0))
        averages[bucket.tobytes()] = bucket, sums + weight * margin, weights + weight
    precision = np.eye(size) / prior
    told = np.full(size, total / size) / prior
    for bucket, sums, weight in averages.values():
        precision += weight * (bucket[:, None] == bucket)
        told += sums[bucket]
    covariance = np.linalg.inv(precision)
    return np.asarray(covariance @ told), np.asarray((covariance + covariance.T) / 2)
