"""Denoise all tables of a release jointly: 1-ways first, then pairs and larger sets around them.

Shrinkage treats each table on its own. But fitting records to all tables at once, without negative cells, removes noise
too, and without bias. So each cell moves only `PULL` of the way that would be best for its table alone. Where
attributes nearly determine each other, records remove most of the noise, and a full pull costs 8 % of accuracy (msnbc,
`docs/prism-ablation.md`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.denoising.absorb import absorb
from chicle.denoising.low_rank import Deviation, low_rank
from chicle.denoising.shrink import shrink
from chicle.measurements.measurement import Measurement, onto_simplex
from chicle.measurements.merges import Merge
from chicle.presence import Presence

__all__ = ["PULL", "denoise"]

Floats = npt.NDArray[np.float64]

PULL = 0.7
"""How far each cell moves towards its shrunk value, from 0 to 1."""


def denoise(
    one_ways: Sequence[Measurement],
    tables: Sequence[Measurement],
    merge: Merge,
    total: float,
    *,
    absorbing: bool = True,
    sharing: bool = True,
    pull: float = PULL,
    presence: Presence | None = None,
    margins: Sequence[Measurement] | None = None,
) -> list[Measurement]:
    """Return denoised targets for descent over the merged domain: the 1-ways, then the tables.

    Parameters
    ----------
    one_ways
        The released 1-ways of the original domain.
    tables
        Released tables over the merged domain, at any level.
    merge
        The map from the original to the merged domain.
    total
        Released number of records.
    absorbing
        Whether 1-ways absorb the margins of tables.
    sharing
        Whether pairs are shrunk towards directions that an attribute's tables share, rather than towards independence.
    pull
        How far cells move towards their shrunk values, from 0 to 1.
    presence
        Which attributes are there only if a number says so: independence is then independence given that.
    margins
        The tables whose margins are absorbed; by default `tables`.
    """
    singles: list[Measurement] = []
    for one_way in one_ways:
        (name,) = one_way.clique
        coded, merged = merge.over(one_way), merge.sizes(name).astype(np.float64)
        values, variances = coded.values.astype(np.float64), one_way.sigma**2 * merged
        if absorbing:
            values, variances = absorb(name, values, variances, tables if margins is None else margins)
        sigma = math.sqrt(float(variances.sum() / merged.sum()))
        singles.append(replace(coded, values=onto_simplex(values, total), sigma=sigma))
    shares = {single.clique[0]: np.asarray(single.values, dtype=np.float64) / total for single in singles}
    if presence is not None:
        shares = presence.consistent(shares, {one.clique[0]: np.full(one.values.size, one.sigma**2) for one in singles})
        singles = [replace(one, values=total * shares[one.clique[0]]) for one in singles]
    found = [_expect(table, shares, total, presence) for table in tables]
    signal = _signal(found) if sharing and pull > 0 else {}
    drawn = [one.values + pull * (_shrunk(one, signal.get(i)) - one.values) for i, one in enumerate(found)]
    return [*singles, *(replace(one.table, values=values) for one, values in zip(found, drawn, strict=True))]


@dataclass(frozen=True, eq=False)
class _Expected:
    """A table and its expected counts under independence; a pair's noisy values have the expected margins."""

    table: Measurement
    values: Floats
    expected: Floats
    variance: float


def _expect(
    table: Measurement, shares: Mapping[str, Floats], total: float, presence: Presence | None = None
) -> _Expected:
    if presence is None:
        expected = _independent(table, shares, total)
    else:
        expected = presence.expected(table.clique, shares, total, table.buckets)
    values, variance = table.values.astype(np.float64), table.sigma**2
    if values.ndim == 2:
        off = values - expected
        rows, columns = off.shape
        values = expected + off - off.mean(axis=1, keepdims=True) - off.mean(axis=0, keepdims=True) + off.mean()
        if presence is not None:
            values[expected == 0] = 0.0
        variance *= (rows - 1) * (columns - 1) / (rows * columns)
    return _Expected(table, values, expected, variance)


def _independent(table: Measurement, shares: Mapping[str, Floats], total: float) -> Floats:
    axes = []
    for name in table.clique:
        buckets = table.buckets.get(name)
        axes.append(shares[name] if buckets is None else np.bincount(np.asarray(buckets), weights=shares[name]))
    return total * np.asarray(reduce(np.multiply.outer, axes), dtype=np.float64)


def _signal(found: Sequence[_Expected]) -> dict[int, Floats]:
    """Return the part of each pair's deviation that stands out from noise in shared directions."""
    pairs = [i for i, one in enumerate(found) if one.values.ndim == 2 and min(one.values.shape) > 1]
    deviations = [
        Deviation(_axes(found[i].table), found[i].values - found[i].expected, found[i].table.sigma) for i in pairs
    ]
    return dict(zip(pairs, low_rank(deviations), strict=True))


def _shrunk(one: _Expected, signal: Floats | None) -> Floats:
    if signal is not None:
        centre = one.expected + signal
        key = 0.7 * np.maximum(centre, 0.0) + 0.3 * one.expected
        return shrink(one.values, centre, one.table.sigma**2, key=key)
    return shrink(one.values, one.expected, one.variance) if one.variance > 0 else one.values


def _axes(table: Measurement) -> tuple[Any, Any]:
    """Identify both axes of a pair: the attribute, and its buckets."""
    first, second = ((name, np.asarray(table.buckets.get(name, ())).tobytes()) for name in table.clique)
    return first, second
