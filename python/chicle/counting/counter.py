"""Counts of rows that come in batches, or in parts that are counted separately. As private as the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from threading import Lock

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, memory_bytes, threads_or_all
from chicle.counting.kernel_queries import KernelQueries
from chicle.counting.records import Records
from chicle.counting.wire import pack, unpack
from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.query import QueryLike, as_query

__all__ = ["Counter"]


class Counter:
    """Counts of queries over records that come in batches, or in parts that are counted separately and merged.

    A pickled counter keeps its counts, in few bytes, so other processes can count parts. It is as private as the
    records.

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
        self._kernel: _core.Counter | None = _core.Counter(
            *self._wanted.arguments(), self._options[1], self._options[0]
        )
        self._merged: npt.NDArray[np.int64] | None = None
        self._lock = Lock()
        self._begun = False

    @property
    def domain(self) -> Domain:
        """The domain of every batch."""
        return self._domain

    @property
    def queries(self) -> list[QueryLike]:
        """The queries that are counted."""
        return list(self._wanted.queries)

    def fresh(self, threads: int | None = None) -> Counter:
        """Return a counter of the same queries that has counted nothing."""
        return Counter(self._domain, self.queries, threads, memory_limit=self._options[1])

    def update(self, batch: Records) -> Counter:
        """Count a batch of records; return the counter itself."""
        if batch.domain != self._domain:
            raise DomainError("a batch must have the counter's own domain: the same attributes, sizes and order")
        with self._lock:
            self._begun = True
            if self._kernel is None:
                self._kernel = _core.Counter(*self._wanted.arguments(), self._options[1], self._options[0])
        self._kernel.update([batch[name] for name in self._wanted.attributes])
        return self

    def merge(self, other: Counter) -> Counter:
        """Add the counts of another counter over the same domain and queries; return the counter itself."""
        if other.domain != self._domain or not self._same(other):
            raise DomainError("only counters over the same domain and queries can be merged")
        counts = other._flat()
        with self._lock:
            self._begun |= other._begun
            self._merged = counts.copy() if self._merged is None else self._merged + counts
        return self

    def result(self) -> list[npt.NDArray[np.int64]]:
        """Return the counts so far, as `count` does; more batches may follow."""
        if self._merged is None and self._kernel is not None:
            return self._wanted.answers(self._kernel.result())
        counts = self._flat()
        ends = np.cumsum([0, *self._wanted.sizes])
        return self._wanted.answers([counts[begin:end].copy() for begin, end in pairwise(ends)])

    def _flat(self) -> npt.NDArray[np.int64]:
        """Return the counts so far, the tables one after the other."""
        counts = None if self._kernel is None else np.concatenate([np.empty(0, np.int64), *self._kernel.result()])
        if counts is None or self._merged is None:
            found = self._merged if counts is None else counts
            return np.zeros(sum(self._wanted.sizes), dtype=np.int64) if found is None else found
        return counts + self._merged

    def _same(self, other: Counter) -> bool:
        mine, theirs = ([as_query(asked).key for asked in counter.queries] for counter in (self, other))
        return mine == theirs

    def __repr__(self) -> str:
        return f"Counter of {len(self._wanted.queries)} queries over {self._domain!r}"

    def __reduce__(self) -> tuple[Callable[..., Counter], tuple[object, ...]]:
        return _restore, (self._wanted, *self._options, pack(self._flat()) if self._begun else None)


def _restore(wanted: KernelQueries, threads: int | None, memory_limit: int, counts: bytes | None) -> Counter:
    # Merging needs no kernel, so its plan is made only if more records come.
    counter = Counter.__new__(Counter)
    counter._domain, counter._wanted, counter._options = wanted.domain, wanted, (threads, memory_limit)  # noqa: SLF001
    counter._kernel, counter._lock, counter._begun = None, Lock(), counts is not None  # noqa: SLF001
    counter._merged = None if counts is None else unpack(counts)  # noqa: SLF001
    return counter
