"""Single cells of tables: how far each count is from what is expected of it, and which query a cell is.

A deviation is ``count - expected`` in units of ``1 / UNITS`` record. The expected counts were made from releases alone:
they are constants with respect to the private records, and rounding them to units changes nothing about that. Each of a
person's k rows is in one cell of a table, so for neighbours D, D'

    |deviation(D) - deviation(D')| <= k        (records), for every cell,

and k rows in one cell attain it. The size of a deviation, its negative, and the largest size in a table move no more:
``|max |x| - max |y|| <= max |x - y|``. The exponential mechanism over any of them has sensitivity k, exactly.

Cost: that of counting, and O(cells). Memory: eight bytes for each cell, and the tables of `AT_ONCE` cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from chicle.counting.countable import UNITS, Countable, Expect, flat_expected, groups
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, InfeasibleError, ParameterError
from chicle.query import Query, QueryLike

__all__ = ["Cells", "deviations", "largest"]

Ints = npt.NDArray[np.int64]

MOST_CELLS = 2**27
"""Cells that can be candidates of one choice: a gigabyte of scores."""

_AT_ONCE = 2**22  # cells compared at a time
_MOST_RECORDS = 2.0**35  # expected in one cell: scores are exact up to here


class Cells:
    """The cells of several cliques as single queries, one after another.

    Parameters
    ----------
    cliques
        The cliques, each of them once.
    domain
        The attributes.

    Examples
    --------
    >>> cells = Cells([("a",), ("a", "b")], Domain({"a": 2, "b": 3}))
    >>> len(cells), dict(cells.query(6).where), cells.place(cells.query(6))
    (8, {'a': 1, 'b': 1}, 6)
    """

    def __init__(self, cliques: Sequence[Clique], domain: Domain) -> None:
        self.cliques = [domain.check(clique) for clique in cliques]
        sizes = [domain.cells(clique) for clique in self.cliques]
        if not sum(sizes) <= MOST_CELLS:
            raise InfeasibleError(
                f"the workload has {sum(sizes):.3g} cells; single queries can be chosen among {MOST_CELLS:,} at most. "
                "Give a workload of fewer or smaller cliques, or measure whole tables"
            )
        self._domain = domain
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._of = {frozenset(clique): i for i, clique in enumerate(self.cliques)}
        if len(self._of) < len(self.cliques):
            raise ParameterError("a clique occurs twice among the cells of a choice; give each clique once")

    def __len__(self) -> int:
        return int(self._starts[-1])

    def query(self, place: int) -> Query:
        """Return the query that asks for the number of rows in a cell."""
        i = int(np.searchsorted(self._starts, place, side="right")) - 1
        clique = self.cliques[i]
        codes = np.unravel_index(int(place - self._starts[i]), self._domain.shape(clique))
        return Query((), where={name: int(code) for name, code in zip(clique, codes, strict=True)})

    def place(self, query: Query) -> int:
        """Return the position of a cell, given the query that asks for it."""
        i = self._of.get(frozenset(query.where))
        if i is None:
            raise DomainError(f"the cell {dict(query.where)!r} is in none of the cliques of this choice")
        codes = tuple(query.where[name] for name in self.cliques[i])
        return int(self._starts[i]) + int(np.ravel_multi_index(codes, self._domain.shape(self.cliques[i])))

    def others(self, queries: Collection[Query]) -> Ints:
        """Return the positions of all cells but some."""
        kept = np.ones(len(self), dtype=np.bool_)
        kept[[self.place(query) for query in queries]] = False
        return np.flatnonzero(kept)


def deviations(
    rows: Countable, cliques: Sequence[QueryLike], expect: Expect, *, threads: int | None, memory_limit: int
) -> Ints:
    """Return ``count - expected`` of every cell of some cliques, in units, one clique after another. Private."""
    found = [np.empty(0, dtype=np.int64)]
    tables = _tables(rows, cliques, expect, threads=threads, memory_limit=memory_limit)
    return np.concatenate([*found, *tables])


def largest(
    rows: Countable, queries: Sequence[QueryLike], expect: Expect, *, threads: int | None, memory_limit: int
) -> Ints:
    """Return the size of the largest deviation of each table, in units. Private."""
    tables = _tables(rows, queries, expect, threads=threads, memory_limit=memory_limit)
    return np.array([np.abs(table).max(initial=0) for table in tables], dtype=np.int64)


def _tables(
    rows: Countable, queries: Sequence[QueryLike], expect: Expect, *, threads: int | None, memory_limit: int
) -> Iterator[Ints]:
    for group in groups(queries, rows.domain, _AT_ONCE):
        expected = flat_expected(group, expect, rows.domain)
        counts = rows.count(group, threads=threads, memory_limit=memory_limit)
        for count, table in zip(counts, expected, strict=True):
            if not (table.size == 0 or (table.min() >= 0 and table.max() <= _MOST_RECORDS)):
                raise ParameterError("expected counts must be finite numbers from 0 to 2^35, not negative")
            yield count.reshape(-1) * UNITS - np.rint(table * UNITS).astype(np.int64)
