"""Scores: how far tables of private counts are from what is expected of them, released with noise.

A score is the L1 distance between the counts ``M`` of a query and a public table ``R``. Scores are integers, in units
of ``1 / UNITS`` record, so exact integer noise can be added. Neighbours differ by one person, who has at most k rows.

**From a public expectation** (`Desk.score`). ``R`` was made from releases alone, rounded to units. It is a constant
with respect to the private records, for any model. Hence for neighbours D, D'

    | |u M - R|_1 - |u M' - R|_1 |  <=  u |M - M'|_1  <=  u k        (u units to a record),

and k rows in a cell that already exceeds R attain it: the sensitivity is exactly k records. With the product of
released 1-ways as the expectation this is InDif ([P] section 4.1) at a sixteenth of the published cost.

**From the pair's own margins** (`Desk.dependence`), InDif as published. The reference is ``a_i b_j / n`` with the exact
margins a, b of the pair and the exact n. Adding a person with margins v, w (adding up to k) to n records moves M by k
in L1, and the reference by

    (a + v)(b + w) / (n + k) - a b / n  =  (a w + v b + v w - k a b / n) / (n + k),

of L1 norm at most ``k (3 n + k) / (n + k)``; in all ``k (4 n + 2 k) / (n + k)``, below 4k. (From n = 0 the score goes
from 0 to at most 2k.) This is Lemma 4 of [P] for k = 1; k equal rows away from n equal ones attain ``4 k n / (n + k)``,
so 4k cannot be improved. The fixed point is ``floor(u score)``; because 4k u is an integer, ``x <= y + 4ku`` implies
``floor(x) <= floor(y) + 4ku``: rounding costs nothing.

A person may move each of K scores by that much, so the vector's L2 sensitivity is sqrt(K) times it: with the published
form the noise has variance 8 K k^2 / rho, which is Theorem 5 of [P].

**Choices** (`Desk.choose`) release which of several queries has a high score, by the exponential mechanism with the
quality score of [A] equation 1, ``w_r (distance - penalty_r)``. Weights w_r are integers in ``1..WEIGHTS``, so scores
are integers too, and one person moves any of them by at most ``max w_r k``. For choices by the largest cell, and of
single cells, see `chicle.measurements.cells`.

Cost: that of counting; each table is scored as soon as it is counted (`rust/core/src/score`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from chicle.counting.countable import UNITS, Independence
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.measurements.measurement import Measurement, best_one_ways, estimate_total, onto_simplex
from chicle.query import QueryLike

__all__ = ["WEIGHTS", "Choice", "Scores", "independence", "vector_sensitivity", "whole_weights"]

WEIGHTS = 256
"""The weight of the query that matters most in a choice."""

# The kernel's sums are exact up to here.
_MAX_TOTAL = 2.0**35


@dataclass(frozen=True, eq=False)
class Scores:
    """How far cliques are from what was expected of them, such as pairs of attributes from independence.

    Attributes
    ----------
    queries
        The queries or cliques that were compared, in the order of `values`; over the merged values where there was a
        merge.
    values
        For each query the L1 distance in records, from 0 to twice their number, plus noise; it may be negative.
    sigma
        Standard deviation of the noise, in records; 0 where there is none.
    protected
        Whether a ledger paid for them with real noise. Selection refuses other scores by default.
    reference
        What they are distances from: ``"released"`` for tables made from releases alone, ``"margins"`` for the product
        of each pair's exact margins, as InDif is published.
    """

    queries: tuple[QueryLike, ...]
    values: npt.NDArray[np.float64]
    sigma: float
    protected: bool
    reference: Literal["released", "margins"] = "released"

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.queries),):
            raise ParameterError(
                f"{len(self.queries)} cliques need as many scores, not an array of {self.values.shape}"
            )
        self.values.flags.writeable = False

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The clique of each query."""
        return tuple(one if isinstance(one, tuple) else one.clique for one in self.queries)

    def highest_first(self) -> list[Clique]:
        """Return the cliques, those of the highest score first."""
        cliques = self.cliques
        return [cliques[i] for i in sorted(range(len(cliques)), key=lambda i: -self.values[i])]

    def __repr__(self) -> str:
        text = f"scores of {len(self.queries):,} cliques, sigma {self.sigma:.4g} records"
        return text.capitalize() if self.protected else f"NOT PRIVATE: {text}"


@dataclass(frozen=True, eq=False)
class Choice:
    """A query that was chosen by the exponential mechanism.

    Attributes
    ----------
    query
        What was chosen: a query, or a clique.
    epsilon
        The epsilon of the exponential mechanism.
    among
        How many candidates there were.
    context
        Public numbers that the candidates of this choice depend on.
    sign
        Of a choice among cells with signs: 1 if more rows than expected were sought, -1 if fewer; otherwise 0.
    """

    query: QueryLike
    epsilon: float
    among: int
    context: Mapping[str, float] = field(default_factory=dict)
    sign: int = 0

    @property
    def clique(self) -> Clique:
        """The attributes that were chosen."""
        return self.query if isinstance(self.query, tuple) else self.query.clique

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", MappingProxyType(dict(self.context)))

    def __reduce__(self) -> tuple[type[Choice], tuple[object, ...]]:
        return type(self), (self.query, self.epsilon, self.among, dict(self.context), self.sign)


def independence(one_ways: Sequence[Measurement], domain: Domain) -> Independence:
    """Return the expected counts of independent attributes, from released 1-ways of every attribute."""
    if not one_ways:
        raise ParameterError("independence needs released 1-ways; measure them first")
    best = best_one_ways(one_ways, domain)
    total = float(estimate_total(list(best.values())))
    if total > _MAX_TOTAL:
        raise ParameterError("the 1-ways add up to more than 2^35 records, the most that scores can be exact for")
    shares = {}
    for name, measurement in best.items():
        # Norm-sub to any total gives shares: the released total, or 1 where noise has left less.
        positive = onto_simplex(measurement.values, max(total, 1.0))
        shares[name] = np.minimum(positive / positive.sum(), 1.0)
    return Independence(shares, total)


def vector_sensitivity(records: int, scores: int) -> int:
    """Return the L2 norm of `scores` numbers of `records` records each, in units, rounded up by exact arithmetic."""
    square = scores * (records * UNITS) ** 2
    return math.isqrt(square - 1) + 1


def whole_weights(weights: Sequence[float]) -> npt.NDArray[np.int64]:
    """Return weights as integers in ``1..WEIGHTS``, the largest as `WEIGHTS`.

    Examples
    --------
    >>> whole_weights([3.0, 1.5, 0.0])
    array([256, 128,   1])
    """
    given = np.asarray(weights, dtype=np.float64)
    most = max(float(given.max()), np.finfo(float).tiny)
    return np.maximum(np.rint(given / most * WEIGHTS), 1).astype(np.int64)
