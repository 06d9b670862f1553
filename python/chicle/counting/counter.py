"""Counts of rows that come in batches, or in parts that are counted separately. As private as the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, memory_bytes, threads_or_all
from chicle.counting.kernel_queries import KernelQueries
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.query import QueryLike, as_query

__all__ = ["Counter"]


class Counter:
    """Counts of queries over records that come in batches, or in parts that are counted separately and merged.

    A pickled counter keeps its counts, so other processes can count parts. It is as private as the records.

    Parameters
    ----------
    domain
        The domain of every batch.
    queries, threads, memory_limit
        As for `chicle.count`.

    Examples
    --------
    >>> counter = Counter({"age": 3, "sex": 2}, [("sex",)])
    >>> for ages, sexes in [([2, 0], [1, 0]), ([2], [0])]:
    ...     counter = counter.update(Records({"age": ages, "sex": sexes}, counter.domain))
    >>> counter.result()
    [array([2, 1])]
    """

    def __init__(
        self,
        domain: Mapping[str, int],
        queries: Iterable[QueryLike | Iterable[str]],
        threads: int | None = None,
        *,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._domain = Domain.of(domain)
        self._wanted = KernelQueries(self._domain, queries)
        self._options = (threads_or_all(threads), memory_bytes(memory_limit))
        self._counter = _core.Counter(*self._wanted.arguments(), self._options[1], self._options[0])

    @property
    def domain(self) -> Domain:
        """The domain of every batch."""
        return self._domain

    @property
    def queries(self) -> list[QueryLike]:
        """The queries that are counted."""
        return list(self._wanted.queries)

    def update(self, batch: Records) -> Counter:
        """Count a batch of records; return the counter itself."""
        if batch.domain != self._domain:
            raise DomainError("a batch must have the counter's own domain: the same attributes, sizes and order")
        self._counter.update([batch[name] for name in self._wanted.attributes])
        return self

    def merge(self, other: Counter) -> Counter:
        """Add the counts of another counter over the same domain and queries; return the counter itself."""
        if other.domain != self._domain or not self._same(other):
            raise DomainError("only counters over the same domain and queries can be merged")
        self._counter.merge(other._counter)
        return self

    def result(self) -> list[npt.NDArray[np.int64]]:
        """Return the counts so far, as `count` does; more batches may follow."""
        return self._wanted.answers(self._counter.result())

    def _same(self, other: Counter) -> bool:
        mine, theirs = ([as_query(asked).key for asked in counter.queries] for counter in (self, other))
        return mine == theirs

    def __repr__(self) -> str:
        return f"Counter of {len(self._wanted.queries)} queries over {self._domain!r}"

    def __reduce__(self) -> tuple[Callable[..., Counter], tuple[object, ...]]:
        return _restore, (dict(self._domain), self.queries, *self._options, self._counter.result())


def _restore(
    domain: Mapping[str, int],
    queries: list[QueryLike],
    threads: int | None,
    memory_limit: int,
    tables: list[npt.NDArray[np.int64]],
) -> Counter:
    counter = Counter(domain, queries, threads, memory_limit=memory_limit)
    counter._counter.add_tables(tables)  # noqa: SLF001 - the other half of Counter.__reduce__
    return counter
