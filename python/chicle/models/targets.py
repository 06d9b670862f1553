"""Measurements as the record kernels take them: checked against the domain, and their margins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.domain import Clique, Domain
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement, check_coarsening

__all__ = ["Target", "check_size", "check_targets", "margins"]

MAX_VALUE = 1e15
"""Beyond this a value is no count of records."""

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """A measurement that fits the domain.

    Attributes
    ----------
    clique, values, sigma
        As measured, the values as floats.
    maps
        For each attribute of the clique the bucket of each of its codes, or ``None`` where each code is its own.
    """

    clique: Clique
    values: Floats
    sigma: float
    maps: tuple[npt.NDArray[np.uint32] | None, ...]

    def margin(self, names: Clique, domain: Domain) -> Floats:
        """Return the sums over all but some attributes, spread evenly over the codes of each bucket."""
        kept = [self.clique.index(name) for name in names]
        summed = tuple(axis for axis in range(len(self.clique)) if axis not in kept)
        table = np.transpose(self.values.sum(axis=summed), np.argsort(np.argsort(kept)))
        for axis, name in enumerate(names):
            codes_of = self.maps[kept[axis]]
            if codes_of is not None:
                sizes = np.bincount(codes_of, minlength=table.shape[axis])
                table = np.take(table / _along(np.maximum(sizes, 1), axis, table.ndim), codes_of, axis=axis)
            assert table.shape[axis] == domain[name]  # noqa: S101 - checked with the target
        return np.ascontiguousarray(table, dtype=np.float64)

    def variance(self, names: Clique, domain: Domain) -> float:
        """Return the variance of a cell of that margin, a bucket counting as the codes in it."""
        return float(self.sigma**2 * self.values.size / domain.cells(names))


def check_targets(measurements: Iterable[Measurement], domain: Domain) -> list[Target]:
    """Return measurements as targets; what does not fit the domain is refused by name."""
    given = list(measurements)
    if not given:
        raise DomainError("there are no measurements to make records from; give at least one")
    return [_check(measurement, domain) for measurement in given]


def check_size(n: int | None) -> None:
    """Refuse what is no number of records."""
    if n is not None:
        integer("n", n, 0, 2**31 - 1)


def margins(targets: Sequence[Target], domain: Domain, order: int) -> dict[Clique, Floats]:
    """Return the most precise margin of every clique of `order` attributes that the targets tell of."""
    best: dict[Clique, Target] = {}
    for target in targets:
        for names in combinations(domain.clique(target.clique), order):
            if names not in best or target.variance(names, domain) < best[names].variance(names, domain):
                best[names] = target
    return {names: target.margin(names, domain) for names, target in best.items()}


def _check(measurement: Measurement, domain: Domain) -> Target:
    clique = domain.check(measurement.clique)
    values = np.asarray(measurement.values)
    if values.dtype.kind not in "iuf":
        raise DomainError(f"the measurement of {clique!r} has dtype {values.dtype}; its values are counts plus noise")
    coarse = check_coarsening(clique, measurement.coarsening, domain)
    maps = tuple(coarse.get(name) for name in clique)
    if values.ndim != len(clique):
        raise DomainError(f"the measurement of {clique!r} has {values.ndim} axes; it needs one for each attribute")
    for name, codes_of, size in zip(clique, maps, values.shape, strict=True):
        if codes_of is None and size != domain[name]:
            raise DomainError(
                f"the measurement of {clique!r} has another number of cells than the domain says: {size} along "
                f"{name!r}, which has {domain[name]} values"
            )
        if codes_of is not None and codes_of.max() >= size:
            raise DomainError(
                f"coarsening of {name!r} has a bucket outside 0..{size - 1}, the cells that {clique!r} has along it"
            )
    if not np.isfinite(values).all() or (values.size and np.abs(values.astype(np.float64)).max() > MAX_VALUE):
        raise DomainError(f"the measurement of {clique!r} has a value that is no finite count; drop or replace it")
    if not (np.isfinite(measurement.sigma) and measurement.sigma > 0):
        raise DomainError(
            f"the measurement of {clique!r} has sigma {measurement.sigma!r}; it must be above 0 and finite"
        )
    return Target(clique, np.ascontiguousarray(values, dtype=np.float64), float(measurement.sigma), maps)


def _along(values: npt.NDArray[Any], axis: int, ndim: int) -> npt.NDArray[Any]:
    return values.reshape([-1 if i == axis else 1 for i in range(ndim)])
