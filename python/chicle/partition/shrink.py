"""Sizes and 1-ways of partitions, shrunk: what each partition is allowed to say about itself. Everything here is free.

A small partition's noisy 1-way is mostly noise. Its best guess lies between that and the 1-way of what is above it: the
whole table, or its parent where partitions have two levels.

1. Sizes are averaged over all tables that add up to them, drawn towards their mean as far as noise explains how they
   differ, and made non-negative.
2. The deviations of all tables from what is expected of them form one matrix, a row for each partition. What partitions
   have in common in how they differ lies in few directions: singular values that noise explains are dropped, the
   others are shrunk (Gavish and Donoho 2017). That is the centre. Where a public table has partitions, these say how
   partitions differ (`areas`), and deviations are from that guess.
3. Each cell goes from its centre towards its noisy value by ``tau^2 / (tau^2 + sigma^2)``, where ``tau^2 = max(mean
   (value - centre)^2 - sigma^2 (1 + 2 sqrt(2 / m)), 0)`` over the m cells of one attribute in one octave of expected
   count, of all partitions (James and Stein). The term in m keeps small classes from following noise.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from chicle.measurements.measurement import onto_simplex
from chicle.partition.areas import PublicAreas

__all__ = ["mean_sizes", "shrunk_shares", "steady_sizes"]

Floats = npt.NDArray[np.float64]

_EDGE = 1.05  # a singular value must exceed the largest that noise explains by this factor
_CAUTION = 2.0


def mean_sizes(sizes: Floats, sigma: float, tables: list[Floats], sigmas: list[float]) -> tuple[Floats, float]:
    """Return the inverse-variance mean of sizes and of the sums of tables, and its standard deviation.

    Parameters
    ----------
    sizes, sigma
        The noisy sizes.
    tables, sigmas
        Noisy tables with a row for each partition.
    """
    found, precision = sizes / sigma**2, 1 / sigma**2
    for table, noise in zip(tables, sigmas, strict=True):
        weight = 1 / (noise**2 * table.shape[1])
        found, precision = found + weight * table.sum(axis=1), precision + weight
    return found / precision, precision**-0.5


def steady_sizes(sizes: Floats, sigma: float, parents: npt.NDArray[np.int64]) -> Floats:
    """Return sizes of at least 0, drawn towards the mean of their parent as far as noise explains how they differ.

    Parameters
    ----------
    sizes, sigma
        Noisy sizes.
    parents
        The number of the parent of each partition.
    """
    number = np.bincount(parents)
    mean = (np.bincount(parents, sizes) / np.maximum(number, 1))[parents]
    excess = max(float(((sizes - mean) ** 2).sum()) / max(len(sizes) - len(number), 1) - sigma**2, 0.0)
    drawn = mean + (sizes - mean) * excess / (excess + sigma**2)
    return onto_simplex(drawn, max(float(sizes.sum()), 0.0))


def shrunk_shares(
    tables: Mapping[str, Floats],
    sigmas: Mapping[str, float],
    sizes: Floats,
    shares: Mapping[str, Floats],
    *,
    parents: npt.NDArray[np.int64],
    areas: PublicAreas | None = None,
) -> tuple[dict[str, Floats], float]:
    """Return for each attribute the shares of its values in each partition, and how far public ones were believed.

    Parameters
    ----------
    tables, sigmas
        For each attribute that was measured its noisy counts, with a row for each partition.
    sizes
        The sizes of partitions.
    shares
        For each attribute its shares in the whole table.
    parents
        The number of the parent of each partition; all the same where there is one level.
    areas
        How public partitions differ, if there are any.
    """
    above = {name: np.broadcast_to(share, (len(sizes), share.size)) for name, share in shares.items()}
    if parents.max(initial=0) > 0:
        members, sums = np.bincount(parents), np.asarray(np.bincount(parents, sizes), dtype=np.float64)
        held = {name: _summed(table, parents) for name, table in tables.items()}
        # The parent's noise is that of all its children; a root mean square serves parents of several sizes.
        noise = {name: sigma * float(np.sqrt(np.mean(members))) for name, sigma in sigmas.items()}
        level = _level(held, noise, sums, {name: share[: len(sums)] for name, share in above.items()})
        above = {name: found[parents] for name, found in level.items()}
    if areas is None:
        return _level(tables, sigmas, sizes, above), 0.0
    guess = areas.guess(tables, sigmas, sizes, above)
    above = {name: _moved(share, guess.shares.get(name)) for name, share in above.items()}
    return _level(tables, sigmas, sizes, above), guess.scale


def _moved(shares: Floats, by: Floats | None) -> Floats:
    """Return shares moved by what was guessed; none below zero."""
    if by is None:
        return shares
    made = np.maximum(shares + by, 0.0) + 1e-12
    return np.asarray(made / made.sum(axis=1, keepdims=True), dtype=np.float64)


def _level(
    tables: Mapping[str, Floats], sigmas: Mapping[str, float], sizes: Floats, above: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return the shares of one level, given those of the level above, spread over its partitions."""
    common = _common(tables, sigmas, sizes, above)
    found = {name: np.array(share) for name, share in above.items()}
    for name, table in tables.items():
        mean = sizes[:, None] * above[name]
        centre = np.maximum(mean + common[name], 0.0)
        found[name] = _as_shares(_shrunk(table, centre, sigmas[name] ** 2, mean), mean)
    return found


def _common(
    tables: Mapping[str, Floats], sigmas: Mapping[str, float], sizes: Floats, above: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return what partitions have in common in how they differ from what is expected, as their own tables show it."""
    if not tables:
        return {}
    off = np.concatenate([table - sizes[:, None] * above[name] for name, table in tables.items()], axis=1)
    noise = np.concatenate([np.full(table.shape[1], sigmas[name]) for name, table in tables.items()])
    ends = np.cumsum([table.shape[1] for table in tables.values()])[:-1]
    return dict(zip(tables, np.split(_directions(off / noise) * noise, ends, axis=1), strict=True))


def _directions(whitened: Floats) -> Floats:
    """Return a matrix of signal and unit noise without the directions that noise explains."""
    if not whitened.size or not np.isfinite(whitened).all():
        return np.zeros_like(whitened)
    left, values, right = np.linalg.svd(whitened, full_matrices=False)
    low, high = sorted(whitened.shape)
    ratio, scaled = low / high, values / np.sqrt(high)
    kept = np.zeros_like(scaled)
    there = scaled > _EDGE * (1 + np.sqrt(ratio))
    y = scaled[there]
    kept[there] = np.sqrt(np.maximum((y**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)) / y
    return np.asarray((left * (kept * np.sqrt(high))) @ right, dtype=np.float64)


def _shrunk(values: Floats, centre: Floats, variance: float, expected: Floats) -> Floats:
    """Return each value between its centre and itself, by octaves of expected count."""
    gap, count = (values - centre).reshape(-1), expected.reshape(-1)
    octave = np.floor(np.log2(np.maximum(count, 1e-3))).astype(np.int64)
    octave -= octave.min(initial=0)
    cells = np.bincount(octave)
    squares = np.bincount(octave, gap**2) / np.maximum(cells, 1)
    tau = np.maximum(squares - variance * (1 + _CAUTION * np.sqrt(2 / np.maximum(cells, 1))), 0.0)[octave]
    tau = np.minimum(tau, count**2 + count)  # shares differ by at most their own size
    return np.asarray(centre + (tau / (tau + variance) * gap).reshape(values.shape), dtype=np.float64)


def _as_shares(counts: Floats, expected: Floats) -> Floats:
    """Return shares: counts moved by one amount in each row so that they are not negative and add up as expected."""
    total = expected.sum(axis=1)
    made = np.stack([onto_simplex(row, max(goal, 1e-9)) for row, goal in zip(counts, total, strict=True)])
    return np.asarray(made / made.sum(axis=1, keepdims=True), dtype=np.float64)


def _summed(table: Floats, parents: npt.NDArray[np.int64]) -> Floats:
    found = np.zeros((int(parents.max()) + 1, table.shape[1]))
    np.add.at(found, parents, table)
    return found
