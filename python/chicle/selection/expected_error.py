"""Predict the error of a pair's table, at any level and any noise, from released numbers alone.

For a pair with expected cell counts m under independence (the product R of the released 1-ways), a released distance E
from R, and noise of standard deviation s on each cell, with ``q = sqrt(2 / pi)``, the mean of abs(z) for a normal z:

- the true table is itself a sample: its distance from the distribution behind it is about ``N_l = sum min(q sqrt(m),
  2 m)`` at level l;
- not measuring leaves ``sqrt(E^2 + N_0^2)``;
- measuring at level l leaves what the buckets hide, ``r_l = sqrt(min(N_0^2 - N_l^2, E^2) + min(1, a^2 + b^2) S^2)``,
  where ``S^2 = max(E^2 - N_0^2, 0)`` is the structure in E, and the sampling noise inside the buckets; it adds the
  noise that survives shrinkage, ``0.7 sum q s m / (m + 0.7 s)``: a cell with far fewer records than s is known to be
  nearly empty from the 1-ways, and costs hardly anything;
- a and b are the parts of structure that the buckets of both attributes hide: 0 at level 0; W, the share of records
  mixed up within buckets, for a nominal attribute; ``1.2 k^-0.7 W`` with k buckets for an ordinal one, where neighbours
  are alike.

Sums over cells go by classes: the values of an attribute are grouped by quarter octaves of their share, and the classes
of a pair's cells are those of the product. All pairs and levels then cost one matrix product, for any number of cells.
The constants 0.7, 1.2 and -0.7 were fitted by prototypes on Adult and three small tables. What buckets hide has the
weight `CAUTION`, because denoising helps fine tables and not coarse ones (`docs/prism-ablation.md`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.selection.levels import Level

__all__ = [
    "CAUTION",
    "MAX_CELLS",
    "NoiseClasses",
    "Prospects",
    "expected_errors",
    "noise_error",
    "sampling_error",
    "steady",
]

MAX_CELLS = 20_000
"""Tables with more cells are not considered."""

CAUTION = 1.5
"""The weight of what a coarse table hides."""

Floats = npt.NDArray[np.float64]

_MEAN_ABS = math.sqrt(2 / math.pi)
_PER_OCTAVE = 4
_CLASSES = 40 * _PER_OCTAVE
_COUNT_CLASSES = 37 * _PER_OCTAVE
_SURVIVES = 0.7
_EMPTY = 0.7
_ORDINAL = (1.2, -0.7)


@dataclass(frozen=True, eq=False)
class Prospects:
    """Expected L1 errors, in records, of the pairs ``(i, j)``, i < j, of attributes in order.

    Attributes
    ----------
    pairs
        Positions of both attributes, one row a pair.
    structure
        How far each pair's distance from independence exceeds what sampling explains; noise can make it negative.
    unmeasured
        Error of each pair if it is not measured.
    best
        Error of each pair at each noise, at its best level.
    level
        The best level of both attributes, for each pair and noise.
    fine
        Error of each pair at each noise, at full resolution.
    """

    pairs: npt.NDArray[np.int64]
    structure: Floats
    unmeasured: Floats
    best: Floats
    level: npt.NDArray[np.int8]
    fine: Floats


def expected_errors(
    attributes: Sequence[Sequence[Level]],
    ordinal: Sequence[bool],
    distances: Floats,
    total: float,
    sigmas: Floats,
    *,
    caution: float = CAUTION,
    max_cells: int = MAX_CELLS,
) -> Prospects:
    """Predict the error of every pair at every noise.

    Parameters
    ----------
    attributes
        The levels of each attribute.
    ordinal
        Which attributes have an order.
    distances
        Released distance of each pair from independence, in records, in the order of ``itertools.combinations``.
    total
        Released number of records.
    sigmas
        Standard deviations of the noise to consider.
    caution
        The weight of what a coarse table hides.
    max_cells
        Tables with more cells are not considered.
    """
    number = len(attributes)
    pairs = np.stack(np.triu_indices(number, 1), axis=1)
    flat = [level for attribute in attributes for level in attribute]
    first = np.cumsum([0] + [len(attribute) for attribute in attributes])
    masses = np.stack([_classes(level.counts / max(total, 1e-300)) for level in flat])
    sizes = np.array([level.size for level in flat])
    hidden = np.array([_hidden(level, ordinal[i]) for i, attribute in enumerate(attributes) for level in attribute])
    noise, sampling = _kernels(total, sigmas)
    beyond, unmeasured = np.empty(len(pairs)), np.empty(len(pairs))
    best, fine = np.empty((len(pairs), sigmas.size)), np.empty((len(pairs), sigmas.size))
    level = np.empty((len(pairs), sigmas.size, 2), dtype=np.int8)
    start = 0
    for i in range(number - 1):
        mine, theirs = slice(first[i], first[i + 1]), slice(first[i + 1], None)
        profile = _product(masses[mine], masses[theirs])
        added = _SURVIVES * (profile @ noise)
        sampled = profile @ sampling
        cells = sizes[mine, None] * sizes[None, theirs]
        lines = (sizes[mine, None] == 1) | (sizes[None, theirs] == 1)
        lost = np.minimum(hidden[mine, None] ** 2 + hidden[None, theirs] ** 2, 1.0)
        for j in range(i + 1, number):
            here = slice(first[j] - first[i + 1], first[j + 1] - first[i + 1])
            distance = max(float(distances[start]), 0.0)
            finest = sampled[0, here.start]
            inside = np.maximum(finest**2 - sampled[:, here] ** 2, 0.0)
            structure = max(distance**2 - finest**2, 0.0)
            left = np.minimum(inside, distance**2) + lost[:, here] * structure
            error = caution * np.sqrt(left + inside)[:, :, None] + added[:, here]
            fine[start] = added[0, here.start]
            # A single line of cells is the 1-way of the other attribute; it says nothing about the pair.
            error[(cells[:, here] > max_cells) | lines[:, here]] = np.inf
            error = error.reshape(-1, sigmas.size)
            option = error.argmin(axis=0)
            best[start] = error[option, np.arange(sigmas.size)]
            level[start] = np.stack(np.divmod(option, here.stop - here.start), axis=1)
            beyond[start] = distances[start] - finest
            unmeasured[start] = math.hypot(distance, finest)
            start += 1
    return Prospects(pairs, beyond, unmeasured, best, level, fine)


def steady(distances: Floats, sigma: float) -> Floats:
    """Shrink noisy distances towards their mean, as far as their spread is noise (empirical Bayes).

    Without it, selection prefers pairs whose noise happens to be large.

    Examples
    --------
    >>> steady(np.array([90.0, 110.0, 100.0]), sigma=30.0)
    array([100., 100., 100.])
    >>> steady(np.array([90.0, 110.0, 100.0]), sigma=0.0)
    array([ 90., 110., 100.])
    """
    spread = float(distances.var())
    kept = max(spread - sigma**2, 0.0) / spread if spread > 0 else 1.0
    drawn: Floats = distances.mean() + kept * (distances - distances.mean())
    return drawn


def noise_error(counts: Floats, sigma: float) -> float:
    """Return the L1 error that noise adds to a table of these counts; nearly empty cells add little."""
    return float((_MEAN_ABS * sigma * counts / (counts + _EMPTY * sigma)).sum())


def sampling_error(counts: Floats) -> float:
    """Return how far a table of independent records is about from these expected counts, in L1.

    Examples
    --------
    >>> sampling_error(np.array([0.5, 200.0])).__round__(2)
    11.85
    """
    held = np.maximum(counts, 0.0)
    return float(np.minimum(_MEAN_ABS * np.sqrt(held), 2 * held).sum())


class NoiseClasses:
    """The error that each of several noises leaves in tables of known counts, by classes of cells.

    Parameters
    ----------
    sigmas
        Standard deviations of the noise.

    Examples
    --------
    >>> counts = np.array([[900.0, 40.0], [0.0, 60.0]])
    >>> NoiseClasses(np.array([5.0, 50.0])).errors(counts).round(0)
    array([ 8., 60.])
    """

    def __init__(self, sigmas: Floats) -> None:
        middle = 2.0 ** ((np.arange(_COUNT_CLASSES) + 0.5) / _PER_OCTAVE - 1)[:, None]
        self._errors = _SURVIVES * _MEAN_ABS * sigmas * middle / (middle + _EMPTY * sigmas)
        sampling = np.minimum(_MEAN_ABS * np.sqrt(middle), 2 * middle)
        self._left = sampling * _SURVIVES * sigmas / np.sqrt(middle + (_SURVIVES * sigmas) ** 2)

    def errors(self, counts: Floats, times: Floats | None = None) -> Floats:
        """Return the error at each noise; empty cells add none. A cell of `counts` may stand for several."""
        errors: Floats = self._classes(counts, times) @ self._errors
        return errors

    def left(self, counts: Floats, times: Floats | None = None) -> Floats:
        """Return what each noise leaves of the sampling error: that of the best mean of expected and noisy counts."""
        left: Floats = self._classes(counts, times) @ self._left
        return left

    def _classes(self, counts: Floats, times: Floats | None) -> npt.NDArray[Any]:
        held = counts > 0
        place = np.clip((_PER_OCTAVE * (np.log2(counts[held]) + 1)).astype(np.int64), 0, _COUNT_CLASSES - 1)
        return np.bincount(place, None if times is None else times[held], minlength=_COUNT_CLASSES)


def _hidden(level: Level, ordinal: bool) -> float:
    if level.buckets is None or not ordinal:
        return level.lost
    factor, power = _ORDINAL
    return float(factor * level.size**power * level.lost)


def _classes(shares: Floats) -> Floats:
    """Return the mass of an attribute's values by quarter octaves of their share, from share 1 down."""
    held = shares[shares > 0]
    place = np.minimum((-_PER_OCTAVE * np.log2(np.minimum(held, 1.0))).astype(np.int64), _CLASSES - 1)
    masses: Floats = np.bincount(place, weights=held, minlength=_CLASSES).astype(np.float64)
    return masses


def _product(mine: Floats, theirs: Floats) -> Floats:
    """Return the mass of the cells of pairs by classes of the product: a convolution of the classes of both."""
    profile = np.zeros((len(mine), len(theirs), 2 * _CLASSES))
    for row, classes in enumerate(mine):
        for place in np.flatnonzero(classes):
            profile[row, :, place : place + _CLASSES] += classes[place] * theirs
    return profile


def _kernels(total: float, sigmas: Floats) -> tuple[Floats, Floats]:
    """Return what a unit of mass in each class adds to the noise at each sigma, and to the sampling noise."""
    mean = total * 2.0 ** (-(np.arange(2 * _CLASSES) + 1) / _PER_OCTAVE)
    noise = _MEAN_ABS * sigmas / (mean[:, None] + _EMPTY * sigmas)
    sampling = np.minimum(_MEAN_ABS / np.sqrt(mean), 2.0)
    return total * noise, total * sampling
