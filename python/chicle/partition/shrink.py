"""Sizes and 1-ways of partitions, shrunk: what each partition is allowed to say about itself. Everything here is free.

A small partition's noisy 1-way is mostly noise. Its best guess lies between that and the 1-way of what is above it: the
whole table, or its parent where partitions have two levels.

1. Sizes are averaged over all tables that add up to them, drawn towards their mean as far as noise explains how they
   differ, and made non-negative.
2. The deviations of all tables from what is expected of them form one matrix, a row for each partition. What partitions
   have in common in how they differ lies in few directions: singular values that noise explains are dropped, the
   others are shrunk (Gavish and Donoho 2017). That is the centre.
3. Each cell goes from its centre towards its noisy value by ``tau^2 / (tau^2 + sigma^2)``, where ``tau^2 = max(mean
   (value - centre)^2 - sigma^2 (1 + 2 sqrt(2 / m)), 0)`` over the m cells of one attribute in one octave of expected
   count, of all partitions (James and Stein). The term in m keeps small classes from following noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chicle.measurements.measurement import onto_simplex

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
    tables: list[Floats],
    sigmas: list[float],
    sizes: Floats,
    shares: list[Floats],
    parents: npt.NDArray[np.int64],
) -> list[Floats]:
    """Return for each attribute the shares of its values in each partition, a row for each.

    Parameters
    ----------
    tables, sigmas
        For each attribute its noisy counts, with a row for each partition.
    sizes
        The sizes of partitions.
    shares
        For each attribute its shares in the whole table.
    parents
        The number of the parent of each partition; all the same where there is one level.
    """
    above = [np.broadcast_to(share, (len(sizes), share.size)) for share in shares]
    if parents.max(initial=0) > 0:
        members, sums = np.bincount(parents), np.asarray(np.bincount(parents, sizes), dtype=np.float64)
        held = [_summed(table, parents) for table in tables]
        # The parent's noise is that of all its children; a root mean square serves parents of several sizes.
        noise = [sigma * float(np.sqrt(np.mean(members))) for sigma in sigmas]
        above = [found[parents] for found in _level(held, noise, sums, [share[: len(sums)] for share in above])]
    return _level(tables, sigmas, sizes, above)


def _level(tables: list[Floats], sigmas: list[float], sizes: Floats, above: list[Floats]) -> list[Floats]:
    """Return the shares of one level, given those of the level above, spread over its partitions."""
    expected = [sizes[:, None] * share for share in above]
    off = np.concatenate([table - mean for table, mean in zip(tables, expected, strict=True)], axis=1)
    noise = np.concatenate([np.full(table.shape[1], sigma) for table, sigma in zip(tables, sigmas, strict=True)])
    common = _directions(off / noise) * noise
    found, start = [], 0
    for table, mean, sigma in zip(tables, expected, sigmas, strict=True):
        stop = start + table.shape[1]
        centre = np.maximum(mean + common[:, start:stop], 0.0)
        moved = _shrunk(table, centre, sigma**2, mean)
        found.append(_as_shares(moved, mean))
        start = stop
    return found


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
