"""Rows that are read again for each pass: tables larger than memory are counted batch by batch.

The first pass encodes every row, so rows that do not fit the schema are found before anything is spent. It also counts
the 1-ways and keeps them, as private as the rows: measuring them needs no further pass. Each pass digests the rows that
it meets: a table that changed between two passes stops the fit.
Cost: one pass for each list of queries; memory for a few batches and the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from chicle._checks import MEMORY_LIMIT
from chicle.counting.countable import Countable
from chicle.counting.counter import Counter
from chicle.counting.counts import Counts
from chicle.counting.digest import Digest
from chicle.domain import Clique, Domain
from chicle.errors import SchemaError
from chicle.query import Query, QueryLike, one_ways

__all__ = ["Pass", "Passes"]


class Pass(Protocol):
    """Reads all rows once and counts them."""

    def __call__(self, counts: Counts) -> Counts:
        """Return the counts with all rows added."""


class Passes(Countable):
    """Private rows that are read and encoded each time they are counted.

    Parameters
    ----------
    read
        Reads the rows and counts them; the same rows each time.
    domain, max_records_per_person
        As for `Records`.
    first
        What the first pass counted: `Passes.first` with all rows added.
    """

    __slots__ = ("_counted", "_digest", "_domain", "_max_records_per_person", "_read", "_whole")

    def __init__(
        self,
        read: Pass,
        domain: Domain,
        max_records_per_person: int,
        first: Counts,
    ) -> None:
        self._read = read
        self._domain = domain
        self._max_records_per_person = max_records_per_person
        self._counted: dict[Clique, npt.NDArray[np.int64]] = dict(
            zip(_first_cliques(domain), first.counter.result(), strict=True)
        )
        self._digest = digest = first.digest
        # Digests of whole rows, by the attributes of a pass.
        self._whole: dict[frozenset[str], int] = {frozenset(digest.attributes): digest.whole}
        for table in self._counted.values():
            table.flags.writeable = False

    @staticmethod
    def first(domain: Domain, threads: int | None = None) -> Counts:
        """Return what the first pass counts: the number of records, the 1-ways, and a digest with a new key."""
        return Counts(Counter(domain, _first_cliques(domain), threads), Digest(), threads)

    @property
    def domain(self) -> Domain:
        """The attributes and their cardinalities."""
        return self._domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._max_records_per_person

    def count(
        self, queries: Sequence[QueryLike], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> list[npt.NDArray[np.int64]]:
        """Count all queries in one pass, except those that the first pass has counted."""
        queries = [one if isinstance(one, Query) else tuple(one) for one in queries]
        found = {i: table for i, asked in enumerate(queries) if (table := self._known(asked)) is not None}
        rest = [i for i in range(len(queries)) if i not in found]
        if rest:
            asked = [queries[i] for i in rest]
            used = {name for one in asked for name in _names(one)}
            names = [name for name in self._domain if name in used] or list(self._domain)[:1]
            seen = Domain({name: self._domain[name] for name in names})
            counter = Counter(seen, asked, threads, memory_limit=memory_limit)
            counts = self._read(Counts(counter, self._digest.fresh(), threads))
            self._check(counts.digest)
            found.update(zip(rest, counts.counter.result(), strict=True))
        return [found[i] for i in range(len(queries))]

    def _check(self, digest: Digest) -> None:
        """Raise unless a pass met the rows of the first one, as far as it read them."""
        same = digest.rows == self._digest.rows
        same &= all(self._digest.attributes[name] == value for name, value in digest.attributes.items())
        # Of fewer attributes than all, the first pass that reads them sets the digest of whole rows.
        if not same or self._whole.setdefault(frozenset(digest.attributes), digest.whole) != digest.whole:
            raise SchemaError(
                "the table had other rows when it was read again; stop the program that writes to it, or fit a copy. "
                "What was released before stays spent"
            )

    def _known(self, asked: QueryLike) -> npt.NDArray[np.int64] | None:
        """Return a count of the first pass, if it is one: the number of records, or a 1-way, in buckets or not."""
        if isinstance(asked, tuple):
            return self._counted.get(asked)
        if asked.where or asked.functional is not None or asked.clique not in self._counted:
            return None
        counts = self._counted[asked.clique]
        if not asked.buckets:
            return counts
        query = asked.checked(self._domain)
        summed = np.zeros(query.shape(self._domain), dtype=np.int64)
        np.add.at(summed, query.buckets[asked.clique[0]], counts)
        return summed

    def __repr__(self) -> str:
        return f"Passes over {self._domain!r}"


def _first_cliques(domain: Domain) -> list[Clique]:
    return [(), *one_ways(domain)]


def _names(asked: QueryLike) -> tuple[str, ...]:
    return asked if not isinstance(asked, Query) else (*asked.where, *asked.clique)
