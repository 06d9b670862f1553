"""Absorb the margins of all tables of an attribute into its 1-way, by inverse variance.

A table's margin says how many records each value (or bucket of values) has, with the noise of all cells it sums. Margin
after margin, the estimates and their variances are updated as by a Kalman filter: a bucket whose estimates add up to X
with variance V meets a measured sum M of variance U, and moves by ``V / (V + U) (M - X)``, shared out by variance.
Correlations that the update makes between the values of a bucket are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chicle.measurements.measurement import Measurement

__all__ = ["absorb"]

Floats = npt.NDArray[np.float64]


def absorb(name: str, values: Floats, variances: Floats, tables: Sequence[Measurement]) -> tuple[Floats, Floats]:
    """Return the counts of an attribute's values, and their variances, once all tables with it have been heard.

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
        axis = table.clique.index(name)
        margin = table.values.sum(axis=tuple(i for i in range(table.values.ndim) if i != axis), dtype=np.float64)
        noise = table.sigma**2 * table.values.size / margin.size
        bucket = np.asarray(table.coarsening.get(name, np.arange(values.size)))
        sums = np.bincount(bucket, weights=values, minlength=margin.size)
        spread = np.bincount(bucket, weights=variances, minlength=margin.size)
        gain = spread / (spread + noise)
        part = variances / spread[bucket]
        values += part * (gain * (margin - sums))[bucket]
        variances *= 1 - gain[bucket] * part
    return values, variances
