"""Make noisy tables agree with each other, without negative cells: free post-processing of measurements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import integer, memory_bytes, threads_or_all
from chicle.counting.counter import MEMORY_LIMIT
from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError
from chicle.measurements.measurement import Measurement

__all__ = ["Nonnegativity", "onto_simplex", "project"]

Nonnegativity: TypeAlias = Literal["least-squares", "norm-sub", "norm-cut", "norm-mul", "base-pos", "none"]
"""How tables become non-negative; see `project`."""

LARGEST_VALUE = 2.0**53
SIGMAS = (1e-60, 1e60)


def project(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    *,
    total: float | None = None,
    nonnegativity: Nonnegativity = "least-squares",
    tolerance: float = 1e-6,
    max_sweeps: int = 3_000,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
    progress: Callable[[int, float], None] | None = None,
) -> list[Measurement]:
    """Return tables near the measured ones that agree on what they share, have no negative cell and one total.

    This is [P] section 4.3 with uneven budgets. Wherever cliques share attributes, the margins they imply are averaged
    with inverse-variance weights and the corrections spread evenly over the cells, small sets first: that is the exact
    weighted least-squares solution. Non-negativity breaks it, so the two steps alternate until both hold.

    Parameters
    ----------
    measurements
        Noisy tables. Cliques may overlap, contain one another and repeat.
    domain
        The attributes.
    total
        What every table adds up to; by default the inverse-variance mean of the measured totals, at least zero.
    nonnegativity
        ``"least-squares"``
            The tables nearest to the measured ones, in squares weighted by ``1/sigma**2``, of all that agree, are
            non-negative and have the total: the maximum-likelihood tables. Needs the fewest sweeps.
        ``"norm-sub"``
            The published loop: after every agreement each table is projected onto the non-negative ones of its
            total (all cells lowered by one amount, cut at zero). Ends at valid tables near the nearest ones.
        ``"norm-mul"``
            The loop, with cells cut at zero and scaled to the total.
        ``"norm-cut"``
            The loop, with cells cut at zero and the smallest positive ones dropped until the total is right. Tables
            need not come to agree: where nothing of a row is kept, corrections of it are dropped again.
        ``"base-pos"``
            The loop, with cells cut at zero; the total comes right only as the tables come to agree.
        ``"none"``
            Negative cells stay; agreement is exact after one sweep.
    tolerance
        Bound on the disagreement: for every clique and every set of attributes that it shares, the absolute differences
        between its margin and the common one add up to at most ``tolerance * max(total, 1)``.
    max_sweeps
        Where sweeps stop with a `RuntimeWarning` even if tables still disagree by more than that.
    threads
        How many threads to use; all there are, if ``None``. The result is the same for any number.
    memory_limit
        Bytes to use at most, counted as 24 a cell: 4 GiB, or 178 million cells, unless given.
    progress
        Called after every sweep with its number, from 1, and the disagreement over the total.

    Returns
    -------
    list of Measurement
        In the same order, with the same cliques and sigmas, and values in float64.

    Examples
    --------
    >>> pair = Measurement(("sex", "smokes"), np.array([[30, 22], [41, -3]]), sigma=4.0)
    >>> single = Measurement(("sex",), np.array([50, 43]), sigma=1.0)
    >>> for table in project([pair, single], {"sex": 2, "smokes": 2}):
    ...     print(table.clique, table.values.round(2).tolist())
    ('sex', 'smokes') [[29.02, 21.02], [42.87, 0.0]]
    ('sex',) [50.04, 42.87]
    """
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    _check_parameters(total, nonnegativity, tolerance, max_sweeps, memory_limit)
    measured = list(measurements)
    if not measured:
        raise DomainError("there is nothing to project: give at least one measurement")
    used = {name for measurement in measured for name in domain.check(measurement.clique)}
    attributes = [name for name in domain if name in used]
    position = {name: i for i, name in enumerate(attributes)}
    state = _core.Projection(
        attributes,
        [domain[name] for name in attributes],
        [[position[name] for name in measurement.clique] for measurement in measured],
        [_values(measurement, domain) for measurement in measured],
        [_sigma(measurement) for measurement in measured],
        nonnegativity,
        memory_limit,
        None if total is None else float(total),
        threads_or_all(threads),
    )
    error = float("inf")
    sweep = 0
    while error > tolerance and sweep < max_sweeps:
        sweep += 1
        error = state.sweep()
        if progress is not None:
            progress(sweep, error)
    if error > tolerance:
        warnings.warn(
            f"after {sweep} sweeps tables still disagree by {error:.2g} of the total, more than the tolerance of "
            f"{tolerance:g}; allow more sweeps (max_sweeps) or a larger tolerance",
            RuntimeWarning,
            stacklevel=2,
        )
    return [
        replace(measurement, values=table.reshape(domain.shape(measurement.clique)))
        for measurement, table in zip(measured, state.tables(), strict=True)
    ]


def onto_simplex(values: npt.ArrayLike, total: float) -> npt.NDArray[np.float64]:
    """Return the nearest values, in squares, that are not negative and add up to `total`.

    All cells that stay above zero are lowered, or raised, by one amount: norm-sub of [P] section 4.3.
    """
    flat = np.asarray(values, dtype=np.float64)
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, flat.size + 1)
    kept = np.flatnonzero(falling > excess)
    shift = excess[kept[-1]] if kept.size else excess[0]
    nearest: npt.NDArray[np.float64] = np.maximum(flat - shift, 0.0)
    return nearest


def _check_parameters(
    total: float | None, nonnegativity: str, tolerance: float, max_sweeps: int, memory_limit: int
) -> None:
    if nonnegativity not in get_args(Nonnegativity):
        ways = ", ".join(map(repr, get_args(Nonnegativity)))
        raise ParameterError(f"nonnegativity must be one of {ways}, not {nonnegativity!r}")
    if total is not None and not 0 <= float(total) <= LARGEST_VALUE:
        raise ParameterError(f"total must be None or a number from 0 to 2^53, not {total!r}")
    if not (isfinite(tolerance) and tolerance > 0):
        raise ParameterError(f"tolerance must be a positive number, not {tolerance!r}")
    integer("max_sweeps", max_sweeps, 1)
    memory_bytes(memory_limit)


def _values(measurement: Measurement, domain: Domain) -> npt.NDArray[np.float64]:
    shape = domain.shape(measurement.clique)
    values = np.asarray(measurement.values)
    if measurement.coarsening:
        raise DomainError(f"the measurement of {measurement.clique!r} is in buckets; only descent takes those")
    if values.shape != shape:
        raise DomainError(
            f"the measurement of {measurement.clique!r} has values of shape {values.shape}; the domain says {shape}"
        )
    if not np.issubdtype(values.dtype, np.number) or np.issubdtype(values.dtype, np.complexfloating):
        raise DomainError(f"the measurement of {measurement.clique!r} has values of type {values.dtype}, not numbers")
    flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    if not (np.abs(flat) <= LARGEST_VALUE).all():
        raise DomainError(
            f"the measurement of {measurement.clique!r} has values that are not finite or exceed 2^53; "
            "leave it out or measure again"
        )
    return flat


def _sigma(measurement: Measurement) -> float:
    sigma = float(measurement.sigma)
    if not SIGMAS[0] <= sigma <= SIGMAS[1]:
        raise DomainError(
            f"the measurement of {measurement.clique!r} has sigma {sigma:g}; it must be positive, from "
            f"{SIGMAS[0]:g} to {SIGMAS[1]:g} (for exact values give all measurements the same sigma, such as 1)"
        )
    return sigma
