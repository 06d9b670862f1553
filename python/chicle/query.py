"""Queries of a table. They are public, like everything that they are made of.

A query has a clique, buckets that make attributes coarser, a group of rows to count, and a functional of the table of
counts. Kernels only count marginals: everything else is computed from one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain
from chicle.errors import DomainError, ParameterError

__all__ = ["Buckets", "Functional", "Maps", "Query", "QueryLike", "as_query", "check_buckets", "one_ways"]

Buckets: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""Attributes seen coarser: for each of them the bucket of each of its codes, integers from 0 on."""

Maps: TypeAlias = Mapping[str, tuple[str, npt.NDArray[Any] | None]]
"""A view: for each new attribute the old one, and the new code of each old code, or None if codes stay the same."""

_MAX_WEIGHT = 2**24  # sums over 2^38 rows stay below 2^62; one that overflowed would move by more than its sensitivity


@dataclass(frozen=True, eq=False)
class Functional:
    """A linear functional of a table of counts: each answer is a weighted sum of its cells.

    Attributes
    ----------
    weights
        Integers of at most 2^24: a row for each answer, then the axes of the table. To ask for fractions, count in
        smaller units.

    Examples
    --------
    >>> difference = Functional(np.array([[1, -1]]))
    >>> difference(np.array([40, 25])), difference.l2_sensitivity(3)
    (array([15]), 3)
    """

    weights: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        if weights.dtype.kind not in "iu" or weights.ndim < 1 or not weights.size:
            raise ParameterError("the weights of a functional must be an array of integers, a row for each answer")
        if weights.size and max(int(weights.max()), -int(weights.min())) > _MAX_WEIGHT:
            raise ParameterError("the weights of a functional must not exceed 2^24: sums of counts could overflow")
        weights = weights.astype(np.int64)
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @property
    def answers(self) -> int:
        """The number of answers."""
        return len(self.weights)

    def __call__(self, table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the answers for a table of counts."""
        answers: npt.NDArray[np.int64] = self.weights.reshape(self.answers, -1) @ table.reshape(-1)
        return answers

    def l2_sensitivity(self, k: int) -> int:
        """Return the L2 sensitivity of the answers to k rows, rounded up.

        A row adds the column of its cell. The norm of a sum is at most the sum of the norms, so k rows in the cell with
        the longest column attain the bound.
        """
        square = int((self.weights.reshape(self.answers, -1).astype(object) ** 2).sum(axis=0).max(initial=0))
        return math.isqrt(max(k * k * square - 1, 0)) + (square > 0)


@dataclass(frozen=True, eq=False)
class Query:
    """A query of a table.

    Attributes
    ----------
    clique
        The attributes; the axes of the answer are in their order. ``()`` asks for the number of records.
    buckets
        Buckets of some attributes of the clique: their axes have a cell for each bucket.
    where
        Attributes with one code each: only rows with these codes are counted. The answer has no axes for them.
    functional
        The functional of the table of counts; ``None`` for the table itself.

    Examples
    --------
    >>> query = Query(("age", "sex"), {"age": np.array([0, 0, 1])})
    >>> query.shape(Domain({"age": 3, "sex": 2}))
    (2, 2)
    """

    clique: Clique
    buckets: Buckets = field(default_factory=dict)
    where: Mapping[str, int] = field(default_factory=dict)
    functional: Functional | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clique", tuple(self.clique))
        object.__setattr__(self, "buckets", MappingProxyType(dict(self.buckets)))
        object.__setattr__(self, "where", MappingProxyType(dict(self.where)))

    def __reduce__(self) -> tuple[type[Query], tuple[object, ...]]:
        return type(self), (self.clique, dict(self.buckets), dict(self.where), self.functional)

    @property
    def plain(self) -> bool:
        """Whether this asks for a marginal as it is: no buckets, no group, no functional."""
        return not self.buckets and not self.where and self.functional is None

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that two queries share if and only if they ask the same."""
        seen = tuple((name, np.asarray(self.buckets[name], dtype=np.int64).tobytes()) for name in sorted(self.buckets))
        functional = (
            None if self.functional is None else (self.functional.weights.shape, self.functional.weights.tobytes())
        )
        return self.clique, seen, tuple(sorted(self.where.items())), functional

    def checked(self, domain: Domain) -> Query:
        """Return the query with its buckets as arrays; a query that does not fit the domain is an error."""
        if vars(self).get("_fits") is domain:
            return self
        clique = domain.check(self.clique)
        buckets = check_buckets(clique, self.buckets, domain)
        for name, code in self.where.items():
            domain.check((name,))
            if name in clique:
                raise DomainError(f"a query of {clique!r} cannot also fix {name!r}; leave it out of one of them")
            if isinstance(code, bool) or not isinstance(code, (int, np.integer)) or not 0 <= code < domain[name]:
                raise DomainError(
                    f"a group of {name!r} must be one of its codes, 0 to {domain[name] - 1}, not {code!r}"
                )
        query = Query(clique, buckets, self.where, self.functional)
        if self.functional is not None and self.functional.weights.shape[1:] != query.table_shape(domain):
            raise DomainError(
                f"the functional of {clique!r} has weights of shape {self.functional.weights.shape[1:]}; the table has "
                f"{query.table_shape(domain)}"
            )
        object.__setattr__(query, "_fits", domain)  # so that it is checked once
        return query

    def table_shape(self, domain: Domain) -> tuple[int, ...]:
        """Return the shape of the table of counts, before any functional."""
        return tuple(self.sizes.get(name, domain[name]) for name in self.clique)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many buckets each attribute in buckets has."""
        return {name: int(np.max(buckets)) + 1 for name, buckets in self.buckets.items()}

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Return the shape of the answer."""
        return self.table_shape(domain) if self.functional is None else (self.functional.answers,)

    def cells(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return math.prod(self.shape(domain))

    def l2_sensitivity(self, k: int) -> int:
        """Return the L2 sensitivity of the answer to one person with at most k rows.

        The k rows may share one cell, so a table moves by at most k (not sqrt k), with any buckets and in any
        group: buckets and groups are public, and every row is in at most one cell.
        """
        return k if self.functional is None else self.functional.l2_sensitivity(k)

    def through(self, maps: Maps) -> Query:
        """Return the query of the rows behind a view that answers this query of the view."""
        clique, buckets, where = [], {}, {}
        for name in self.clique:
            old, codes = maps[name]
            clique.append(old)
            seen = self.buckets.get(name)
            if codes is not None:
                buckets[old] = (codes if seen is None else np.asarray(seen)[codes]).astype(np.uint32)
            elif seen is not None:
                buckets[old] = seen
        for name, code in self.where.items():
            old, codes = maps[name]
            if codes is not None:
                raise DomainError(f"the view maps the codes of {name!r}; a group must be a code of the rows themselves")
            where[old] = code
        if len(set(clique)) < len(clique):
            raise DomainError("a query of a view names the same attribute of its rows twice; leave one of them out")
        functional = self.functional
        if functional is not None:
            # Codes that no old code maps to have no row; the last of them are not in the table of the rows behind.
            cells = tuple(slice(int(np.max(buckets[old])) + 1 if old in buckets else None) for old in clique)
            functional = Functional(functional.weights[(slice(None), *cells)])
        return Query(tuple(clique), buckets, where, functional)


QueryLike: TypeAlias = Query | Clique
"""A query, or a clique, which asks for its marginal."""


def as_query(asked: QueryLike | Iterable[str]) -> Query:
    """Return a query; a clique asks for its marginal.

    Examples
    --------
    >>> as_query(("age", "sex")).clique
    ('age', 'sex')
    """
    if isinstance(asked, Query):
        return asked
    if isinstance(asked, str):
        raise DomainError(f"a query is a chicle.Query or a tuple of attribute names, not a string; write ({asked!r},)")
    return Query(tuple(asked))


def one_ways(domain: Iterable[str]) -> list[Clique]:
    """Return the clique of each single attribute, in domain order.

    Examples
    --------
    >>> one_ways(Domain({"age": 3, "sex": 2}))
    [('age',), ('sex',)]
    """
    return [(name,) for name in domain]


def check_buckets(clique: Clique, buckets: Mapping[str, npt.ArrayLike], domain: Domain) -> dict[str, Any]:
    """Return the bucket of each code as arrays; buckets that do not fit the clique and the domain are an error."""
    checked = {}
    for name, given in buckets.items():
        if name not in clique:
            raise DomainError(f"buckets of {name!r}: the clique {clique!r} has no such attribute")
        array = np.asarray(given)
        if array.dtype.kind not in "iu" or array.shape != (domain[name],) or array.min() < 0:
            raise DomainError(
                f"buckets of {name!r} must have one integer from 0 on for each of its {domain[name]} codes"
            )
        if array.max() >= 2**32:
            raise DomainError(f"buckets of {name!r} has a bucket of 2^32 or more; number buckets from 0 on")
        checked[name] = np.ascontiguousarray(array, dtype=np.uint32)
    return checked
