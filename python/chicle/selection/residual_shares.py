"""How to share a budget among the residuals of a workload, for the least error of its tables: before any data.

With rho_B spent on residual B, the noise of a cell of table A has the variance

    V_A = sum over B in A of c_AB / rho_B,
    c_AB = k^2/2 * product over B of (1 - 1/m_i)^2 * product over A - B of 1/m_i^2

(`chicle.measurements.contrasts`; ResidualPlanner, section 4). Whatever is minimised, the sum of all rho_B is fixed.

- ``"variance"``: the sum of all V_A, each times its number of cells and its weight. Lagrange: rho_B is proportional to
  the root of B's coefficient, sum over A of weight_A n_A c_AB. Closed form.
- ``"error"``: the sum of all standard deviations instead, so the expected L1 error of all tables. The root of V_A is a
  norm of the numbers rho_B^(-1/2), so the sum is convex. Each step minimises the tangent ``V_A / (2 s_A)`` of the roots
  at the last ``s_A = sqrt(V_A)``, which lies above them: the closed form with other weights, and never a worse sum.
- ``"max"``: the largest weighted standard deviation of a cell. Its dual: over all weights that add up to 1, the largest
  minimum of the weighted sum of variances. Weights are multiplied by their own variances until both sides agree.

Cost: O(cliques * 2^order) a step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain
from chicle.errors import ParameterError

__all__ = ["Minimise", "ResidualShares", "residual_shares"]

Floats = npt.NDArray[np.float64]

Minimise: TypeAlias = Literal["error", "variance", "max"]
"""What is to be least over a workload: the sum of L1 errors, the sum of variances, or the largest error of a cell."""

_STEPS = 2_000
_CLOSE = {"error": 1e-9, "max": 1e-3}  # relative: of the sum between two steps, and between the largest and its bound


@dataclass(frozen=True, eq=False)
class ResidualShares:
    """The share of rho of each residual.

    Attributes
    ----------
    shares
        By clique, smallest first; ``()`` is the number of records. They add up to 1.
    tables
        For each clique of the workload, the variance of a cell at a rho of 1 and k = 1.
    """

    shares: Mapping[Clique, float]
    tables: Mapping[Clique, float]


def residual_shares(weights: Mapping[Clique, float], domain: Domain, *, minimise: Minimise = "error") -> ResidualShares:
    """Return the best shares for a workload.

    Parameters
    ----------
    weights
        Cliques in domain order, with weights above 0.
    domain
        The attributes.
    minimise
        What is to be least.

    Examples
    --------
    >>> found = residual_shares({("a", "b"): 1.0}, Domain({"a": 2, "b": 3}), minimise="variance")
    >>> {clique: round(share, 4) for clique, share in found.shares.items()}
    {(): 0.1667, ('a',): 0.1667, ('b',): 0.3333, ('a', 'b'): 0.3333}
    >>> round(found.tables["a", "b"], 9)  # for one table it is what the table itself has: 1 / (2 rho)
    0.5
    """
    if minimise not in get_args(Minimise):
        raise ParameterError(f"minimise must be one of {get_args(Minimise)}, not {minimise!r}")
    problem = _Problem.of(list(weights), domain)
    given = np.array(list(weights.values()), dtype=np.float64)
    given /= given.max()
    loads = given * problem.cells
    if minimise == "error":
        shares = _least_error(problem, loads)
    elif minimise == "max":
        shares = _least_largest(problem, given**2)
    else:
        shares = problem.best(loads)
    variances = dict(zip(weights, problem.variances(shares).tolist(), strict=True))
    return ResidualShares(dict(zip(problem.residuals, shares.tolist(), strict=True)), variances)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The coefficients of all pairs of a table and a residual in it."""

    residuals: list[Clique]
    cells: Floats
    table: npt.NDArray[np.intp]
    residual: npt.NDArray[np.intp]
    coefficient: Floats

    @classmethod
    def of(cls, cliques: list[Clique], domain: Domain) -> _Problem:
        places: dict[Clique, int] = {(): 0}
        found: list[tuple[int, int, float]] = []
        for i, clique in enumerate(cliques):
            varying = [name for name in clique if domain[name] > 1]
            for size in range(len(varying) + 1):
                for part in combinations(varying, size):
                    at = places.setdefault(part, len(places))
                    inside = math.prod((1 - 1 / domain[name]) ** 2 for name in part)
                    outside = domain.cells(clique) / domain.cells(part)
                    found.append((i, at, inside / outside**2 / 2))
        table, residual, coefficient = zip(*found, strict=True)
        order = sorted(places, key=lambda clique: (len(clique), [domain.position(name) for name in clique]))
        rank = np.empty(len(places), dtype=np.intp)
        rank[[places[clique] for clique in order]] = np.arange(len(order))
        cells = np.array([float(domain.cells(clique)) for clique in cliques])
        return cls(order, cells, np.array(table), rank[np.array(residual)], np.array(coefficient))

    def best(self, loads: Floats) -> Floats:
        """Return the shares that minimise the sum of variances times `loads`: the closed form."""
        roots = np.sqrt(np.bincount(self.residual, loads[self.table] * self.coefficient, len(self.residuals)))
        shares: Floats = roots / roots.sum()
        return shares

    def variances(self, shares: Floats) -> Floats:
        """Return the variance of a cell of each table at a rho of 1."""
        parts: Floats = self.coefficient / shares[self.residual]
        return np.asarray(np.bincount(self.table, parts, self.cells.size), dtype=np.float64)


def _least_error(problem: _Problem, loads: Floats) -> Floats:
    shares, before = problem.best(loads), math.inf
    for _ in range(_STEPS):
        deviations = np.sqrt(problem.variances(shares))
        error = float(loads @ deviations)
        if before - error <= _CLOSE["error"] * error:
            break
        before, shares = error, problem.best(loads / deviations)
    return shares


def _least_largest(problem: _Problem, scales: Floats) -> Floats:
    dual = scales / scales.size
    for _ in range(_STEPS):
        shares = problem.best(dual)
        variances = problem.variances(shares)
        # The minimum for any weights is a bound from below; the largest variance is one from above.
        bound, largest = float(dual @ variances), float((scales * variances).max())
        if largest <= bound * (1 + _CLOSE["max"]):
            break
        dual = dual * scales * variances / bound
    return shares
