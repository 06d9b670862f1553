"""Edges of bins for drafts, by the quantiles of the data: **not private**."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["EDGES_READ", "drafted_edges"]

EDGES_READ = (
    "bounds, edges by quantiles, and frequent values, which have a bin of their own (an edge listed twice); "
    "`bins: private` would find such edges with budget"
)
_BINS = 32


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
    cuts = {_short(cut, high - low, unit) for cut in np.quantile(rest, shares)} if len(rest) else set()
    # No integer lies between a frequent one and the next.
    near = {value + unit for value in frequent} if unit else set()
    inner = {cut for cut in cuts if low < cut < high} - near - set(frequent)
    return tuple(float(edge) for edge in sorted([*({low, high, *inner} - set(frequent)), *frequent, *frequent]))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Return bounds rounded outwards, to about two digits of their span."""
    step = 10.0 ** math.floor(math.log10(high - low) - 1)
    if step == 0:
        return low, high
    least, most = math.floor(low / step) * step, math.ceil(high / step) * step
    return (least, most) if math.isfinite(most - least) else (low, high)


def _short(cut: float, span: float, unit: float) -> float:
    """Return a cut with no more digits than it needs."""
    size = max(abs(cut), span / 1000)
    step = max(unit, 10.0 ** math.floor(math.log10(size) - 1) if size else 0.0)
    return round(cut / step) * step if step else cut
