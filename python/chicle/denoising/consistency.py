"""Make noisy tables consistent and non-negative: free post-processing of measurements."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Literal, TypeAlias, get_args

import numpy as np

from chicle import _core
from chicle._checks import MEMORY_LIMIT, integer, memory_bytes, threads_or_all
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.measurements.measurement import MAX_VALUE, Measurement, check_all

__all__ = ["Nonnegativity", "project"]

Nonnegativity: TypeAlias = Literal["least-squares", "norm-sub", "norm-cut", "norm-mul", "base-pos", "none"]
"""How tables become non-negative; see `project`."""


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

    This is [P] section 4.3 with uneven budgets. Where cliques share attributes, their margins are averaged with
    inverse-variance weights and the corrections are spread evenly over the cells, small sets first. That is the exact
    weighted least-squares solution. Non-negativity breaks the agreement, so the two steps alternate until both hold.

    Parameters
    ----------
    measurements
        Noisy tables. Cliques may overlap, contain one another and repeat.
    domain
        The attributes.
    total
        The total of every table; by default the inverse-variance mean of the measured totals, at least zero.
    nonnegativity
        ``"least-squares"``
            Of all tables that agree, are non-negative and have the total, those nearest to the measured ones in squares
            weighted by ``1/sigma**2``: the maximum-likelihood tables. Needs the fewest sweeps.
        ``"norm-sub"``
            The published loop: after every agreement each table is projected onto the non-negative ones of its
            total (all cells lowered by one amount, cut at zero). Ends at valid tables near the nearest ones.
        ``"norm-mul"``
            The loop, with cells cut at zero and scaled to the total.
        ``"norm-cut"``
            The loop, with cells cut at zero and the smallest positive ones dropped until the total is right. Tables
            may never agree: a row whose cells are all dropped loses its corrections again.
        ``"base-pos"``
            The loop, with cells cut at zero; the total is right only once the tables agree.
        ``"none"``
            Negative cells stay; agreement is exact after one sweep.
    tolerance
        Bound on the disagreement: for every clique and every set of attributes that it shares, the absolute differences
        between its margin and the common one add up to at most ``tolerance * max(total, 1)``.
    max_sweeps
        The most sweeps; if tables still disagree by more than the tolerance then, there is a `RuntimeWarning`.
    threads
        How many threads to use; all there are, if ``None``. The result is the same for any number.
    memory_limit
        The most bytes to use, at 24 for each cell; by default 4 GiB, or 178 million cells.
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
    domain = Domain.of(domain)
    _check_parameters(total, nonnegativity, tolerance, max_sweeps, memory_limit)
    measured = check_all(measurements, domain, buckets=False)
    used = {name for measurement in measured for name in measurement.clique}
    attributes = [name for name in domain if name in used]
    position = {name: i for i, name in enumerate(attributes)}
    sigmas = np.array([measurement.sigma for measurement in measured])
    state = _core.Projection(
        attributes,
        [domain[name] for name in attributes],
        [
            (one.axes(position), np.asarray(one.values, dtype=np.float64), float(weight))
            for one, weight in zip(measured, np.square(sigmas.min() / sigmas), strict=True)
        ],
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


def _check_parameters(
    total: float | None, nonnegativity: str, tolerance: float, max_sweeps: int, memory_limit: int
) -> None:
    if nonnegativity not in get_args(Nonnegativity):
        ways = ", ".join(map(repr, get_args(Nonnegativity)))
        raise ParameterError(f"nonnegativity must be one of {ways}, not {nonnegativity!r}")
    if total is not None and not 0 <= float(total) <= MAX_VALUE:
        raise ParameterError(f"total must be None or a number from 0 to 2^53, not {total!r}")
    if not (isfinite(tolerance) and tolerance > 0):
        raise ParameterError(f"tolerance must be a positive number, not {tolerance!r}")
    integer("max_sweeps", max_sweeps, 1)
    memory_bytes(memory_limit)
