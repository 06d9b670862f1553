"""All noisy tables of a release heard together: 1-ways first, then pairs and larger sets around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.compress import Compression
from chicle.denoise.absorb import absorb
from chicle.denoise.low_rank import Deviation, low_rank
from chicle.denoise.shrink import shrink
from chicle.generate.targets import onto_simplex
from chicle.measure import Measurement

__all__ = ["denoise"]

Floats = npt.NDArray[np.float64]


def denoise(
    one_ways: Sequence[Measurement],
    tables: Sequence[Measurement],
    compression: Compression,
    total: float,
    *,
    absorbing: bool = True,
    sharing: bool = True,
    shrinking: bool = True,
) -> list[Measurement]:
    """Return targets for descent, over the compressed domain: 1-ways and tables after all of them have been heard.

    Parameters
    ----------
    one_ways
        The released 1-ways of the original domain.
    tables
        Released tables over the compressed domain, at any level.
    compression
        From the one to the other.
    total
        Released number of records.
    absorbing
        Whether 1-ways learn from the margins of tables.
    sharing
        Whether pairs are shrunk towards the directions that tables of an attribute share, or else towards independence.
    shrinking
        Whether tables are shrunk at all.
    """
    domain = compression.domain
    singles: list[Measurement] = []
    for one_way, coded in zip(one_ways, compression.one_ways, strict=True):
        (name,) = one_way.clique
        merged = np.bincount(compression.codes(name), minlength=domain[name]).astype(np.float64)
        values, variances = coded.values.astype(np.float64), one_way.sigma**2 * merged
        if absorbing:
            values, variances = absorb(name, values, variances, tables)
        sigma = math.sqrt(float(variances.sum() / merged.sum()))
        singles.append(replace(coded, values=onto_simplex(values, total), sigma=sigma))
    shares = {single.clique[0]: np.asarray(single.values, dtype=np.float64) / total for single in singles}
    found = [_expect(table, shares, total) for table in tables]
    if not shrinking:
        return [*singles, *(replace(one.table, values=one.values) for one in found)]
    signal = _signal(found) if sharing else {}
    return [*singles, *(_shrunk(one, signal.get(i)) for i, one in enumerate(found))]


@dataclass(frozen=True, eq=False)
class _Expected:
    """A table with what independence expects of it; a pair's noisy values have the expected margins."""

    table: Measurement
    values: Floats
    expected: Floats
    variance: float


def _expect(table: Measurement, shares: Mapping[str, Floats], total: float) -> _Expected:
    axes = []
    for name in table.clique:
        buckets = table.coarsening.get(name)
        axes.append(shares[name] if buckets is None else np.bincount(np.asarray(buckets), weights=shares[name]))
    expected: Floats = total * np.asarray(reduce(np.multiply.outer, axes), dtype=np.float64)
    values, variance = table.values.astype(np.float64), table.sigma**2
    if values.ndim == 2:
        off = values - expected
        rows, columns = off.shape
        values = expected + off - off.mean(axis=1, keepdims=True) - off.mean(axis=0, keepdims=True) + off.mean()
        variance *= (rows - 1) * (columns - 1) / (rows * columns)
    return _Expected(table, values, expected, variance)


def _signal(found: Sequence[_Expected]) -> dict[int, Floats]:
    """Return the part of each pair's deviation that stands out in shared directions."""
    pairs = [i for i, one in enumerate(found) if one.values.ndim == 2 and min(one.values.shape) > 1]
    deviations = [
        Deviation(_axes(found[i].table), found[i].values - found[i].expected, found[i].table.sigma) for i in pairs
    ]
    return dict(zip(pairs, low_rank(deviations), strict=True))


def _shrunk(one: _Expected, signal: Floats | None) -> Measurement:
    if signal is not None:
        centre = one.expected + signal
        key = 0.7 * np.maximum(centre, 0.0) + 0.3 * one.expected
        return replace(one.table, values=shrink(one.values, centre, one.table.sigma**2, key=key))
    if one.variance > 0:
        return replace(one.table, values=shrink(one.values, one.expected, one.variance))
    return replace(one.table, values=one.values)


def _axes(table: Measurement) -> tuple[Any, Any]:
    """Name both axes of a pair: the attribute, and how it is seen."""
    first, second = ((name, np.asarray(table.coarsening.get(name, ())).tobytes()) for name in table.clique)
    return first, second
