"""How far public rows are from independence, less what their own sampling explains.

Raked rows have the 1-ways of the release, so what they add is how attributes depend on each other: D = R_pub - R_ind.
With N effective rows each cell of D, in shares, has a variance of about ``R_ind / N``. Divided by ``sqrt(R_ind)``
all cells have the same, and the denoising of noisy pairs (`denoising.low_rank`) applies: what is left of a pair stands
out in directions that all pairs of an attribute share. A larger set is the sum of what its pairs say, and of the rest
shrunk as a whole (James and Stein).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.denoising.low_rank import Deviation, low_rank
from chicle.domain import Clique, Domain
from chicle.measurements.merges import sum_along
from chicle.query import Query

__all__ = ["PublicDeviations"]

Floats = npt.NDArray[np.float64]

_MOST_CELLS = 2**23  # of all pairs; the largest are left out, in which there are few rows a cell
_LEAST = 1e-12


class PublicDeviations:
    """What public rows say of the dependence of their attributes.

    Parameters
    ----------
    tables
        Gives the tables of queries over the rows, in shares.
    effective
        How many rows they count as.
    shares
        The share of each value of each attribute, which the rows have too.
    """

    def __init__(
        self, tables: Callable[[Sequence[Query]], list[Floats]], effective: float, shares: Mapping[str, Floats]
    ) -> None:
        self._tables, self._effective, self._shares = tables, effective, dict(shares)
        domain = Domain({name: given.size for name, given in shares.items()})
        self.pairs = _pairs(domain)
        self._of_pair = dict(zip(self.pairs, self._denoised(), strict=True))

    def independent(self, query: Query) -> Floats:
        """Return the table of a query if attributes were independent, in shares."""
        return np.asarray(reduce(np.multiply.outer, [self._axis(name, query) for name in query.clique]))

    def of(self, queries: Sequence[Query]) -> list[Floats]:
        """Return the deviation of each query from independence, in shares; 0 where nothing stands out."""
        found = [self._of_pairs(query) for query in queries]
        larger = [i for i, query in enumerate(queries) if len(query.clique) > 2]
        for i, table in zip(larger, self._tables([queries[i] for i in larger]) if larger else [], strict=True):
            independent = self.independent(queries[i])
            rest = table - independent - found[i]
            sampled = np.maximum(table, independent).sum() / self._effective
            found[i] = found[i] + max(1 - sampled / max(np.square(rest).sum(), _LEAST), 0.0) * rest
        return found

    def _axis(self, name: str, query: Query) -> Floats:
        buckets = query.buckets.get(name)
        return self._shares[name] if buckets is None else sum_along(self._shares[name], np.asarray(buckets), 0)

    def _denoised(self) -> list[Floats]:
        """Return the denoised deviation of each pair."""
        queries = [Query(pair) for pair in self.pairs]
        roots = [np.sqrt(np.maximum(self.independent(query), _LEAST)) for query in queries]
        sigma = 1 / np.sqrt(self._effective)
        given = [
            Deviation((query.clique[0], query.clique[1]), (table - root**2) / root, sigma)
            for query, table, root in zip(queries, self._tables(queries), roots, strict=True)
        ]
        return [root * kept for root, kept in zip(roots, low_rank(given), strict=True)]

    def _of_pairs(self, query: Query) -> Floats:
        """Return what the pairs of a query say of it: each with the others of its attributes independent."""
        whole = np.zeros([self._axis(name, query).size for name in query.clique])
        for pair in combinations(range(len(query.clique)), 2):
            table = self._pair(query.clique[pair[0]], query.clique[pair[1]])
            if table is None:
                continue
            for axis, place in enumerate(pair):
                buckets = query.buckets.get(query.clique[place])
                table = table if buckets is None else sum_along(table, np.asarray(buckets), axis)
            others = [axis for axis in range(len(query.clique)) if axis not in pair]
            spread = reduce(np.multiply.outer, [table, *(self._axis(query.clique[i], query) for i in others)])
            whole += np.moveaxis(spread, range(whole.ndim), (*pair, *others))
        return whole

    def _pair(self, first: str, second: str) -> Floats | None:
        if (first, second) in self._of_pair:
            return self._of_pair[first, second]
        return self._of_pair[second, first].T if (second, first) in self._of_pair else None


def _pairs(domain: Domain) -> list[Clique]:
    """Return the pairs of several values each, the smallest first, as many as there is room for."""
    several: list[Clique] = [pair for pair in combinations(domain, 2) if min(domain.shape(pair)) > 1]
    several.sort(key=domain.cells)
    cells = np.cumsum([float(domain.cells(pair)) for pair in several])
    return several[: int(np.searchsorted(cells, _MOST_CELLS, side="right"))]
