"""Exact counts of cliques, by the Rust kernels: private where the records are, so they stay inside measuring code."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import memory_bytes, threads_or_all
from chicle.counting.records import Countable, Recoding, Records
from chicle.domain import Clique, Domain
from chicle.errors import DomainError

__all__ = ["MEMORY_LIMIT", "Counted", "Counter", "Shares", "count", "score_cliques", "score_pairs"]

MEMORY_LIMIT: int = _core.MEMORY_LIMIT
"""Bytes that the counts of one call may take unless it says otherwise: 4 GiB."""

Shares: TypeAlias = Mapping[str, npt.NDArray[np.float64]]
"""For each attribute the share of each of its values."""

_PASS_BYTES = 2**28  # of pairs that are counted in one pass over rows that are not in memory
_KEPT_BYTES = 2**29  # of counts that are kept because they are asked for again
_MAX_AXES = 32  # what every numpy takes


def count(
    records: Countable,
    cliques: Iterable[Iterable[str]],
    threads: int | None = None,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> list[npt.NDArray[np.int64]]:
    """Count the records in every cell of every clique, exactly.

    The cliques are counted together: blocks of attributes that hold many of them are counted once and summed, so all
    pairs of a wide table cost a fraction of counting each. The result does not depend on the number of threads.

    Parameters
    ----------
    records
        The records to count.
    cliques
        Tuples of attribute names, of any length; ``()`` gives the number of records.
    threads
        How many threads to use; all there are, if ``None``.
    memory_limit
        Most bytes the counts may take together; above it, an `InfeasibleError` says the size.

    Returns
    -------
    One array for each clique, its axes in the order in which the clique names its attributes.

    Examples
    --------
    >>> records = Records({"age": [2, 0, 2], "sex": [1, 0, 0]}, {"age": 3, "sex": 2})
    >>> age_by_sex, total = count(records, [("age", "sex"), ()])
    >>> age_by_sex
    array([[1, 0],
           [0, 0],
           [1, 1]])
    >>> int(total)
    3
    """
    wanted = _Wanted(records.domain, cliques)
    if isinstance(records, Records):
        codes = [records[name] for name in wanted.attributes]
        tables = _core.count(codes, *wanted.arguments(), memory_bytes(memory_limit), threads_or_all(threads))
        return wanted.shaped(tables)
    known = {clique: records.known(clique) for clique in wanted.cliques}
    asked = [clique for clique, table in known.items() if table is None]
    if asked:
        seen = _Wanted(records.domain, asked).attributes
        counter = Counter({name: records.domain[name] for name in seen}, asked, threads, memory_limit=memory_limit)
        with closing(records.batches(seen)) as batches:
            for batch in batches:
                counter.update(batch)
        known.update(zip(asked, counter.result(), strict=True))
    return [table for clique in wanted.cliques if (table := known[clique]) is not None]


def score_pairs(
    records: Countable,
    pairs: Sequence[Clique],
    reference: tuple[Shares, float] | None,
    threads: int | None = None,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> npt.NDArray[np.int64]:
    """Return the exact InDif of pairs, in units (`chicle.selection.indif`): private.

    Parameters
    ----------
    records
        The records to count.
    pairs
        Pairs of attributes.
    reference
        Public shares of the values of each attribute and a public total to compare with; ``None`` for the pairs' own
        margins.
    threads, memory_limit
        As for `count`; the limit is for each pair alone.
    """
    used = {name for pair in pairs for name in pair}
    names = [name for name in records.domain if name in used]
    sizes = [records.domain[name] for name in names]
    shares, total = (None, 0.0) if reference is None else ([reference[0][name] for name in names], reference[1])
    threads, limit = threads_or_all(threads), memory_bytes(memory_limit)
    place = {name: i for i, name in enumerate(names)}
    if isinstance(records, Records):
        codes = [records[name] for name in names]
        places = [(place[a], place[b]) for a, b in pairs]
        return _core.indif(codes, names, sizes, places, shares, total, limit, threads)
    scores = [np.empty(0, dtype=np.int64)]
    for group in _groups(pairs, records.domain):
        number, *tables = count(records, [(), *group], threads, memory_limit=max(limit, 2 * _PASS_BYTES))
        flat = [table.reshape(-1) for table in tables]
        places = [(place[a], place[b]) for a, b in group]
        scores.append(_core.indif_of_counts(flat, sizes, places, int(number), shares, total, threads))
    return np.concatenate(scores)


def score_cliques(
    records: Countable,
    cliques: Sequence[Clique],
    references: Sequence[npt.NDArray[np.float64]],
    threads: int | None = None,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> npt.NDArray[np.int64]:
    """Return the exact L1 distance of each clique's counts from a public table, in units of 1/65,536 record: private.

    Parameters
    ----------
    records
        The records to count.
    cliques
        Of any number of attributes.
    references
        For each clique what its counts are compared with: not negative, in the shape of its table.
    threads, memory_limit
        As for `count`; the limit is for each clique alone.
    """
    threads, limit = threads_or_all(threads), memory_bytes(memory_limit)
    flat = [np.ascontiguousarray(table, dtype=np.float64).reshape(-1) for table in references]
    if isinstance(records, Records):
        wanted = _Wanted(records.domain, cliques)
        codes = [records[name] for name in wanted.attributes]
        return _core.distances(codes, *wanted.arguments(), flat, limit, threads)
    if isinstance(records, Counted):
        result = np.empty(len(cliques), dtype=np.int64)
        kept = [i for i, clique in enumerate(cliques) if clique in records.kept]
        (number,) = count(records.base, [()], threads)
        counted = [records.kept[cliques[i]].reshape(-1) for i in kept]
        result[kept] = _core.distances_of_counts(counted, [flat[i] for i in kept], int(number), threads)
        if rest := [i for i, clique in enumerate(cliques) if clique not in records.kept]:
            others = [cliques[i] for i in rest], [flat[i] for i in rest]
            result[rest] = score_cliques(records.base, *others, threads, memory_limit=limit)
        return result
    scores = [np.empty(0, dtype=np.int64)]
    done = 0
    for group in _groups(cliques, records.domain):
        number, *tables = count(records, [(), *group], threads, memory_limit=max(limit, 2 * _PASS_BYTES))
        counted = [table.reshape(-1) for table in tables]
        scores.append(_core.distances_of_counts(counted, flat[done : done + len(group)], int(number), threads))
        done += len(group)
    return np.concatenate(scores)


def _groups(cliques: Sequence[Clique], domain: Domain) -> list[list[Clique]]:
    """Return cliques in groups whose counts fit memory together, or that are one clique."""
    groups: list[list[Clique]] = []
    room = 0
    for clique in cliques:
        size = 8 * domain.cells(clique)
        if size > room:
            groups.append([])
            room = _PASS_BYTES
        groups[-1].append(clique)
        room -= size
    return groups


class Counted(Countable):
    """Rows with counts of cliques that will be asked for again and again, as far as there is room. Private.

    Parameters
    ----------
    base
        The rows.
    room
        Bytes that counts may take together.

    Examples
    --------
    >>> records = Records({"age": [2, 0, 2], "sex": [1, 0, 0]}, {"age": 3, "sex": 2})
    >>> counted = Counted(records).keep([("sex",), ("age",)])
    >>> counted.known(("age",))
    array([1, 0, 2])
    """

    __slots__ = ("_room", "base", "kept")

    def __init__(self, base: Countable, room: int = _KEPT_BYTES) -> None:
        self.base = base
        self._room = memory_bytes(room)
        self.kept: dict[Clique, npt.NDArray[np.int64]] = {}

    @property
    def domain(self) -> Domain:
        """The attributes of the rows."""
        return self.base.domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self.base.max_records_per_person

    def batches(self, names: Sequence[str]) -> Generator[Records, None, None]:
        """Give all rows, batch by batch."""
        return self.base.batches(names)

    def recode(self, columns: Recoding, domain: Domain) -> Countable:
        """Return the same rows with other attributes; counts are not kept."""
        return self.base.recode(columns, domain)

    def known(self, clique: Clique) -> npt.NDArray[np.int64] | None:
        """Return the counts of a clique if they are kept, or at hand without."""
        kept = self.kept.get(clique)
        return self.base.known(clique) if kept is None else kept

    def keep(self, cliques: Iterable[Clique], threads: int | None = None) -> Counted:
        """Count cliques that are not kept yet and keep the counts, the smallest first; returns the rows themselves."""
        fresh = []
        for clique in sorted({*cliques} - self.kept.keys(), key=self.domain.cells):
            if (size := 8 * self.domain.cells(clique)) > self._room:
                break
            self._room -= size
            fresh.append(clique)
        tables = count(self.base, fresh, threads)
        for table in tables:
            table.flags.writeable = False
        self.kept.update(zip(fresh, tables, strict=True))
        return self

    def __repr__(self) -> str:
        return f"{self.base!r}, with counts"


class Counter:
    """Counts of cliques over records that come in batches, or that are counted apart and merged.

    Pickling a counter keeps what it has counted, so that parts made by other processes can be merged. What it holds is
    as private as the records.

    Parameters
    ----------
    domain
        The domain of every batch.
    cliques, threads, memory_limit
        As for `count`.

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
        cliques: Iterable[Iterable[str]],
        threads: int | None = None,
        *,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._domain = domain if isinstance(domain, Domain) else Domain(domain)
        self._wanted = _Wanted(self._domain, cliques)
        self._options = (threads_or_all(threads), memory_bytes(memory_limit))
        self._counter = _core.Counter(*self._wanted.arguments(), self._options[1], self._options[0])

    @property
    def domain(self) -> Domain:
        """The domain of every batch."""
        return self._domain

    @property
    def cliques(self) -> list[Clique]:
        """What is counted."""
        return list(self._wanted.cliques)

    def update(self, batch: Records) -> Counter:
        """Count a batch of records; returns the counter itself."""
        if batch.domain != self._domain:
            raise DomainError("a batch must have the counter's own domain: the same attributes, sizes and order")
        self._counter.update([batch[name] for name in self._wanted.attributes])
        return self

    def merge(self, other: Counter) -> Counter:
        """Add what another counter over the same domain and cliques has seen; returns the counter itself."""
        if other.domain != self._domain or other.cliques != self.cliques:
            raise DomainError("only counters over the same domain and cliques can be merged")
        self._counter.merge(other._counter)
        return self

    def result(self) -> list[npt.NDArray[np.int64]]:
        """Return the counts so far, as `count` does; more batches may follow."""
        return self._wanted.shaped(self._counter.result())

    def __repr__(self) -> str:
        return f"Counter of {len(self._wanted.cliques)} cliques over {self._domain!r}"

    def __reduce__(self) -> tuple[Callable[..., Counter], tuple[object, ...]]:
        return _restore, (dict(self._domain), self.cliques, *self._options, self._counter.result())


def _restore(
    domain: Mapping[str, int],
    cliques: list[Clique],
    threads: int | None,
    memory_limit: int,
    tables: list[npt.NDArray[np.int64]],
) -> Counter:
    counter = Counter(domain, cliques, threads, memory_limit=memory_limit)
    counter._counter.add_tables(tables)  # noqa: SLF001 - the other half of Counter.__reduce__
    return counter


class _Wanted:
    """Checked cliques as the kernels want them: positions among the attributes that occur in any of them."""

    def __init__(self, domain: Domain, cliques: Iterable[Iterable[str]]) -> None:
        if isinstance(cliques, str):
            raise DomainError("cliques must be a list of tuples of attribute names, not a string")
        self._domain = domain
        self.cliques: list[Clique] = [domain.check(clique) for clique in cliques]
        for clique in self.cliques:
            if len(clique) > _MAX_AXES:
                raise DomainError(f"a clique of {len(clique)} attributes; an array has at most {_MAX_AXES} axes")
        used = {name for clique in self.cliques for name in clique}
        # Without any attribute, as for the clique (), a column is still needed to tell the number of records.
        self.attributes = [name for name in domain if name in used] or list(domain)[:1]

    def arguments(self) -> tuple[list[str], list[int], list[list[int]]]:
        position = {name: i for i, name in enumerate(self.attributes)}
        cardinalities = [self._domain[name] for name in self.attributes]
        return self.attributes, cardinalities, [[position[name] for name in clique] for clique in self.cliques]

    def shaped(self, tables: Sequence[npt.NDArray[np.int64]]) -> list[npt.NDArray[np.int64]]:
        return [table.reshape(self._domain.shape(clique)) for table, clique in zip(tables, self.cliques, strict=True)]
