"""Queries as the counting kernels take them: axes by position among the attributes that occur in any of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.query import Query, QueryLike, as_query

__all__ = ["KernelQueries"]

_MAX_AXES = 32  # the limit of numpy before version 2


class KernelQueries:
    """Checked queries, in the form that kernels take.

    Parameters
    ----------
    domain
        The attributes of the rows.
    queries
        Queries, or cliques.

    Attributes
    ----------
    domain
        The attributes of the rows.
    queries
        The checked queries.
    attributes
        The attributes that the queries need, in domain order.
    """

    def __init__(self, domain: Domain, queries: Iterable[QueryLike | Iterable[str]]) -> None:
        if isinstance(queries, str):
            raise DomainError("queries must be a list of tuples of attribute names, not a string")
        self.domain = domain
        self.queries: list[Query | tuple[str, ...]] = [
            asked.checked(domain) if isinstance(asked, Query) else domain.check(asked) for asked in queries
        ]
        # Groups of one table are cut out of it, so it is counted once.
        tables: dict[Any, int] = {}
        self._places: list[int] = []
        self._counted: list[tuple[tuple[str, ...], Any]] = []
        for asked in self.queries:
            clique, buckets = _counted(asked)
            key = (clique, tuple((name, id(buckets[name])) for name in clique if name in buckets))
            if key not in tables:
                tables[key] = len(self._counted)
                self._counted.append((clique, buckets))
            self._places.append(tables[key])
        for clique, _ in self._counted:
            if len(clique) > _MAX_AXES:
                raise DomainError(
                    f"a clique of {len(clique)} attributes is too large; an array has at most {_MAX_AXES} axes"
                )
        used = {name for clique, _ in self._counted for name in clique}
        # The clique () has no attribute, but counting the records still needs a column.
        self.attributes = [name for name in domain if name in used] or list(domain)[:1]

    @property
    def sizes(self) -> list[int]:
        """The number of cells of each table that the kernel counts."""
        return [
            math.prod(int(buckets[name].max()) + 1 if name in buckets else self.domain[name] for name in clique)
            for clique, buckets in self._counted
        ]

    def arguments(self) -> tuple[list[str], list[int], list[list[tuple[int, npt.NDArray[np.uint32] | None]]]]:
        """Return names, cardinalities, and for each query its axes: positions, and buckets if there are any."""
        position = {name: i for i, name in enumerate(self.attributes)}
        cardinalities = [self.domain[name] for name in self.attributes]
        axes = [[(position[name], buckets.get(name)) for name in clique] for clique, buckets in self._counted]
        return self.attributes, cardinalities, axes

    def answers(self, tables: Sequence[npt.NDArray[np.int64]]) -> list[npt.NDArray[np.int64]]:
        """Return the answers to the queries from the flat tables that the kernel counted."""
        return [self._answer(asked, tables[place]) for asked, place in zip(self.queries, self._places, strict=True)]

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelQueries, (self.domain, self.queries)

    def _answer(self, asked: QueryLike, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if isinstance(asked, tuple):
            return table.reshape(self.domain.shape(asked))
        groups = [self.domain[name] for name in asked.where]
        table = np.asarray(table.reshape((*groups, *asked.table_shape(self.domain)))[tuple(asked.where.values())])
        return table if asked.functional is None else asked.functional(table)


def _counted(asked: Query | tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    """Return the clique that is counted for a query, and the buckets of its attributes."""
    if isinstance(asked, tuple):
        return asked, {}
    return (*asked.where, *asked.clique), as_query(asked).buckets
