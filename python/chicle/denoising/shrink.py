"""Empirical Bayes: shrink each cell of a noisy table towards its expected value, as far as noise explains the gap.

Cells are grouped into classes by their expected count, one octave each. Within a class the mean square of (value -
expected) is noise plus true deviation. So the deviation has a variance of about ``tau^2 = max(mean square - sigma^2,
0)``, and the best linear estimate keeps ``tau^2 / (tau^2 + sigma^2)`` of each cell's deviation (James and Stein; Efron
and Morris 1973).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["MIN_CLASS", "shrink"]

Floats = npt.NDArray[np.float64]

MIN_CLASS = 12
"""Classes with fewer cells are joined with the next one."""


def shrink(values: Floats, expected: Floats, variance: float, *, key: Floats | None = None) -> Floats:
    """Return a table between its noisy and its expected values.

    Parameters
    ----------
    values
        The noisy table.
    expected
        The expected values, in the same shape.
    variance
        The variance of the noise of each cell.
    key
        The values that decide the class of each cell; by default `expected`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.full(1000, 50.0)
    >>> noisy = truth + 10 * rng.standard_normal(1000)
    >>> bool(np.abs(shrink(noisy, truth, 100.0) - truth).mean() < 2)
    True
    """
    flat, centre = values.reshape(-1), expected.reshape(-1)
    octave = np.floor(np.log2(np.maximum((expected if key is None else key).reshape(-1), 1e-3)))
    order = np.argsort(-octave, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(octave[order])) + 1, flat.size)
    squares = np.concatenate([[0.0], np.cumsum((flat - centre)[order] ** 2)])
    kept = np.empty(flat.size)
    start = 0
    for end in ends:
        if end - start < MIN_CLASS and end < flat.size:
            continue
        stop = flat.size if flat.size - end < MIN_CLASS else int(end)
        excess = max((squares[stop] - squares[start]) / (stop - start) - variance, 0.0)
        kept[order[start:stop]] = excess / (excess + variance)
        start = stop
        if stop == flat.size:
            break
    result: Floats = (centre + kept * (flat - centre)).reshape(values.shape)
    return result
