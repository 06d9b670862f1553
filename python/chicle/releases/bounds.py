"""Bounds on the errors of marginals, from the release alone: safe to publish, and free ([A] section 5).

A clique is *supported* if some measurement holds all its attributes. Sums of its cells are then an estimate without
bias, and where several measurements support it, their mean by inverse variance is a better one ([A] Theorem 2). The
noise of a cell is Gaussian with a known sigma, so the L1 error of the estimate is a sum of half-normals (of exponential
deviates, where it is Laplace). Its quantile is the bound; the Chernoff bound of [A] Theorem 3 for the same sum is about
half as large again.

The error of a synthetic table is at most that bound plus its distance to the estimate ([A] Corollary 1). True counts
are not negative, which tightens it: where the estimate of a cell is below 0, its noise is at least that large.

What is claimed, and what is not:

- Each bound holds by itself with the confidence asked for, not all jointly: for K joint bounds at confidence c, ask for
  1 - (1 - c)/K.
- In buckets (merged values, coarser levels) the bound is on the counts of buckets, at the finest resolution that was
  measured. How a bucket is spread over its values was not measured, and nothing is claimed about it.
- A clique that no measurement supports has a bound only where a release bounds its distance from a public table:
  its own score against released values, in any mechanism, or the choices of AIM as published ([A] Theorem 4 and
  Corollary 2); see `releases.unmeasured`. Otherwise nothing is claimed, and its numbers are NaN.
- The choice of measurements and of their noise may depend on earlier noise. As in [A], sigmas are taken as given;
  simulations test the coverage of the bounds for every mechanism.

Cost: O(cells) for each measurement that supports a clique, and one count of the synthetic table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from chicle._text import percent
from chicle.counting.countable import groups
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, ParameterError
from chicle.measurements.measurement import Measurement, check_all, estimate_total
from chicle.measurements.merges import sum_along
from chicle.query import Buckets, Query

__all__ = ["Distance", "ErrorBound", "count_in_buckets", "error_bounds", "noise_quantile"]

Floats = npt.NDArray[np.float64]
Map = npt.NDArray[np.uint32]

_ROUNDING = 1 / 12
"""The variance that rounding adds to noise."""

_FOR_THE_TOTAL = 0.2
"""The part of the risk that is spent on the number of records."""


@dataclass(frozen=True, eq=False)
class Distance:
    """A bound on the distance of an unmeasured clique's counts from a public table.

    Attributes
    ----------
    clique
        The attributes.
    expected
        The table, in the order of the clique.
    limit
        Returns, for a probability, the L1 distance in records that is exceeded with at most that probability.
    buckets
        The buckets in which attributes are seen.
    """

    clique: Clique
    expected: Floats
    limit: Callable[[float], float]
    buckets: Buckets = field(default_factory=dict)

    def in_order_of(self, clique: Clique) -> Distance:
        """Return the same with the attributes in another order."""
        axes = [self.clique.index(name) for name in clique]
        return replace(self, clique=clique, expected=np.transpose(self.expected, axes))


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorBound:
    """Bounds on the error of one marginal, with some confidence; NaN where nothing is claimed.

    Attributes
    ----------
    clique
        The attributes.
    confidence
        The probability, over the noise, that a bound holds.
    supports
        How many measurements hold the clique.
    estimate
        The estimated counts, in the order of the clique. Without support: the table that was expected when the clique
        was scored, or when others were chosen; None where there is none.
    sigma
        Standard deviation of each cell's noise, in the same shape; None without support.
    buckets
        The buckets in which attributes are seen: bounds are on the counts of buckets.
    estimate_error
        Bound on the L1 distance of the estimate from the true counts, in records.
    table_error
        Bound on the L1 distance of the synthetic table, scaled to the estimated number of records, in records.
    distance
        Bound on the total variation distance between the true and the synthetic marginal: 0 to 1.
    """

    clique: Clique
    confidence: float
    supports: int = 0
    estimate: Floats | None = None
    sigma: Floats | None = None
    buckets: Buckets = field(default_factory=dict)
    estimate_error: float = math.nan
    table_error: float = math.nan
    distance: float = math.nan

    @property
    def supported(self) -> bool:
        """Whether a measurement holds the clique."""
        return self.supports > 0

    @property
    def known(self) -> bool:
        """Whether there is a bound."""
        return self.estimate is not None

    def __repr__(self) -> str:
        of = " x ".join(self.clique) or "total"
        if not self.known:
            return f"{of}: no measurement holds it, so nothing is claimed"
        buckets = ", in buckets" if self.buckets else ""
        table = "" if math.isnan(self.distance) else f"; table: distance at most {self.distance:.4f}"
        sure = percent(self.confidence)
        return f"{of}{buckets}: estimate off by at most {self.estimate_error:,.0f} records (L1, {sure} sure){table}"


def error_bounds(
    measurements: Sequence[Measurement],
    domain: Domain,
    cliques: Iterable[Iterable[str]] | None = None,
    confidence: float = 0.95,
    *,
    synthetic: Records | None = None,
    chosen: Callable[[Sequence[Clique]], Sequence[Distance | None]] | None = None,
    laplace: bool = False,
    threads: int | None = None,
) -> list[ErrorBound]:
    """Return confidence bounds on the errors of marginals, from measurements alone.

    Parameters
    ----------
    measurements
        The measurements as released.
    domain
        The attributes.
    cliques
        What to bound; every attribute and every pair by default.
    confidence
        The probability with which each bound holds.
    synthetic
        A table made from the measurements, or any other, to be bounded too.
    chosen
        Returns the distances of cliques that no measurement supports, as far as they are bounded.
    laplace
        Whether some of the noise is Laplace noise, which has longer tails than Gaussian noise of the same sigma.
    threads
        How many threads to use; all there are, if ``None``.

    Examples
    --------
    >>> ages = Measurement(("age",), np.array([612, 290, 105]), sigma=10.0)
    >>> for bound in error_bounds([ages], Domain({"age": 3, "sex": 2}), [("age",), ("sex",)]):
    ...     print(bound)
    age: estimate off by at most 45 records (L1, 95.0 % sure)
    sex: no measurement holds it, so nothing is claimed
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, not {confidence!r}; 0.95 is usual")
    wanted = [*((name,) for name in domain), *combinations(domain, 2)] if cliques is None else cliques
    named = [domain.check(clique) for clique in wanted]
    targets = check_all(measurements, domain)
    risk = (1 - confidence) * (1 - _FOR_THE_TOTAL)
    holding = {name: {i for i, target in enumerate(targets) if name in target.clique} for name in domain}
    bounds = []
    for clique in named:
        places = set.intersection(*(holding[name] for name in clique)) if clique else range(len(targets))
        bounds.append(_bound_estimate(clique, [targets[i] for i in sorted(places)], confidence, risk, laplace))
    alone = [i for i, bound in enumerate(bounds) if not bound.supported]
    if chosen is not None and alone:
        for i, known in zip(alone, chosen([named[i] for i in alone]), strict=True):
            bounds[i] = bounds[i] if known is None else _bound_known(bounds[i], known, risk)
    if synthetic is None:
        return bounds
    if synthetic.domain != domain:
        raise DomainError(
            "the synthetic records have another domain than the measurements: names, sizes or order differ"
        )
    total = estimate_total(measurements)
    precision = math.fsum(1 / (target.values.size * _variance(target)) for target in targets)
    off = noise_quantile(np.array([precision**-0.5]), (1 - confidence) * _FOR_THE_TOTAL, laplace=laplace)
    asked = [Query(bound.clique, bound.buckets) for bound in bounds if bound.known]
    tables = count_in_buckets(synthetic, asked, threads)
    return [_bound_table(bound, next(tables), total, off) if bound.known else bound for bound in bounds]


def noise_quantile(sigmas: Floats, risk: float, *, laplace: bool = False) -> float:
    """Return the L1 norm that rounded Gaussian noise exceeds with probability `risk` at most.

    By Cornish and Fisher's expansion: in units of sigma a half-normal has mean sqrt(2/pi), variance 1 - 2/pi and third
    cumulant sqrt(2/pi) (4/pi - 1). Half a record is added for rounding. The size of Laplace noise is exponential: mean
    1/sqrt(2), variance 1/2, third cumulant 1/sqrt(2). Sums of it lie between the two, so the larger quantile is taken.

    Examples
    --------
    >>> round(noise_quantile(np.array([10.0]), 0.05) / 10, 1)
    2.0
    >>> round(noise_quantile(np.full(10_000, 10.0), 0.05) / 100_000, 2)
    0.81
    """
    gaussian = math.sqrt(2 / math.pi)
    kinds = [(gaussian, 1 - 2 / math.pi, gaussian * (4 / math.pi - 1))]
    if laplace:
        kinds.append((math.sqrt(0.5), 0.5, math.sqrt(0.5)))
    z = NormalDist().inv_cdf(1 - risk)
    first, second, third = (float((sigmas**power).sum()) for power in (1, 2, 3))
    return 0.5 + max(
        mean * first + math.sqrt(variance * second) * z + skew * third / (variance * second) * (z * z - 1) / 6
        for mean, variance, skew in kinds
    )


def _variance(target: Measurement) -> float:
    return target.sigma**2 + _ROUNDING


def _bound_estimate(
    clique: Clique, targets: Sequence[Measurement], confidence: float, risk: float, laplace: bool
) -> ErrorBound:
    if not targets:
        return ErrorBound(clique=clique, confidence=confidence)
    margins = [_Margin.of(clique, target) for target in targets]
    finest = max(margins, key=lambda margin: (margin.values.size, -margin.variance))
    used = [seen for margin in margins if (seen := margin.in_buckets_of(finest)) is not None]
    precision = np.sum([1 / variances for _, variances in used], axis=0)
    estimate = np.sum([values / variances for values, variances in used], axis=0) / precision
    sigma = precision**-0.5
    return ErrorBound(
        clique=clique,
        confidence=confidence,
        supports=len(used),
        estimate=estimate,
        sigma=sigma,
        buckets={name: codes for name, codes in zip(clique, finest.maps, strict=True) if codes is not None},
        estimate_error=noise_quantile(sigma, risk, laplace=laplace),
    )


def _bound_known(bound: ErrorBound, known: Distance, risk: float) -> ErrorBound:
    """Add the bound of a clique without support ([A] Theorem 4)."""
    return replace(bound, estimate=known.expected, buckets=known.buckets, estimate_error=known.limit(risk))


def _bound_table(bound: ErrorBound, table: npt.NDArray[np.int64], total: int, off: float) -> ErrorBound:
    """Add the bounds of a synthetic table; `off` bounds the error of the estimated total."""
    if bound.estimate is None:
        return bound
    made = table * (total / max(int(table.sum()), 1))
    # A cell that is estimated below 0 has used up that much of the noise; see the header.
    apart = np.where(bound.estimate < 0, made + bound.estimate, np.abs(bound.estimate - made))
    error = max(bound.estimate_error + float(apart.sum()), 0.0)
    distance = min((error + off) / (2 * total), 1.0) if total else 1.0
    return replace(bound, table_error=error, distance=distance)


@dataclass(frozen=True, eq=False)
class _Margin:
    """The sums of one measurement over all but some attributes."""

    values: Floats
    variance: float
    maps: tuple[Map | None, ...]

    @classmethod
    def of(cls, clique: Clique, target: Measurement) -> _Margin:
        margin = target.margin(clique)
        maps = tuple(margin.buckets.get(name) for name in clique)
        variance = _variance(target) * target.values.size / margin.values.size
        # Buckets without a code hold noise alone.
        filled = tuple(slice(None if codes is None else int(codes.max()) + 1) for codes in maps)
        return cls(np.asarray(margin.values, dtype=np.float64)[filled], variance, maps)

    def in_buckets_of(self, other: _Margin) -> tuple[Floats, Floats] | None:
        """Return values and variances in the buckets of another margin; None where they are not unions of these."""
        values, cells = self.values, np.ones(self.values.shape)
        for axis, (mine, wanted) in enumerate(zip(self.maps, other.maps, strict=True)):
            if wanted is None and mine is None:
                continue
            if wanted is None:
                return None
            own = np.arange(wanted.size) if mine is None else mine
            into = np.zeros(values.shape[axis], dtype=np.int64)
            into[own] = wanted
            if (into[own] != wanted).any():
                return None
            size = other.values.shape[axis]
            values, cells = _summed(values, into, axis, size), _summed(cells, into, axis, size)
        return values, self.variance * cells


def _summed(values: Floats, into: npt.NDArray[np.int64], axis: int, size: int) -> Floats:
    """Sum cells along an axis, into `size` cells."""
    summed = sum_along(values, into, axis)
    pad = [(0, size - summed.shape[axis]) if i == axis else (0, 0) for i in range(summed.ndim)]
    return np.asarray(np.pad(summed, pad), dtype=np.float64)


def count_in_buckets(
    records: Records, queries: Sequence[Query], threads: int | None = None
) -> Iterator[npt.NDArray[np.int64]]:
    """Count queries: many at once, but never too many cells.

    Examples
    --------
    >>> records = Records({"age": [2, 0, 2], "sex": [1, 0, 0]}, {"age": 3, "sex": 2})
    >>> list(count_in_buckets(records, [Query(("age",), {"age": np.array([0, 0, 1], np.uint32)})]))
    [array([1, 2])]
    """
    for group in groups(queries, records.domain):
        yield from records.count(group, threads=threads)
