"""Raking: a table brought to given margins by factors for its rows and columns (iterative proportional fitting)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["rake_table"]

Floats = npt.NDArray[np.float64]

_SWEEPS = 50
_CLOSE = 1e-6  # of the total


def rake_table(table: Floats, margins: Sequence[Floats]) -> Floats:
    """Return the table with given margins that is nearest to a given one in relative entropy.

    Empty cells stay empty. Where a margin asks for rows in a slice that has only empty cells, the slice begins as the
    product of the margins.

    Parameters
    ----------
    table
        Counts without negative cells.
    margins
        The counts along each axis, without negative ones; all with the same total.

    Examples
    --------
    >>> margins = [np.array([10.0, 10.0]), np.array([14.0, 6.0])]
    >>> rake_table(np.array([[3.0, 1.0], [1.0, 3.0]]), margins).round(2).tolist()
    [[9.0, 1.0], [5.0, 5.0]]
    """
    total = float(margins[0].sum())
    raked = _filled(np.asarray(table, dtype=np.float64), margins, total)
    for _ in range(_SWEEPS):
        off = 0.0
        for axis, margin in enumerate(margins):
            sums = raked.sum(axis=tuple(i for i in range(raked.ndim) if i != axis))
            off = max(off, float(np.abs(sums - margin).sum()))
            factors = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
            raked *= factors.reshape([-1 if i == axis else 1 for i in range(raked.ndim)])
        if off <= _CLOSE * max(total, 1.0):
            break
    return raked


def _filled(table: Floats, margins: Sequence[Floats], total: float) -> Floats:
    """Return the table with slices that are empty, but should not be, filled with the product of the margins."""
    filled = table.copy()
    product: Floats = np.array(max(total, 1e-300))
    for margin in margins:
        product = np.multiply.outer(product, margin / max(total, 1e-300))
    scale = table.sum() / max(total, 1e-300) if table.sum() else 1.0
    for axis, margin in enumerate(margins):
        empty = (table.sum(axis=tuple(i for i in range(table.ndim) if i != axis)) <= 0) & (margin > 0)
        where = tuple(empty if i == axis else slice(None) for i in range(table.ndim))
        filled[where] = product[where] * scale
    return filled
