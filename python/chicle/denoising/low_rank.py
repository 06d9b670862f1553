"""Joint low-rank denoising of pair tables: an attribute's values differ in few directions, which its tables share.

Let Z be a pair's noisy deviation from independence; its rows and columns add up to 0. For an attribute (at one level)
with k values, G = sum over its tables of ``Z Z' / sigma^2`` has eigenvalues up to about ``(sqrt k + sqrt m)^2`` from
noise alone, with m columns in all (Marchenko and Pastur); eigenvectors above 1.1 times that are directions of signal.
A coefficient c of a table in the bases of both attributes is scaled by ``max(1 - sigma^2 / c^2, 0)``. The part in the
space of one attribute only is scaled by ``max(1 - sigma^2 (f + sqrt(f / 2)) / e, 0)``, as a block of f degrees of
freedom and energy e. The rest is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Deviation", "low_rank"]

Floats = npt.NDArray[np.float64]

Axis: TypeAlias = Any
"""Identifies an attribute at one level."""

_EDGE = 1.1
_CAUTION = 0.5


@dataclass(frozen=True, eq=False)
class Deviation:
    """A pair's deviation from independence.

    Attributes
    ----------
    axes
        The attributes of its rows and columns, each at one level; tables may share them.
    values
        The deviations; rows and columns add up to 0.
    sigma
        Standard deviation of the noise of each cell.
    """

    axes: tuple[Axis, Axis]
    values: Floats
    sigma: float


def low_rank(tables: Sequence[Deviation]) -> list[Floats]:
    """Return the part of each table that stands out from noise in directions shared with other tables."""
    bases = {axis: _basis(axis, tables) for axis in dict.fromkeys(axis for table in tables for axis in table.axes)}
    return [_keep(table, bases) for table in tables]


def _basis(axis: Axis, tables: Sequence[Deviation]) -> Floats:
    """Return the directions of signal of one axis, as rows."""
    blocks = [table.values / table.sigma for table in tables if table.axes[0] == axis]
    blocks += [table.values.T / table.sigma for table in tables if table.axes[1] == axis]
    joined = np.concatenate(blocks, axis=1)
    # With more rows than columns, singular vectors of the joined tables are cheaper than eigenvectors of G.
    if joined.shape[0] > joined.shape[1]:
        vectors, roots, _ = np.linalg.svd(joined, full_matrices=False)
        values = roots**2
    else:
        values, vectors = np.linalg.eigh(joined @ joined.T)
    noise = (np.sqrt(joined.shape[0]) + np.sqrt(joined.shape[1])) ** 2
    kept: Floats = np.ascontiguousarray(vectors[:, values > _EDGE * noise].T)
    return kept


def _keep(table: Deviation, bases: Mapping[Axis, Floats]) -> Floats:
    rows, columns = (bases[axis] for axis in table.axes)
    variance = table.sigma**2
    in_rows = rows @ table.values
    both = in_rows @ columns.T
    rest = in_rows - both @ columns
    only_columns = (table.values - rows.T @ in_rows) @ columns.T
    both = both * np.maximum(1 - variance / np.maximum(both**2, 1e-300), 0.0)
    rest = rest * _block(rest, variance, columns.shape[1] - columns.shape[0], axis=1)
    only_columns = only_columns * _block(only_columns, variance, rows.shape[1] - rows.shape[0], axis=0)
    kept: Floats = rows.T @ (both @ columns + rest) + only_columns @ columns
    return kept


def _block(block: Floats, variance: float, freedom: int, *, axis: int) -> Floats:
    """Return the factor by which to scale each line of a block."""
    energy = np.maximum((block**2).sum(axis=axis, keepdims=True), 1e-300)
    part: Floats = np.maximum(1 - variance * (freedom + _CAUTION * np.sqrt(2 * freedom)) / energy, 0.0)
    return part
