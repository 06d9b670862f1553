"""Where synthetic values lie inside their bins: by a density that follows the neighbouring bins.

Even draws put half of a tail's values into the upper half of its last, widest bin. Here the density inside a bin is a
power of the distance from a point just below the lower bound: its exponent is the slope, on logarithmic axes, from the
bin before to the bin after. Where bins are narrow this is nearly even; in a bin that reaches far beyond its neighbours
it is the power law that leads there. It follows from the number of synthetic rows in each bin, so it costs nothing.

Bins of a single value beside wide ones are no neighbours: they are frequent values, not a density.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["alone", "fractions", "pick"]

Floats = npt.NDArray[np.float64]

_MOST_TILT = 20.0  # a density inside a bin changes by at most exp(20)
_TURNS = 6  # until slopes hardly change
_FEW = 1.0  # rows added to each bin, so that empty neighbours have a density


def alone(starts: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Return which bins are narrow beside a neighbour: those of one frequent value, declared as such.

    Examples
    --------
    >>> alone(np.array([0, 1, 100, 200])).tolist()
    [True, False, False]
    """
    widths = np.diff(starts.astype(np.float64))
    beside = np.maximum(np.append(0.0, widths[:-1]), np.append(widths[1:], 0.0))
    return np.asarray(10 * widths < beside)


def fractions(
    codes: npt.NDArray[np.integer],
    starts: npt.NDArray[np.generic],
    counts: npt.NDArray[np.integer] | None,
    rng: np.random.Generator,
) -> Floats:
    """Draw for each row how far inside its bin it lies, from 0 to below 1.

    Parameters
    ----------
    codes
        The bin of each row.
    starts
        The start of each bin, and the end of the last.
    counts
        How many rows each bin has; None for even draws.
    rng
        Draws.

    Examples
    --------
    >>> starts, counts = np.array([0, 10, 20, 40, 80]), np.array([1000, 250, 120, 60])
    >>> drawn = fractions(np.full(10_000, 3), starts, counts, np.random.default_rng(0))
    >>> bool(0.35 < drawn.mean() < 0.45)
    True
    """
    even = rng.random(len(codes))
    if counts is None or not len(codes):
        return even
    with np.errstate(all="ignore"):  # bins too narrow or too wide for logarithms are even
        tilt, span = (each[codes] for each in _tilts(starts.astype(np.float64), counts))
        place = np.where(np.abs(tilt) < 1e-6, even, np.log1p(even * np.expm1(tilt)) / tilt)
        drawn = np.where(span < 1e-6, place, np.expm1(span * place) / np.expm1(span))
    return np.clip(np.where(np.isfinite(drawn), drawn, even), 0.0, np.nextafter(1.0, 0.0))


def pick(low: npt.NDArray[np.int64], end: npt.NDArray[np.int64], inside: Floats) -> npt.NDArray[np.int64]:
    """Return integers from `low` to before `end`, at a fraction of the way.

    Examples
    --------
    >>> pick(np.array([10, 10, -(2**62)]), np.array([20, 20, 2**62]), np.array([0.0, 0.99, 0.5])).tolist()
    [10, 19, 0]
    """
    width = end.astype(np.float64) - low.astype(np.float64)
    step = np.minimum(inside * width, 2.0**64 - 2048).astype(np.uint64)
    made = (low.astype(np.uint64) + step).astype(np.int64)  # wraps around, as two's complement does
    return np.clip(made, low, np.maximum(end - 1, low))


def _tilts(starts: Floats, counts: npt.NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Return the log ratio of densities (times distance) over each bin, and its width on the logarithmic axis."""
    widths = np.diff(starts)
    wide = np.flatnonzero(~alone(starts))
    away = starts - starts[0] + widths[wide[0]] / 2
    span = np.diff(np.log(away))
    tilt = span.copy()
    if len(wide) > 1:
        reach = span[wide]
        density = np.log((counts[wide] + _FEW) / widths[wide])
        left = np.maximum(np.arange(len(wide)) - 1, 0)
        right = np.minimum(np.arange(len(wide)) + 1, len(wide) - 1)
        begin = np.log(away[:-1][wide])
        # A bin has its mean density somewhere inside it: where, follows from the slope.
        place = reach / 2
        for _ in range(_TURNS):
            at = begin + place
            slope = (density[right] - density[left]) / np.maximum(at[right] - at[left], 1e-12)
            slope = np.clip(slope, (-_MOST_TILT / reach) - 1, (_MOST_TILT / reach) - 1)
            power = np.where(np.abs(slope + 1) < 1e-6, reach, np.expm1((slope + 1) * reach) / (slope + 1))
            mean = np.log(power / np.expm1(reach))
            place = np.where(np.abs(slope) < 1e-3, reach / 2, np.clip(mean / slope, 0.0, reach))
        tilt[wide] = (slope + 1) * reach
    return tilt, span
