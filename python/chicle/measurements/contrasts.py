"""Contrasts: what a table says beyond its margins, as integers whose noise is independent.

ResidualPlanner (Xiao, He, Zhang and Kifer, NeurIPS 2023) measures, for each clique B of a workload's downward closure,
its *residual*: the table of B less all that its margins determine. With M_B the counts of B and P_m = I - 11'/m for an
attribute of m values, the residual is P M_B, P the Kronecker product of all P_m. The paper releases it by differences
from the first value (``Sub``), whose noise must be correlated. Here it is released by Helmert's contrasts instead,

    h_j x = x_0 + ... + x_(j-1) - j x_j,                    j = 1 ... m - 1,

and by the Kronecker product H of these over the attributes. Three facts make this exact:

1. H has integer entries, so the contrasts of counts are integers, and ``H x + round(noise) = round(H x + noise)``.
2. The rows of H are orthogonal, and that of j = (j_1, j_2, ...) has squared length D_j, the product of j_i (j_i + 1).
   So ``H' D^-1 H`` is the projection P: contrasts with independent noise of variance ``v D_j`` hold the same as the
   table ``P (M_B + noise)`` with noise of variance v in every cell, and one can be computed from the other.
3. A row of the private table in cell c adds column c of H. Divided by the root of D_j, its squared length is that of
   ``P e_c``: the product of all (1 - 1/m_i), in every cell c. This is less than 1, which is what a whole table costs.

In the unit of the first contrast (all j = 1, so D = 2^r for r attributes) value j has weight ``sqrt(D_j / 2^r) >= 1``
and noise `sigma` times its weight. The vector divided by its weights moves by ``k sqrt(product of 2 (1 - 1/m_i)) >= k``
for a person of k rows: their columns add up, and their sum is longest if all rows lie in one cell.

Residuals of different cliques are orthogonal, so tables that are put together of them agree on all that they share, and
the variance of every answer is a sum over residuals, known exactly. Rounding adds at most 1/12 to a variance of D_j v.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement

__all__ = ["CONTRASTS", "Contrasts", "TablesOfContrasts", "contrast_sensitivity", "contrast_weights", "contrasts_of"]

Floats = npt.NDArray[np.float64]

CONTRASTS = "weighted contrasts"
"""How the purpose of every release of contrasts begins."""

_UP = 1 + 2.0**-48  # rounds a few float operations up by more than their errors
_SPARE = 1e-3  # the least precision that a 1-way gets in `targets`, as a share of its own


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The noisy contrasts of one clique.

    Attributes
    ----------
    clique
        The attributes, at least one.
    values
        Integers: contrasts of counts plus noise; each axis has one value less than its attribute.
    sigma
        Standard deviation of the noise of the first contrast; the others have `sigma` times `contrast_weights`.
    protected
        False if the noise came from a test's seed.
    """

    clique: Clique
    values: npt.NDArray[np.int64]
    sigma: float
    protected: bool = True

    def __post_init__(self) -> None:
        values = np.asarray(self.values).view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "clique", tuple(self.clique))
        if values.ndim != len(self.clique) or not values.ndim:
            raise DomainError(f"the contrasts of {self.clique!r} need an axis for each attribute")

    @property
    def variance(self) -> float:
        """The variance v of the noise that is projected: ``P (M + noise)`` in the header."""
        return float(self.sigma**2 / 2.0 ** len(self.clique))

    def residual(self) -> Floats:
        """Return the table without its margins, ``H' D^-1 values``: each of its margins is 0."""
        return reduce(_lift, range(self.values.ndim), self.values.astype(np.float64))

    def __reduce__(self) -> tuple[type[Contrasts], tuple[object, ...]]:
        return type(self), (self.clique, self.values, self.sigma, self.protected)

    def __repr__(self) -> str:
        mark = "" if self.protected else "NOT PRIVATE: "
        return f"{mark}Contrasts of {' x '.join(self.clique)}: {self.values.size:,} values, sigma {self.sigma:.4g}"


def contrasts_of(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return Helmert's contrasts of integer counts, along every axis; exact.

    Examples
    --------
    >>> contrasts_of(np.array([5, 3, 1]))  # 5 - 3, and 5 + 3 - 2 * 1
    array([2, 6])
    """
    found = np.asarray(counts, dtype=np.int64)
    for axis in range(found.ndim):
        before = np.moveaxis(np.cumsum(found, axis=axis), axis, -1)[..., :-1]
        here = np.moveaxis(found, axis, -1)[..., 1:]
        found = np.moveaxis(before - here * np.arange(1, here.shape[-1] + 1), -1, axis)
    return np.ascontiguousarray(found)


def contrast_weights(shape: Sequence[int]) -> Floats:
    """Return the noise of each contrast of a table, in units of the first; rounded up.

    Examples
    --------
    >>> contrast_weights((3,)).round(3)
    array([1.   , 1.732])
    """
    weights = np.ones(())
    for size in shape:
        places = np.arange(1, size, dtype=np.float64)
        weights = weights[..., None] * np.sqrt(places * (places + 1) / 2)
    return np.asarray(weights * _UP)


def contrast_sensitivity(shape: Sequence[int], k: int) -> float:
    """Return how far k rows move contrasts that are divided by their weights, in L2; rounded up.

    Examples
    --------
    >>> contrast_sensitivity((2, 2), k=1), round(contrast_sensitivity((4,), k=1) ** 2, 9)
    (1.0, 1.5)
    """
    square = math.prod(2 * (size - 1) / size for size in shape)
    return float(k) if square == 1 else k * math.sqrt(square) * _UP


class TablesOfContrasts:
    """Tables that are put together of residuals: they agree with each other, and every variance is known.

    Parameters
    ----------
    contrasts
        Of a downward closed set of cliques; cliques with an attribute of one value have none.
    total
        The measurement of ``()``, the number of records.
    domain
        The attributes.
    """

    def __init__(self, contrasts: Iterable[Contrasts], total: Measurement, domain: Domain) -> None:
        self._of = {one.clique: one for one in contrasts}
        self._total, self._domain = total, domain
        self._residuals: dict[Clique, Floats] = {}

    @property
    def cliques(self) -> list[Clique]:
        """The cliques that were measured, in their order."""
        return list(self._of)

    def holds(self, clique: Clique) -> bool:
        """Whether all residuals of a clique were measured."""
        return all(part in self._of for part in self._parts(clique))

    def values(self, clique: Clique) -> Floats:
        """Return the table of a clique: counts with noise of mean 0."""
        shape = self._domain.shape(clique)
        table = np.full(shape, float(self._total.values) / math.prod(shape))
        for part in self._parts(clique):
            if part not in self._residuals:
                self._residuals[part] = self._of[part].residual()
            spread = tuple(size if name in part else 1 for name, size in zip(clique, shape, strict=True))
            others = math.prod(shape) // math.prod(spread)
            table += self._residuals[part].reshape(spread) / others
        return table

    def variance(self, clique: Clique, cells: Mapping[str, int] | None = None) -> float:
        """Return the variance of the noise in one cell, or in the sum over a block of cells.

        A block has s_i of the m_i values of attribute i. The projection of its indicator on residual B has the squared
        length that is the product of s_i - s_i^2/m_i over B and s_i^2/m_i over the others.

        Parameters
        ----------
        clique
            The attributes.
        cells
            How many values of each attribute the block has; 1 where it is not given.
        """
        sizes = {name: (1 if cells is None else cells.get(name, 1), self._domain[name]) for name in clique}
        found = self._total.sigma**2 * math.prod((s / m) ** 2 for s, m in sizes.values())
        for part in self._parts(clique):
            lengths = (s - s * s / m if name in part else (s / m) ** 2 for name, (s, m) in sizes.items())
            found += self._of[part].variance * math.prod(lengths)
        return found

    def steepest(self, clique: Clique) -> float:
        """Return the largest standard deviation of the noise of a table in any direction (of length 1)."""
        cells = self._domain.cells(clique)
        directions = [self._of[part].variance * self._domain.cells(part) / cells for part in self._parts(clique)]
        return math.sqrt(max([self._total.sigma**2 / cells, *directions]))

    def rounding(self, clique: Clique) -> float:
        """Return the most that rounding of contrasts moves a table in L2: each by a half at most."""
        cells = self._domain.cells(clique)
        found = 0.25 / cells
        for part in self._parts(clique):
            own = self._domain.shape(part)
            found += math.prod(1 - 1 / size for size in own) * math.prod(own) / cells / 4
        return math.sqrt(found)

    def measurement(self, clique: Clique) -> Measurement:
        """Return the table of a clique with the standard deviation of its cells; their noise is not independent."""
        sigma = math.sqrt(self.variance(clique))
        return Measurement(clique, self.values(clique), sigma, self._total.protected)

    def targets(self) -> list[Measurement]:
        """Return tables for a model, with weights that together are those of the contrasts.

        A model takes the cells of a table as independent. A table of A with noise s in every cell knows residual B,
        B in A, with precision ``n_B / (n_A s^2)``, n the numbers of cells. So from the largest cliques down, each table
        gets the precision that its own residual has beyond what the tables above give it; one that needs none is left
        out, except for 1-ways, which models ask for. Values are the same for any weights: all tables agree.
        """
        given: dict[Clique, float] = {}
        found = []
        for clique in sorted([*self._of, *self._constant()], key=len, reverse=True):
            own = 1 / self._of[clique].variance if clique in self._of else 0.0
            left = own - given.get(clique, 0.0)
            if len(clique) == 1:
                left = max(left, _SPARE * (own or 1 / self.variance(clique)))
            elif left <= _SPARE * own:
                continue
            found.append(Measurement(clique, self.values(clique), left**-0.5, self._total.protected))
            for size in range(1, len(clique)):
                for part in combinations(clique, size):
                    share = self._domain.cells(part) / self._domain.cells(clique)
                    given[part] = given.get(part, 0.0) + left * share
        places = {name: i for i, name in enumerate(self._domain)}
        return sorted(found, key=lambda one: (len(one.clique), [places[name] for name in one.clique]))

    def _constant(self) -> list[Clique]:
        """Return the 1-ways of attributes of one value: they have no contrasts."""
        return [(name,) for name, size in self._domain.items() if size == 1]

    def _parts(self, clique: Clique) -> list[Clique]:
        """Return the non-empty subsets of a clique that have contrasts."""
        varying = [name for name in clique if self._domain[name] > 1]
        return [part for size in range(1, len(varying) + 1) for part in combinations(varying, size)]


def _lift(values: Floats, axis: int) -> Floats:
    """Return ``H' D^-1 values`` along one axis: the inverse of the contrasts, with sum 0."""
    moved = np.moveaxis(values, axis, -1)
    places = np.arange(1, moved.shape[-1] + 1, dtype=np.float64)
    scaled = moved / (places * (places + 1))
    nothing = np.zeros((*scaled.shape[:-1], 1))
    # Value i is in contrast i with -i, and in all later ones with 1.
    later = np.concatenate([np.cumsum(scaled[..., ::-1], axis=-1)[..., ::-1], nothing], axis=-1)
    own = np.concatenate([nothing, scaled * places], axis=-1)
    return np.moveaxis(later - own, -1, axis)
