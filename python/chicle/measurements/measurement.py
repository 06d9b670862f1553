"""Measurements: noisy counts, safe to keep, to save and to publish. Everything here is free post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain
from chicle.errors import DomainError, PrivacyError
from chicle.query import Buckets, Functional, Query, check_buckets

__all__ = [
    "Measurement",
    "average_repeats",
    "best_margins",
    "best_one_ways",
    "check_all",
    "estimate_total",
    "onto_simplex",
    "total_sigma",
]

Floats = npt.NDArray[np.float64]

MAX_VALUE = 2.0**53
"""Beyond this a value is no count of records."""

SIGMAS = (1e-60, 1e60)
"""Noise that the kernels can weigh by ``1 / sigma^2``."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """The noisy answer to one query, by default the noisy counts of one clique.

    Attributes
    ----------
    clique
        Names of the attributes; the axes of `values` are in their order.
    values
        Integer counts plus noise, or values computed from them; they may be negative.
    sigma
        Standard deviation of the noise on each cell, before rounding.
    protected
        False if the noise came from a test's seed: then it protects nobody, and the values must not be published.
    buckets
        Attributes of the clique that were counted in buckets; their axes have a cell for each bucket.
    where, functional
        The group of rows that was counted, and what was computed from their table; see `chicle.Query`.
    """

    clique: Clique
    values: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    sigma: float
    protected: bool = True
    buckets: Buckets = field(default_factory=dict)
    where: Mapping[str, int] = field(default_factory=dict)
    functional: Functional | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values).view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "clique", tuple(self.clique))
        object.__setattr__(self, "buckets", MappingProxyType(dict(self.buckets)))
        object.__setattr__(self, "where", MappingProxyType(dict(self.where)))

    def __reduce__(self) -> tuple[type[Measurement], tuple[object, ...]]:
        fields = (self.clique, self.values, self.sigma, self.protected, dict(self.buckets), dict(self.where))
        return type(self), (*fields, self.functional)

    @property
    def query(self) -> Query:
        """What was asked."""
        return Query(self.clique, self.buckets, self.where, self.functional)

    @property
    def whole(self) -> bool:
        """Whether these are counts of all rows: neither of a group, nor of a functional."""
        return not self.where and self.functional is None

    @property
    def floats(self) -> Floats:
        """The values in float64."""
        return np.asarray(self.values, dtype=np.float64)

    def axes(self, places: Mapping[str, int]) -> list[tuple[int, npt.NDArray[np.uint32] | None]]:
        """Return the axes as the kernels take them: the place of each attribute, and its buckets if there are any."""
        return [(places[name], self.buckets.get(name)) for name in self.clique]

    def checked(self, domain: Domain, *, exact: bool = False, buckets: bool = True) -> Measurement:
        """Return the measurement with values in float64; a measurement that does not fit the domain is an error.

        Parameters
        ----------
        domain
            The attributes.
        exact
            Whether sigma may be 0: exact counts.
        buckets
            Whether attributes may be in buckets.
        """
        clique = domain.check(self.clique)
        values = np.asarray(self.values)
        if not self.whole:
            raise DomainError(
                f"the measurement of {clique!r} is of a group or a functional; give whole tables of counts"
            )
        if values.dtype.kind not in "iuf":
            raise DomainError(
                f"the measurement of {clique!r} has dtype {values.dtype}; its values are counts plus noise"
            )
        if self.buckets and not buckets:
            raise DomainError(f"the measurement of {clique!r} is in buckets; only descent takes those")
        seen = check_buckets(clique, self.buckets, domain)
        if values.ndim != len(clique):
            raise DomainError(f"the measurement of {clique!r} has {values.ndim} axes; it needs one for each attribute")
        for name, size in zip(clique, values.shape, strict=True):
            if name not in seen and size != domain[name]:
                raise DomainError(
                    f"the measurement of {clique!r} has another number of cells than the domain says: {size} along "
                    f"{name!r}, which has {domain[name]} values"
                )
            if name in seen and seen[name].max() >= size:
                raise DomainError(
                    f"buckets of {name!r} has a bucket outside 0..{size - 1}, the cells that {clique!r} has along it"
                )
        floats = np.array(values, dtype=np.float64, order="C")
        if not (np.abs(floats) <= MAX_VALUE).all():
            raise DomainError(f"the measurement of {clique!r} has a value that is no finite count; drop or replace it")
        sigma = float(self.sigma)
        if not (SIGMAS[0] <= sigma <= SIGMAS[1] or (exact and sigma == 0)):
            raise DomainError(
                f"the measurement of {clique!r} has sigma {self.sigma!r}; it must be above 0 and finite. For exact "
                "counts give all measurements the same sigma, such as 1"
            )
        return Measurement(clique, floats, sigma, self.protected, seen)

    def margin(self, names: Iterable[str]) -> Measurement:
        """Return the sums over all but some attributes, in their order, with the noise of all cells that are summed.

        Examples
        --------
        >>> pair = Measurement(("age", "sex"), np.array([[40, 20], [10, 30]]), sigma=3.0)
        >>> margin = pair.margin(("sex",))
        >>> margin.values, round(margin.sigma, 3)
        (array([50, 50]), 4.243)
        """
        if not self.whole:
            raise DomainError(f"the measurement of {self.clique!r} is of a group or a functional; it has no margins")
        kept = tuple(names)
        axes = [self.clique.index(name) for name in kept]
        summed = tuple(axis for axis in range(len(self.clique)) if axis not in axes)
        values = self.values.sum(axis=summed)
        if sorted(axes) != axes:
            values = np.transpose(values, np.argsort(np.argsort(axes)))
        sigma = self.sigma * math.sqrt(self.values.size / max(values.size, 1))
        buckets = {name: seen for name, seen in self.buckets.items() if name in kept}
        return Measurement(kept, values, sigma, self.protected, buckets, self.where, self.functional)

    def spread(self, domain: Domain) -> Floats:
        """Return the values over the codes of each attribute: those of a bucket are spread evenly over its codes."""
        table: npt.NDArray[Any] = np.asarray(self.values)
        for axis, name in enumerate(self.clique):
            if name in self.buckets:
                codes = np.asarray(self.buckets[name])
                sizes = np.maximum(np.bincount(codes, minlength=table.shape[axis]), 1)
                shape = [-1 if i == axis else 1 for i in range(table.ndim)]
                table = np.take(table / sizes.reshape(shape), codes, axis=axis)
            if table.shape[axis] != domain[name]:
                raise DomainError(f"the measurement of {self.clique!r} does not fit the domain along {name!r}")
        return np.asarray(table, dtype=np.float64, order="C")

    @staticmethod
    def mean(measurements: Sequence[Measurement]) -> Measurement:
        """Return several measurements of one query as one: their mean by inverse variance.

        Examples
        --------
        >>> both = [Measurement(("a",), np.array([4, 0]), 1.0), Measurement(("a",), np.array([9, 5]), 2.0)]
        >>> mean = Measurement.mean(both)
        >>> mean.values.round(6).tolist(), round(mean.sigma, 3)
        ([5.0, 1.0], 0.894)
        """
        if len({measurement.query.key for measurement in measurements}) != 1:
            raise DomainError("only measurements of the same query have a mean")
        return reduce(_mean_of_two, measurements)


def _mean_of_two(first: Measurement, second: Measurement) -> Measurement:
    weight = second.sigma**2 / (first.sigma**2 + second.sigma**2)
    values = weight * first.values + (1 - weight) * second.values
    protected = first.protected and second.protected
    return replace(first, values=values, sigma=math.sqrt(weight) * first.sigma, protected=protected)


def average_repeats(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return measurements with those of the same query averaged, in the order of their first occurrence.

    Examples
    --------
    >>> first, second = Measurement(("a",), np.array([4, 0]), 1.0), Measurement(("a",), np.array([9, 5]), 2.0)
    >>> [round(one.sigma, 3) for one in average_repeats([first, second])]
    [0.894]
    """
    found: dict[Any, list[Measurement]] = {}
    for measurement in measurements:
        found.setdefault(measurement.query.key, []).append(measurement)
    return [reduce(_mean_of_two, same) for same in found.values()]


def check_all(
    measurements: Iterable[Measurement], domain: Domain, *, exact: bool = False, buckets: bool = True
) -> list[Measurement]:
    """Return measurements that fit the domain, as `Measurement.checked`; there must be at least one."""
    given = [] if isinstance(measurements, Measurement) else list(measurements)
    if isinstance(measurements, Measurement) or not all(isinstance(one, Measurement) for one in given):
        raise DomainError("targets must be a list of Measurements")
    if not given:
        raise DomainError("there are no measurements to make records from; give at least one")
    return [measurement.checked(domain, exact=exact, buckets=buckets) for measurement in given]


def best_margins(measurements: Sequence[Measurement], domain: Domain, order: int) -> dict[Clique, Floats]:
    """Return the most precise margin of every clique of `order` attributes that some measurement holds."""
    best: dict[Clique, tuple[float, Measurement]] = {}
    for measurement in (one for one in measurements if one.whole):
        for names in combinations(domain.clique(measurement.clique), order):
            # The variance of a cell; a bucket counts as many cells as it has codes.
            variance = float(measurement.sigma**2 * measurement.values.size / domain.cells(names))
            if names not in best or variance < best[names][0]:
                best[names] = variance, measurement
    return {names: measurement.margin(names).spread(domain) for names, (_, measurement) in best.items()}


def estimate_total(measurements: Sequence[Measurement]) -> int:
    """Estimate the number of records: the inverse-variance mean of the measurements' totals.

    The number of records is private; this public estimate costs nothing further.
    """
    counts = [measurement for measurement in measurements if measurement.whole]
    if not counts:
        raise PrivacyError("the number of records is estimated from measurements of all rows; there are none")
    totals = [float(measurement.values.sum()) for measurement in counts]
    weights = [1 / (measurement.values.size * measurement.sigma**2) for measurement in counts]
    return max(0, round(float(np.average(totals, weights=weights))))


def total_sigma(measurements: Sequence[Measurement]) -> float:
    """Return the standard deviation of the noise in `estimate_total`.

    Examples
    --------
    >>> total_sigma([Measurement(("sex",), np.array([40, 60]), sigma=5.0)])  # of two cells
    7.0710678118654755
    """
    precision = math.fsum(1 / (one.values.size * one.sigma**2) for one in measurements if one.whole)
    return math.sqrt(1 / precision)


def best_one_ways(measurements: Sequence[Measurement], domain: Mapping[str, int]) -> dict[str, Measurement]:
    """Return the most precise measurement of each single attribute, in domain order; each must fit the domain."""
    domain = Domain.of(domain)
    best: dict[str, Measurement] = {}
    for measurement in measurements:
        if len(measurement.clique) == 1 and measurement.query.plain:
            (name,) = measurement.clique
            if name not in best or measurement.sigma < best[name].sigma:
                best[name] = measurement
    for name in domain:
        if name not in best:
            raise DomainError(f"attribute {name!r} has no 1-way measurement; measure ({name!r},) too")
        best[name].checked(domain)
    return {name: best[name] for name in domain}


def onto_simplex(values: npt.ArrayLike, total: float) -> npt.NDArray[np.float64]:
    """Return the nearest values, in squared distance, that are not negative and add up to `total`.

    All cells that stay above zero are lowered, or raised, by one amount: norm-sub of [P] section 4.3.
    """
    flat = np.asarray(values, dtype=np.float64)
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, flat.size + 1)
    kept = np.flatnonzero(falling > excess)
    shift = excess[kept[-1]] if kept.size else excess[0]
    nearest: npt.NDArray[np.float64] = np.maximum(flat - shift, 0.0)
    return nearest
