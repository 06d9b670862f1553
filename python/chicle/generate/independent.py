"""Records whose attributes are independent: each follows its own noisy 1-way marginal. The first baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.measure import Measurement, estimate_total
from chicle.records import Records, code_dtype

__all__ = ["apportion", "independent", "onto_simplex"]


def independent(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    seed: int | None = None,
) -> Records:
    """Draw records that follow the measured 1-way marginals and nothing else.

    Parameters
    ----------
    measurements
        At least one of each single attribute; the most precise one is used, larger cliques only help to estimate `n`.
    domain
        The attributes.
    n
        Number of records; by default the private estimate of it.
    seed
        Fixes the draw; the noise in the measurements is not touched by it.
    """
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    estimate = estimate_total(measurements)
    size = estimate if n is None else integer("n", n, 0)
    rng = np.random.default_rng(None if seed is None else integer("seed", seed, 0))
    best: dict[str, Measurement] = {}
    for measurement in measurements:
        if len(measurement.clique) == 1:
            (name,) = measurement.clique
            if name not in best or measurement.sigma < best[name].sigma:
                best[name] = measurement
    columns = {}
    for name, cardinality in domain.items():
        if name not in best:
            raise DomainError(f"attribute {name!r} has no 1-way measurement; measure ({name!r},) too")
        if best[name].values.shape != (cardinality,):
            raise DomainError(f"the measurement of {name!r} has another number of cells than the domain says")
        counts = apportion(onto_simplex(best[name].values, max(estimate, 1)), size, rng)
        codes = np.repeat(np.arange(cardinality, dtype=code_dtype(cardinality)), counts)
        columns[name] = rng.permutation(codes)
    return Records(columns, domain)


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


def apportion(expected: npt.NDArray[np.float64], total: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Scale to integers that add up to `total`, each right on average (systematic sampling)."""
    if total == 0:
        return np.zeros(expected.size, dtype=np.int64)
    edges = np.concatenate([[0.0], np.cumsum(expected)])
    marks = np.floor(edges * (total / edges[-1]) + rng.random()).astype(np.int64)
    marks[-1] = marks[0] + total
    counts: npt.NDArray[np.int64] = np.diff(np.minimum(marks, marks[-1]))
    return counts
