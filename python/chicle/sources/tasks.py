"""Work on all rows of a source, batch by batch: what a task is, and the tasks of a fit and of a check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from chicle.codecs import Codec
from chicle.codecs.check import offending
from chicle.counting.countable import Countable
from chicle.counting.counts import Counts
from chicle.counting.passes import Pass, Passes
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import SchemaError
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
        self._codec, self._room = codec, room
        self._held: list[Records] = []
        self._first = Passes.first(codec.base, threads)  # copies of the task share the key of its digest
        self._counted: Counts | None = None

    def prepare(self, batch: Columns) -> Records:
        """Return the codes of a batch, after a check of its rows."""
        codes = self._codec.codes(batch, list(self._codec.base))
        self._codec.check_codes(codes)
        return Records(codes, self._codec.base, max_records_per_person=self._codec.max_records_per_person)

    def add(self, prepared: Records) -> None:
        """Keep the codes of the next batch, or count them."""
        if self._counted is not None:
            self._counted.add(prepared)
            return
        self._held.append(prepared)
        self._room -= sum(prepared[name].nbytes for name in prepared)
        if self._room < 0:
            self._count()

    def merge(self, other: FirstPass) -> None:
        """Add the rows that follow."""
        if other._counted is not None:
            self._count().merge(other._counted)
        while other._held:
            self.add(other._held.pop(0))

    def countable(self, again: Pass) -> Countable:
        """Return the rows as records, or as passes, which read the source again for each count."""
        base, k = self._codec.base, self._codec.max_records_per_person
        if self._counted is None:
            return join(self._held, base, k)
        return Passes(again, base, k, self._counted)

    def _count(self) -> Counts:
        """Return the counts of 1-ways, after all kept rows are counted."""
        if self._counted is None:
            self._counted = self._first
            while self._held:
                self._counted.add(self._held.pop())
        return self._counted


class Count(Task[Records]):
    """Encode all rows and count them.

    Parameters
    ----------
    codec
        The codec.
    counts
        What rows are added to, over attributes of the codec's `base`.
    """

    def __init__(self, codec: Codec, counts: Counts) -> None:
        self._codec, self.counts = codec, counts
        self._domain = counts.counter.domain

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return self._codec.needed(list(self._domain))

    def prepare(self, batch: Columns) -> Records:
        """Return the codes of a batch."""
        return Records(self._codec.codes(batch, list(self._domain)), self._domain)

    def add(self, prepared: Records) -> None:
        """Count the next batch."""
        self.counts.add(prepared)

    def merge(self, other: Count) -> None:
        """Add the counts of the rows that follow."""
        self.counts.merge(other.counts)


class CheckTable(Task[tuple[list[str], dict[str, list[str]]]]):
    """Collect the problems of a table under a schema; rows of persons are not limited.

    Parameters
    ----------
    codec
        The codec of the schema.
    show
        How many values that break a rule to keep for each column; they are NOT PRIVATE.

    Attributes
    ----------
    problems
        A sentence for each broken rule, in the order in which they were found.
    values
        Some values that break a rule, by column.
    """

    def __init__(self, codec: Codec, *, show: int = 0) -> None:
        self._codec, self._show = codec, show
        self.problems: dict[str, None] = {}
        self.values: dict[str, dict[str, None]] = {}

    def prepare(self, batch: Columns) -> tuple[list[str], dict[str, list[str]]]:
        """Return the problems of a batch, of its columns, its persons and its values, and values to show."""
        schema = self._codec.schema
        problems = self._codec.misfits(batch)
        if schema.person is not None and schema.person in batch:
            try:
                first_rows(schema.person, batch[schema.person], schema.max_records_per_person)
            except SchemaError as error:
                problems.append(str(error))
        problems += self._codec.check(batch)
        if not self._show or not problems:
            return problems, {}
        columns = {name: schema.columns[name] for name in schema.domain if name in batch}
        plain = {name: one for name, one in columns.items() if not one.beside}
        return problems, {name: offending(one, batch[name], self._show) for name, one in plain.items()}

    def add(self, prepared: tuple[list[str], dict[str, list[str]]]) -> None:
        """Add the problems of the next batch."""
        problems, values = prepared
        self.problems.update(dict.fromkeys(problems))
        self._keep(values)

    def merge(self, other: CheckTable) -> None:
        """Add the problems of the rows that follow."""
        self.problems.update(other.problems)
        self._keep(other.values)

    def _keep(self, values: Mapping[str, Iterable[str]]) -> None:
        for name, some in values.items():
            kept = {**self.values.get(name, {}), **dict.fromkeys(some)}
            if kept:
                self.values[name] = dict.fromkeys([*kept][: self._show])


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
