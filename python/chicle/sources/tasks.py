"""Work on all rows of a source, batch by batch: what a task is, and the tasks of a fit and of a check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from chicle.codecs import Codec
from chicle.counting.countable import Countable
from chicle.counting.counter import Counter
from chicle.counting.passes import Pass, Passes
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.errors import SchemaError
from chicle.query import one_ways
from chicle.sources.people import first_rows

__all__ = ["CheckTable", "Collect", "Columns", "Count", "FirstPass", "Task"]

Columns: TypeAlias = Mapping[str, pa.ChunkedArray]
"""Some rows of a table: Arrow columns of one length."""

Prepared = TypeVar("Prepared")
_Self = TypeVar("_Self", bound="Task[Any]")


class Task(ABC, Generic[Prepared]):
    """Work on all rows. Its state is as private as the rows.

    A source passes each batch to `prepare`, on any thread or machine, and the results to `add`, in the order of the
    rows. Copies of a fresh task may also work on parts of a table and be merged, so tasks can be pickled.
    """

    @abstractmethod
    def prepare(self, batch: Columns) -> Prepared:
        """Return what the task needs of a batch, without changing the task; raise a SchemaError if rows do not fit."""

    @abstractmethod
    def add(self, prepared: Prepared) -> None:
        """Add the prepared next batch."""

    @abstractmethod
    def merge(self: _Self, other: _Self) -> None:
        """Add the result of another copy, which worked on the rows that follow."""


class Collect(Task[Records]):
    """Encode all rows and keep the codes of some attributes.

    Parameters
    ----------
    codec
        The codec.
    attributes
        Attributes of the codec's `base`.
    """

    def __init__(self, codec: Codec, attributes: list[str]) -> None:
        self._codec = codec
        self._domain = Domain({name: codec.base[name] for name in attributes})
        self._held: list[Records] = []

    def prepare(self, batch: Columns) -> Records:
        """Return the codes of a batch."""
        codes = self._codec.codes(batch, list(self._domain))
        return Records(codes, self._domain, max_records_per_person=self._codec.max_records_per_person)

    def add(self, prepared: Records) -> None:
        """Keep the codes of the next batch."""
        self._held.append(prepared)

    def merge(self, other: Collect) -> None:
        """Keep the codes of the rows that follow."""
        self._held += other._held

    def records(self) -> Records:
        """Return all rows as one table; the batches are released."""
        return join(self._held, self._domain, self._codec.max_records_per_person)


class FirstPass(Task[Records]):
    """Encode and check all rows, and keep their codes; if these take too much memory, count the 1-ways instead.

    Parameters
    ----------
    codec
        The codec.
    room
        Bytes that codes may take, mostly one for each value.
    threads
        How many threads count.
    """

    def __init__(self, codec: Codec, room: float, threads: int | None = None) -> None:
        self._codec, self._room, self._threads = codec, room, threads
        self._held: list[Records] = []
        self._counter: Counter | None = None

    def prepare(self, batch: Columns) -> Records:
        """Return the codes of a batch, after a check of its rows."""
        codes = self._codec.codes(batch, list(self._codec.base))
        self._codec.check_codes(codes)
        return Records(codes, self._codec.base, max_records_per_person=self._codec.max_records_per_person)

    def add(self, prepared: Records) -> None:
        """Keep the codes of the next batch, or count them."""
        if self._counter is not None:
            self._counter.update(prepared)
            return
        self._held.append(prepared)
        self._room -= sum(prepared[name].nbytes for name in prepared)
        if self._room < 0:
            self._count()

    def merge(self, other: FirstPass) -> None:
        """Add the rows that follow."""
        if other._counter is not None:
            self._count().merge(other._counter)
        while other._held:
            self.add(other._held.pop(0))

    def countable(self, again: Pass) -> Countable:
        """Return the rows as records, or as passes, which read the source again for each count."""
        base, k = self._codec.base, self._codec.max_records_per_person
        if self._counter is None:
            return join(self._held, base, k)
        counted = dict(zip(self._cliques(), self._counter.result(), strict=True))
        return Passes(again, base, k, counted)

    def _cliques(self) -> list[Clique]:
        return [(), *one_ways(self._codec.base)]

    def _count(self) -> Counter:
        """Return the counter of 1-ways, after it has counted all kept rows."""
        if self._counter is None:
            self._counter = Counter(self._codec.base, self._cliques(), self._threads)
            while self._held:
                self._counter.update(self._held.pop())
        return self._counter


class Count(Task[Records]):
    """Encode all rows and count them.

    Parameters
    ----------
    codec
        The codec.
    counter
        The counter, over attributes of the codec's `base`.
    """

    def __init__(self, codec: Codec, counter: Counter) -> None:
        self._codec = codec
        self.counter, self.rows = counter, 0

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return self._codec.needed(list(self.counter.domain))

    def prepare(self, batch: Columns) -> Records:
        """Return the codes of a batch."""
        codes = self._codec.codes(batch, list(self.counter.domain))
        return Records(codes, self.counter.domain, max_records_per_person=self._codec.max_records_per_person)

    def add(self, prepared: Records) -> None:
        """Count the next batch."""
        self.counter.update(prepared)
        self.rows += len(prepared)

    def merge(self, other: Count) -> None:
        """Add the counts of the rows that follow."""
        self.counter.merge(other.counter)
        self.rows += other.rows


class CheckTable(Task[list[str]]):
    """Collect the problems of a table under a schema; rows of persons are not limited.

    Attributes
    ----------
    problems
        A sentence for each broken rule, in the order in which they were found.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.problems: dict[str, None] = {}

    def prepare(self, batch: Columns) -> list[str]:
        """Return the problems of a batch: its columns, its persons, its values."""
        schema = self._codec.schema
        problems = self._codec.misfits(batch)
        if schema.person is not None and schema.person in batch:
            try:
                first_rows(schema.person, batch[schema.person], schema.max_records_per_person)
            except SchemaError as error:
                problems.append(str(error))
        return [*problems, *self._codec.check(batch)]

    def add(self, prepared: list[str]) -> None:
        """Add the problems of the next batch."""
        self.problems.update(dict.fromkeys(prepared))

    def merge(self, other: CheckTable) -> None:
        """Add the problems of the rows that follow."""
        self.problems.update(other.problems)


def join(batches: list[Records], domain: Domain, max_records_per_person: int) -> Records:
    """Return batches as one; the list is emptied, and each column is released after it is copied."""
    if len(batches) == 1:
        return Records(
            {name: batches[0][name] for name in domain}, domain, max_records_per_person=max_records_per_person
        )
    parts: list[dict[str, Any]] = [{name: batch[name] for name in domain} for batch in batches]
    if not parts:  # a file with only a header
        parts = [{name: np.empty(0, dtype=np.uint8) for name in domain}]
    batches.clear()
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in domain}
    return Records(columns, domain, max_records_per_person=max_records_per_person)
