"""Private rows that can be counted exactly: the interface that measuring and selecting use.

`count` is the one abstract operation: rows in memory (`Records`), rows that are read again for each pass (`Passes`) and
rows on other machines differ only in it. Every recoding of attributes is a view, and views compose.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, memory_bytes, threads_or_all
from chicle.domain import Clique, Domain
from chicle.errors import DomainError
from chicle.query import Maps, Query, QueryLike, as_query

__all__ = ["UNITS", "Cached", "Countable", "Expect", "Independence", "Part", "View", "flat_expected", "groups"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

Expect: TypeAlias = Callable[[Sequence[QueryLike]], Sequence[Floats]]
"""Returns the expected answer to each query, from public values alone: tables without negative counts."""

UNITS: int = _core.INDIF_UNITS
"""Distances are integers in units of ``1 / UNITS`` record."""

_PASS_BYTES = 2**28  # of tables counted in one pass, where rows are not in memory
_KEPT_BYTES = 2**29  # of counts that are kept for later
_AT_ONCE = 2**24  # cells compared at a time


@dataclass(frozen=True, eq=False)
class Independence:
    """The expected counts of independent attributes: an `Expect` that has fused kernels.

    Attributes
    ----------
    shares
        For each attribute the public shares of its values.
    total
        The public estimate of the number of records.

    Examples
    --------
    >>> expect = Independence({"age": np.array([0.5, 0.5]), "sex": np.array([0.4, 0.6])}, 100.0)
    >>> expect([("age", "sex")])[0]
    array([[20., 30.],
           [20., 30.]])
    """

    shares: Mapping[str, Floats]
    total: float

    def __call__(self, queries: Sequence[QueryLike]) -> list[Floats]:
        """Return the product of the shares, times the total."""
        return [self._table(asked) for asked in queries]

    def _table(self, asked: QueryLike) -> Floats:
        query = as_query(asked)
        axes = [
            self.shares[name]
            if name not in query.buckets
            else np.bincount(query.buckets[name], weights=self.shares[name])
            for name in query.clique
        ]
        table: Floats = np.array(self.total)
        for name, code in query.where.items():
            table = table * self.shares[name][code]
        for axis in axes:
            table = np.multiply.outer(table, axis)
        return table


class Countable(ABC):
    """Private rows that can be counted."""

    __slots__ = ()

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The attributes and their cardinalities."""

    @property
    @abstractmethod
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""

    @abstractmethod
    def count(
        self, queries: Sequence[QueryLike], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> list[Ints]:
        """Return the exact answer to each query, in its shape.

        Parameters
        ----------
        queries
            Queries, or cliques, of any number of attributes.
        threads
            How many threads to use; all there are, if ``None``. The counts do not depend on it.
        memory_limit
            The most bytes that all counts may take; above it, an `InfeasibleError` gives the size.
        """

    def distances(
        self,
        queries: Sequence[QueryLike],
        expect: Expect,
        *,
        threads: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> Ints:
        """Return the exact L1 distance of each answer from the expected one, in units of ``1 / UNITS`` record.

        Parameters
        ----------
        queries
            Queries without a functional, or cliques.
        expect
            Returns the expected answers, from public values alone.
        threads, memory_limit
            As for `count`; the limit holds for each table alone.
        """
        threads, limit = threads_or_all(threads), max(memory_bytes(memory_limit), 2 * _PASS_BYTES)
        found = [np.empty(0, dtype=np.int64)]
        for group in groups(queries, self.domain, _PASS_BYTES // 8):
            number, *tables = self.count([(), *group], threads=threads, memory_limit=limit)
            found.append(_distances_of(tables, group, int(number), expect, domain=self.domain, threads=threads))
        return np.concatenate(found)

    def dependence(
        self, pairs: Sequence[Clique], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> Ints:
        """Return the exact L1 distance of each pair from the product of its own exact margins, in units."""
        threads, limit = threads_or_all(threads), max(memory_bytes(memory_limit), 2 * _PASS_BYTES)
        found = [np.empty(0, dtype=np.int64)]
        for group in groups(pairs, self.domain, _PASS_BYTES // 8):
            number, *tables = self.count([(), *group], threads=threads, memory_limit=limit)
            found.append(_indif(tables, group, int(number), None, domain=self.domain, threads=threads))
        return np.concatenate(found)

    def view(self, maps: Maps, domain: Domain) -> Countable:
        """Return the same rows with new attributes, each made from one of these by a public map of codes.

        Parameters
        ----------
        maps
            For each new attribute the old one, and the new code of each old code, or None if codes stay the same.
        domain
            The new attributes.
        """
        return View(self, maps, domain)

    def parts(self, names: Clique) -> Sequence[Countable]:
        """Return the rows of each joint value of some attributes, without these: groups that share no row.

        Parameters
        ----------
        names
            The attributes; groups are in the order of their codes, that of the last one changing fastest.
        """
        shape = self.domain.shape(names)
        return [Part(self, dict(zip(names, codes, strict=True))) for codes in np.ndindex(shape)]


class Part(Countable):
    """The rows of one group, without the attributes that form it.

    Parameters
    ----------
    base
        The rows.
    where
        The code of each attribute that forms the group.
    """

    __slots__ = ("_base", "_domain", "_where")

    def __init__(self, base: Countable, where: Mapping[str, int]) -> None:
        self._base, self._where = base, dict(where)
        self._domain = Domain({name: size for name, size in base.domain.items() if name not in where})

    @property
    def domain(self) -> Domain:
        """The attributes that do not form the group."""
        return self._domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._base.max_records_per_person

    def count(
        self, queries: Sequence[QueryLike], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> list[Ints]:
        """Count the rows of the group."""
        asked = [as_query(one).checked(self._domain) for one in queries]
        inside = [Query(one.clique, one.buckets, {**self._where, **one.where}, one.functional) for one in asked]
        return self._base.count(inside, threads=threads, memory_limit=memory_limit)

    def __repr__(self) -> str:
        return f"Part of rows over {self._domain!r}"


class View(Countable):
    """Rows seen through maps of codes: a query of the view is a query of the rows behind it.

    Parameters
    ----------
    base
        The rows.
    maps, domain
        As for `Countable.view`.
    """

    __slots__ = ("_base", "_domain", "_maps")

    def __init__(self, base: Countable, maps: Maps, domain: Domain) -> None:
        self._base, self._maps, self._domain = base, dict(maps), domain

    @property
    def domain(self) -> Domain:
        """The attributes of the view."""
        return self._domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._base.max_records_per_person

    def count(
        self, queries: Sequence[QueryLike], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> list[Ints]:
        """Count the rows behind the view."""
        asked = [as_query(one).checked(self._domain) for one in queries]
        # A group of the view may be several codes of the rows behind, so it is cut out of the table that holds it.
        wholes = [Query((*query.where, *query.clique), query.buckets) for query in asked]
        behind = [whole.through(self._maps) for whole in wholes]
        tables = self._base.count(behind, threads=threads, memory_limit=memory_limit)
        answers = []
        for query, whole, table in zip(asked, wholes, tables, strict=True):
            # Codes that no old code maps to have no rows; where they come last, the table behind is shorter.
            cut = np.asarray(_padded(table, whole, self._domain)[tuple(query.where.values())])
            answers.append(cut if query.functional is None else query.functional(cut))
        return answers

    def view(self, maps: Maps, domain: Domain) -> View:
        """Return a view of the same rows, with both maps composed."""
        both: dict[str, tuple[str, npt.NDArray[np.uint32] | None]] = {}
        for name, (middle, codes) in maps.items():
            old, before = self._maps[middle]
            both[name] = (old, before if codes is None else codes if before is None else codes[before])
        return View(self._base, both, domain)

    def __repr__(self) -> str:
        return f"View of rows as {self._domain!r}"


class Cached(Countable):
    """Rows with a cache of counts that are needed again and again, as far as there is room. Private.

    Parameters
    ----------
    base
        The rows.
    room
        The most bytes that all kept counts may take.
    """

    __slots__ = ("_base", "_kept", "_room")

    def __init__(self, base: Countable, room: int = _KEPT_BYTES) -> None:
        self._base = base
        self._room = memory_bytes(room)
        self._kept: dict[Clique, Ints] = {}

    @property
    def domain(self) -> Domain:
        """The attributes of the rows."""
        return self._base.domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._base.max_records_per_person

    @property
    def kept(self) -> frozenset[Clique]:
        """The cliques whose counts are kept."""
        return frozenset(self._kept)

    def keep(self, cliques: Sequence[Clique], *, threads: int | None = None) -> Cached:
        """Count further cliques and keep the counts, the smallest first, as far as there is room; return self."""
        fresh = []
        for clique in sorted({*cliques} - self._kept.keys(), key=self.domain.cells):
            if (size := 8 * self.domain.cells(clique)) > self._room:
                break
            self._room -= size
            fresh.append(clique)
        tables = self._base.count(fresh, threads=threads)
        for table in tables:
            table.flags.writeable = False
        self._kept.update(zip(fresh, tables, strict=True))
        return self

    def count(
        self, queries: Sequence[QueryLike], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> list[Ints]:
        """Return the kept counts, and count the others."""
        found = {i: table for i, asked in enumerate(queries) if (table := self._known(asked)) is not None}
        rest = [i for i in range(len(queries)) if i not in found]
        if rest:
            counted = self._base.count([queries[i] for i in rest], threads=threads, memory_limit=memory_limit)
            found.update(zip(rest, counted, strict=True))
        return [found[i] for i in range(len(queries))]

    def distances(
        self,
        queries: Sequence[QueryLike],
        expect: Expect,
        *,
        threads: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> Ints:
        """Compare the kept counts here, and let the rows compare the others."""
        threads = threads_or_all(threads)
        result = np.empty(len(queries), dtype=np.int64)
        known = [self._known(asked) for asked in queries]
        kept = [i for i, table in enumerate(known) if table is not None]
        (number,) = self._base.count([()], threads=threads)
        for group in groups([queries[i] for i in kept], self.domain, _AT_ONCE):
            places, kept = kept[: len(group)], kept[len(group) :]
            tables = [table for i in places if (table := known[i]) is not None]
            result[places] = _distances_of(tables, group, int(number), expect, domain=self.domain, threads=threads)
        if rest := [i for i, table in enumerate(known) if table is None]:
            others = [queries[i] for i in rest]
            result[rest] = self._base.distances(others, expect, threads=threads, memory_limit=memory_limit)
        return result

    def view(self, maps: Maps, domain: Domain) -> Countable:
        """Return a view of the rows, without the kept counts."""
        return self._base.view(maps, domain)

    def _known(self, asked: QueryLike) -> Ints | None:
        if type(asked) is tuple:
            return self._kept.get(asked)
        query = as_query(asked)
        return self._kept.get(query.clique) if query.plain else None

    def __repr__(self) -> str:
        return f"{self._base!r}, with counts"


def _cells(asked: QueryLike, domain: Domain) -> int:
    """Return how many cells are counted to answer a query."""
    if isinstance(asked, tuple):
        return math.prod(map(domain.__getitem__, asked))
    return math.prod((*asked.table_shape(domain), *(domain[name] for name in asked.where)))


def groups(queries: Sequence[QueryLike], domain: Domain, most: int = _AT_ONCE) -> list[list[QueryLike]]:
    """Split queries into groups of at most `most` cells, or of one larger query."""
    groups: list[list[QueryLike]] = []
    room = -1
    for asked in queries:
        cells = _cells(asked, domain)
        if cells > room:
            groups.append([])
            room = most
        groups[-1].append(asked)
        room -= cells
    return groups


def _distances_of(
    tables: Sequence[Ints],
    queries: Sequence[QueryLike],
    number: int,
    expect: Expect,
    *,
    domain: Domain,
    threads: int | None,
) -> Ints:
    """Return the distances of counted tables from the expected ones."""
    if isinstance(expect, Independence) and all(type(asked) is tuple and len(asked) == 2 for asked in queries):
        return _indif(
            tables, [as_query(asked).clique for asked in queries], number, expect, domain=domain, threads=threads
        )
    expected = flat_expected(queries, expect, domain)
    return _core.distances_of_counts([table.reshape(-1) for table in tables], expected, number, threads)


def flat_expected(queries: Sequence[QueryLike], expect: Expect, domain: Domain) -> list[Floats]:
    """Return what is expected of queries as flat tables; a table of another shape than its query is an error."""
    tables = [np.asarray(table, dtype=np.float64) for table in expect(queries)]
    if len(tables) != len(queries):
        raise DomainError(f"{len(queries)} queries need as many expected tables, not {len(tables)}")
    for asked, table in zip(queries, tables, strict=True):
        shape = tuple(map(domain.__getitem__, asked)) if isinstance(asked, tuple) else asked.shape(domain)
        if table.shape != shape:
            raise DomainError(
                f"the expected table of {as_query(asked).clique!r} has shape {table.shape}; each clique needs an "
                f"expected count for each of its cells, {shape}. Over merged values ask the model with merged=True"
            )
    return [np.ascontiguousarray(table).reshape(-1) for table in tables]


def _indif(
    tables: Sequence[Ints],
    pairs: Sequence[QueryLike],
    number: int,
    expect: Independence | None,
    *,
    domain: Domain,
    threads: int | None,
) -> Ints:
    named = [as_query(pair).clique for pair in pairs]
    names = [name for name in domain if any(name in pair for pair in named)]
    place = {name: i for i, name in enumerate(names)}
    shares, total = (None, 0.0) if expect is None else ([expect.shares[name] for name in names], expect.total)
    flat = [table.reshape(-1) for table in tables]
    places = [[(place[name], None) for name in pair] for pair in named]
    return _core.indif_of_counts(flat, [domain[name] for name in names], places, number, shares, total, threads)


def _padded(table: Ints, asked: QueryLike, domain: Domain) -> Ints:
    shape = as_query(asked).shape(domain)
    if table.shape == shape:
        return table
    whole = np.zeros(shape, dtype=np.int64)
    whole[tuple(slice(size) for size in table.shape)] = table
    return whole
