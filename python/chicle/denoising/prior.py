"""Between a noisy 1-way and a public one: how many rows have each value.

If a share p of N public rows has a value, about ``e = n p`` of n private rows have it. That is wrong for two reasons.
Sampling of the public rows adds a variance of ``n^2 p / N``. And the populations differ, which adds ``drift * e^1.5``:
the power is between those of differences that grow as sqrt(e) and as e. The drift of an attribute is estimated from its
noisy 1-way: 0 where noise explains the differences, large where the public rows are of other people. The estimate of a
count is the mean of both numbers by inverse variance (Efron and Morris 1973).

A value whose noisy count stands out far all the same keeps it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["posterior_counts"]

Floats = npt.NDArray[np.float64]

_UNSEEN = 0.5  # rows added to each value of the public table: what it lacks may exist all the same
_POWER = 1.5
_STEPS = 6  # of the weighted moment estimate of the drift
_FAR = 2.5  # standard deviations; beyond one more a value keeps its own count
_FAR_TRUSTED = 4.0


def posterior_counts(
    counts: npt.ArrayLike, variance: float, seen: npt.ArrayLike, total: float, *, trusted: bool = False
) -> tuple[Floats, Floats]:
    """Return estimated counts of an attribute's values and their variances.

    Parameters
    ----------
    counts, variance
        The noisy counts, and the variance of their noise.
    seen
        How many public rows have each value.
    total
        The estimated number of private rows.
    trusted
        Whether somebody vouches for the public rows: then populations differ only where noise clearly does not explain
        it.

    Examples
    --------
    >>> import numpy as np
    >>> counts, variances = posterior_counts([530.0, 260.0, 230.0], 900.0, [5_100, 2_400, 2_500], 1_000)
    >>> counts.round()
    array([511., 241., 249.])
    >>> posterior_counts([30.0, 260.0, 730.0], 900.0, [5_100, 2_400, 2_500], 1_000)[0].round()
    array([ 31., 260., 726.])
    """
    values, rows = np.asarray(counts, dtype=np.float64), np.asarray(seen, dtype=np.float64) + _UNSEEN
    shares = rows / rows.sum()
    expected = total * shares
    sampling = total * expected / rows.sum()
    shape = expected**_POWER
    excess = (values - expected) ** 2 - variance - sampling
    drift = 0.0
    for _ in range(_STEPS):
        weights = shape / (variance + sampling + drift * shape) ** 2
        drift = float((weights * excess).sum() / (weights * shape).sum())
        if trusted:
            drift -= float(np.sqrt(2 * np.square(weights * (variance + sampling)).sum()) / (weights * shape).sum())
        drift = max(drift, 0.0)
    spread = sampling + drift * shape
    far = np.abs(values - expected) / np.sqrt(variance + spread) - (_FAR_TRUSTED if trusted else _FAR)
    kept = np.maximum(spread / (spread + variance), np.clip(far, 0.0, 1.0))
    return expected + kept * (values - expected), kept * variance
