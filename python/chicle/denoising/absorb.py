"""Absorb the margins of all tables of an attribute into its 1-way, by inverse variance.

A table's margin estimates how many records each value (or bucket of values) has, with the noise of all cells it sums.
Each margin updates the estimates and their variances as a Kalman filter does: a bucket whose estimates add up to X with
variance V meets a measured sum M of variance U, and moves by ``V / (V + U) (M - X)``, shared among its values by
variance. The correlations that this creates between the values of a bucket are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chicle.measurements.measurement import Measurement

__all__ = ["absorb"]

Floats = npt.NDArray[np.float64]


def absorb(name: str, values: Floats, variances: Floats, tables: Sequence[Measurement]) -> tuple[Floats, Floats]:
    """Return an attribute's estimated counts and their variances, after absorbing all tables that have it.

    Examples
    --------
    >>> import numpy as np
    >>> pair = Measurement(("a", "b"), np.array([[30, 10], [40, 40]]), sigma=2.0)
    >>> values, variances = absorb("a", np.array([50.0, 70.0]), np.array([8.0, 8.0]), [pair])
    >>> values, variances
    (array([45., 75.]), array([4., 4.]))
    """
    values, variances = values.copy(), variances.copy()
    for table in tables:
        if name not in table.clique:
            continue
        margin = np.asarray(table.margin((name,)).values, dtype=np.float64)
        noise = table.sigma**2 * table.values.size / margin.size
        bucket = np.asarray(table.buckets.get(name, np.arange(values.size)))
        sums = np.bincount(bucket, weights=values, minlength=margin.size)
        spread = np.bincount(bucket, weights=variances, minlength=margin.size)
        gain = spread / (spread + noise)
        part = variances / spread[bucket]
        values += part * (gain * (margin - sums))[bucket]
        variances *= 1 - gain[bucket] * part
    return values, variances
