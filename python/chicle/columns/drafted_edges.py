"""Edges of bins for drafts, by the quantiles of the data: **not private**."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["EDGES_READ", "decimal_edges", "drafted_edges", "geometric_edges"]

EDGES_READ = (
    "bounds, edges by quantiles, and frequent values, which have a bin of their own (an edge listed twice); "
    "`bins: private` would find such edges with budget"
)
_BINS = 32
_MOST_EXACT = 2.0**53  # up to here floats hold every integer


def drafted_edges(raw: npt.NDArray[np.float64], unit: float) -> tuple[float, ...]:
    """Return edges of bins with about equal numbers of rows, finer in the tails; frequent values get their own bins.

    Parameters
    ----------
    raw
        The numbers.
    unit
        The least distance between two of them: 1 for integers, 0 for real numbers.
    """
    values, counts = np.unique(raw, return_counts=True)
    if len(values) == 1:
        return float(values[0]), float(values[0])
    often = np.zeros(len(values), dtype=np.bool_)
    for _ in range(3):  # then those that are frequent among the rest
        often |= counts > max(counts[~often].sum() / _BINS, 10)
    frequent, rest = values[often].tolist(), np.repeat(values[~often], counts[~often])
    low, high = _rounded(float(values[0]), float(values[-1]))
    low, high = values[0] if often[0] else low, values[-1] if often[-1] else high
    shares = np.concatenate([[0.001, 0.01], np.arange(1, _BINS) / _BINS, [0.99, 0.999]])
    cuts = _short(np.unique(np.quantile(rest, shares)), unit) if len(rest) else set()
    # No integer lies between a frequent one and the next.
    near = {value + unit for value in frequent} if unit else set()
    inner = {cut for cut in cuts if low < cut < high} - near - set(frequent)
    # A frequent value is listed twice, but once if the next value is frequent as well: nothing lies between them.
    twice = [value for value in frequent if not unit or value + unit not in frequent]
    return tuple(float(edge) for edge in sorted([*({low, high, *inner} - set(frequent)), *frequent, *twice]))


def decimal_edges(raw: npt.NDArray[np.float64], decimals: int | None) -> tuple[float, ...]:
    """Return the edges of numbers that are rounded to so many decimals; None if they are not rounded.

    Examples
    --------
    >>> decimal_edges(np.repeat([36.5, 36.6, 37.4], [50, 40, 1]), 1)
    (36.5, 36.6, 36.6, 37.4)
    """
    if decimals is None or np.abs(raw).max() * 10.0**decimals >= _MOST_EXACT:
        return drafted_edges(raw, 0.0)
    edges = drafted_edges(np.round(raw * 10.0**decimals), 1.0)
    return tuple(_exact(round(edge), -decimals) for edge in edges)


def geometric_edges(high: float) -> list[float]:
    """Return edges of bins of counts: 0, 1, 2 and 3 alone, then bins that grow by half; the last is a round bound.

    Examples
    --------
    >>> geometric_edges(76)
    [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 19.0, 28.0, 42.0, 63.0, 100.0]
    """
    digits = 10.0 ** math.floor(math.log10(high))
    bound = next(digits * lead for lead in (1, 2, 5, 10) if digits * lead >= high)
    edges = [0.0, 1.0, 2.0, 3.0, 4.0]
    while 1.5 * edges[-1] < bound:
        edges.append(float(math.floor(1.5 * edges[-1])))
    return [*(edges if bound > 1.25 * edges[-1] else edges[:-1]), bound]


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Return bounds rounded outwards, to about two digits of their span."""
    power = math.floor(math.log10(high - low)) - 1
    step = 10.0**power
    if step == 0:
        return low, high
    least, most = (_exact(count, power) for count in (math.floor(low / step), math.ceil(high / step)))
    return (least, most) if math.isfinite(most - least) else (low, high)


def _short(cuts: npt.NDArray[np.float64], unit: float) -> set[float]:
    """Return cuts in rising order with no more digits than tell each from its neighbours."""
    if len(cuts) < 2:
        return set(cuts.tolist())
    gaps = np.diff(cuts)
    near = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    made = set()
    for cut, gap in zip(cuts.tolist(), near.tolist(), strict=True):
        power = max(math.floor(math.log10(gap)), -300 if unit == 0 else 0)
        made.add(_exact(round(cut / 10.0**power), power))
    return made


def _exact(count: int, power: int) -> float:
    """Return a number of powers of ten as the nearest float: 3 tenths are 0.3, not 0.30000000000000004."""
    return float(f"{count}e{power}")
