"""From private records to noisy marginals: the only way, and it goes through the ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.counting.counter import MEMORY_LIMIT, count
from chicle.counting.records import Codes, Countable, Recoded, code_dtype
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, PrivacyError
from chicle.privacy.budget import real
from chicle.privacy.ledger import GaussianEvent, Ledger
from chicle.privacy.mechanisms import release_gaussian

__all__ = [
    "Coarsening",
    "Measurement",
    "best_one_ways",
    "check_coarsening",
    "estimate_total",
    "in_buckets",
    "measure",
    "total_sigma",
]

Coarsening: TypeAlias = Mapping[str, npt.ArrayLike]
"""Attributes seen in buckets: for each of them the bucket of each of its codes, from 0 on."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """The noisy counts of one clique: safe to keep, to save and to publish.

    Attributes
    ----------
    clique
        Names of the attributes; the axes of `values` are in their order.
    values
        Integer counts plus noise, or what was made of them; they may be negative.
    sigma
        Standard deviation of the noise on each cell, before rounding.
    private
        False if the noise came from a test's seed: then it protects nobody, and the values must not be published.
    coarsening
        Attributes of the clique that were counted in buckets; their axes have a cell for each bucket.
    """

    clique: Clique
    values: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    sigma: float
    private: bool = True
    coarsening: Coarsening = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.asarray(self.values).view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "clique", tuple(self.clique))
        object.__setattr__(self, "coarsening", MappingProxyType(dict(self.coarsening)))

    def __reduce__(self) -> tuple[type[Measurement], tuple[object, ...]]:
        return type(self), (self.clique, self.values, self.sigma, self.private, dict(self.coarsening))


def measure(
    records: Countable,
    cliques: Iterable[Iterable[str]],
    sigmas: float | Sequence[float],
    ledger: Ledger,
    *,
    purpose: str = "marginal",
    coarsening: Sequence[Coarsening] | None = None,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> list[Measurement]:
    """Release the marginals of cliques with exactly rounded Gaussian noise; each costs ``k^2 / (2 sigma^2)`` of rho.

    Neighbours: add or remove one person, who has at most ``k = records.max_records_per_person`` rows.
    Sensitivity: those rows may share one cell, so the counts of a clique move by at most k in L2 (not sqrt k), at any
    resolution: buckets are public, and every row is in one cell.

    All cliques are paid for together or not at all; if anything fails before noise is drawn, nothing is spent.

    Parameters
    ----------
    records
        The private records.
    cliques
        What to measure; ``()`` is the number of records.
    sigmas
        Standard deviation of the noise, for all cliques or for each (see `chicle.privacy.calibrate`).
    ledger
        What pays.
    purpose
        What the ledger calls these releases.
    coarsening
        For each clique, which of its attributes to count in buckets. The buckets must be public.
    threads, memory_limit
        As for `chicle.count`.
    """
    if not isinstance(ledger, Ledger):
        raise PrivacyError(f"a release is paid for by a chicle.Ledger, not a {type(ledger).__name__}")
    named = [records.domain.check(clique) for clique in cliques]
    if isinstance(sigmas, (str, bytes)) or np.ndim(sigmas) > 1:
        raise PrivacyError("sigmas must be a number, or one for each clique")
    each = [real("sigma", sigma) for sigma in (np.atleast_1d(sigmas) if np.ndim(sigmas) else [sigmas] * len(named))]
    if len(each) != len(named):
        raise PrivacyError(f"{len(named)} cliques need one sigma, or as many as there are cliques; got {len(each)}")
    maps: list[Coarsening] = [{}] * len(named) if coarsening is None else [coarse or {} for coarse in coarsening]
    if len(maps) != len(named):
        raise DomainError(f"coarsening needs an entry for each of the {len(named)} cliques, not {len(maps)}")
    buckets = [check_coarsening(clique, coarse, records.domain) for clique, coarse in zip(named, maps, strict=True)]
    seen, counted = in_buckets(records, named, buckets)
    events = [
        GaussianEvent(
            purpose=purpose,
            clique=clique,
            l2_sensitivity=records.max_records_per_person,
            sigma=sigma,
            values=seen.domain.cells(cells),
        )
        for clique, cells, sigma in zip(named, counted, each, strict=True)
    ]
    ledger.check(events)
    marginals = count(seen, counted, threads, memory_limit=memory_limit)
    noisy = release_gaussian(marginals, events, ledger)
    return [
        Measurement(clique, values, sigma, ledger.private, coarse)
        for clique, values, sigma, coarse in zip(named, noisy, each, buckets, strict=True)
    ]


def check_coarsening(clique: Clique, coarsening: Coarsening, domain: Domain) -> dict[str, npt.NDArray[np.uint32]]:
    """Return the buckets of each code as arrays; what does not fit the clique and the domain is refused by name."""
    checked = {}
    for name, given in coarsening.items():
        if name not in clique:
            raise DomainError(f"coarsening of {name!r}: the measurement of {clique!r} has no such attribute")
        buckets = np.asarray(given)
        if buckets.dtype.kind not in "iu" or buckets.shape != (domain[name],) or buckets.min() < 0:
            raise DomainError(
                f"coarsening of {name!r} must have one bucket, an integer from 0 on, for each of its "
                f"{domain[name]} codes"
            )
        if buckets.max() >= 2**32:
            raise DomainError(f"coarsening of {name!r} has a bucket of 2^32 or more; number buckets from 0 on")
        checked[name] = np.ascontiguousarray(buckets, dtype=np.uint32)
    return checked


def in_buckets(
    records: Countable, cliques: Sequence[Clique], coarsening: Sequence[Mapping[str, npt.NDArray[np.uint32]]]
) -> tuple[Countable, list[Clique]]:
    """Return rows with an attribute for each as some clique sees it, and the cliques in these attributes."""
    if not any(coarsening):
        return records, list(cliques)
    columns: dict[str, tuple[str, Codes | None]] = {name: (name, None) for name in records.domain}
    domain = dict(records.domain)
    made: dict[tuple[str, bytes], str] = {}
    for coarse in coarsening:
        for name, buckets in coarse.items():
            if (name, buckets.tobytes()) in made:
                continue
            size = int(buckets.max()) + 1
            column = f"{name} in {size} buckets"
            while column in domain:
                column += "'"
            made[name, buckets.tobytes()] = column
            columns[column] = (name, buckets.astype(code_dtype(size)))
            domain[column] = size
    seen = [
        tuple(made[name, coarse[name].tobytes()] if name in coarse else name for name in clique)
        for clique, coarse in zip(cliques, coarsening, strict=True)
    ]
    return Recoded(records, columns, Domain(domain)), seen


def estimate_total(measurements: Sequence[Measurement]) -> int:
    """Return the number of records that the measurements tell of: the inverse-variance mean of their totals.

    The number of records is private; this is the public estimate of it, free of further cost.
    """
    if not measurements:
        raise PrivacyError("the number of records is estimated from measurements; there are none")
    totals = [float(measurement.values.sum()) for measurement in measurements]
    weights = [1 / (measurement.values.size * measurement.sigma**2) for measurement in measurements]
    return max(0, round(float(np.average(totals, weights=weights))))


def total_sigma(measurements: Sequence[Measurement]) -> float:
    """Return the standard deviation of the noise in `estimate_total`.

    Examples
    --------
    >>> total_sigma([Measurement(("sex",), np.array([40, 60]), sigma=5.0)])  # of two cells
    7.0710678118654755
    """
    precision = math.fsum(1 / (measurement.values.size * measurement.sigma**2) for measurement in measurements)
    return math.sqrt(1 / precision)


def best_one_ways(measurements: Sequence[Measurement], domain: Mapping[str, int]) -> dict[str, Measurement]:
    """Return the most precise measurement of each single attribute, in domain order, once it fits the domain."""
    best: dict[str, Measurement] = {}
    for measurement in measurements:
        if len(measurement.clique) == 1 and not measurement.coarsening:
            (name,) = measurement.clique
            if name not in best or measurement.sigma < best[name].sigma:
                best[name] = measurement
    for name, cardinality in domain.items():
        if name not in best:
            raise DomainError(f"attribute {name!r} has no 1-way measurement; measure ({name!r},) too")
        if best[name].values.shape != (cardinality,):
            raise DomainError(f"the measurement of {name!r} has another number of cells than the domain says")
        if not np.isfinite(best[name].values).all():
            raise DomainError(f"the measurement of {name!r} has values that are not finite; leave it out")
        if not 0 < best[name].sigma < np.inf:
            raise DomainError(f"the measurement of {name!r} must have a finite sigma above 0")
    return {name: best[name] for name in domain}
