"""Settle ordered attributes: give synthetic records the 1-ways that all measurements together say, with steady tails.

Models fit noisy tables, and records cannot be negative, so noise in the empty cells of a tail becomes records there.
Any model has this bias, so it is removed after the model: for each ordered attribute, the margins of all tables are
pooled into one estimate (`chicle.denoising.pooled`), its tails are denoised (`chicle.denoising.tails`), and as few
records as possible change their value so that the records have these counts. Those that leave a cell are chosen at
random; the lowest of them go to the lowest cells that lack records.

Everything follows from released measurements: free. Cost: a sort of the records that move, for each ordered attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes
from chicle.counting.records import Records
from chicle.denoising.pooled import pooled
from chicle.denoising.tails import steady_tails
from chicle.domain import Domain
from chicle.measurements.measurement import Measurement

__all__ = ["settle", "steady_one_ways"]

Floats = npt.NDArray[np.float64]


def steady_one_ways(
    measurements: Sequence[Measurement], domain: Domain, axes: Mapping[str, Floats], total: int
) -> dict[str, Floats]:
    """Return the estimated counts of ordered attributes, without those that no measurement shows in every value.

    Parameters
    ----------
    measurements
        All that was released.
    domain
        The attributes.
    axes
        For each ordered attribute the starts of its values, and the end of the last; missing, if it may be, is a code
        beyond them.
    total
        The estimated number of records.
    """
    whole = [one for one in measurements if one.whole and one.clique]
    whole.sort(key=lambda one: (len(one.clique), bool(one.buckets)))
    found = {}
    for name, starts in axes.items():
        if not any(name in one.clique and name not in one.buckets for one in whole):
            continue
        size = domain[name]
        values, noise = pooled(name, size, total, whole)
        there = len(starts) - 1
        known = float(values[:there].sum()) if there < size else float(total)
        noise = noise[:there] if noise.ndim == 1 else noise[:there, :there]
        found[name] = steady_tails(values[:there], noise, starts, max(known, 0.0))
    return found


def settle(records: Records, wanted: Mapping[str, Floats], rng: np.random.Generator) -> Records:
    """Return records in which as few values as possible changed so that attributes have the wanted shares.

    Parameters
    ----------
    records
        Synthetic records.
    wanted
        For some attributes, counts of their codes; codes beyond the last (missing) stay as they are.
    rng
        Chooses the records that change.

    Examples
    --------
    >>> made = Records({"visits": [0, 0, 1, 5, 7, 9]}, {"visits": 10})
    >>> wanted = np.array([4.0, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    >>> settle(made, {"visits": wanted}, np.random.default_rng(0))["visits"].tolist()
    [0, 0, 1, 0, 0, 2]
    """
    codes = {name: records[name] for name in records}
    for name, counts in wanted.items():
        if counts.sum() > 0:
            codes[name] = _settled(codes[name], counts, rng)
    return Records(codes, records.domain, max_records_per_person=records.max_records_per_person)


def _settled(codes: Codes, wanted: Floats, rng: np.random.Generator) -> Codes:
    have = np.bincount(codes, minlength=len(wanted))[: len(wanted)]
    goal = _whole(wanted, int(have.sum()), rng)
    excess = np.maximum(have - goal, 0)
    full = np.zeros(max(int(codes.max(initial=0)) + 1, len(wanted)), dtype=np.bool_)
    full[: len(wanted)] = excess > 0
    rows = rng.permutation(np.flatnonzero(full[codes]))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    # Of the shuffled rows of each cell, the first `excess` leave it.
    sizes = np.where(excess > 0, have, 0)
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    leaving = rows[inside < excess[codes[rows]]]
    made = codes.copy()
    made[leaving] = np.repeat(np.arange(len(wanted)), np.maximum(goal - have, 0))
    return made


def _whole(wanted: Floats, total: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return integers with this total in the ratios of `wanted`, each right in expectation (systematic sampling)."""
    edges = np.concatenate([[0.0], np.cumsum(wanted)])
    marks = np.floor(edges * (total / edges[-1]) + rng.random()).astype(np.int64)
    marks = np.minimum(marks, marks[0] + total)
    marks[-1] = marks[0] + total
    return np.asarray(np.diff(marks))
