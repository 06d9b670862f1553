"""Frames, files and batches on this machine, read in batches of Arrow columns, with the rows of each person limited.

Threads prepare batches ahead; tasks add them in order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from math import inf
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle._checks import threads_or_all
from chicle.codecs import Codec
from chicle.codecs.check import misfits
from chicle.columns import Coded
from chicle.counting.records import Records
from chicle.errors import SchemaError
from chicle.schema import Schema
from chicle.sources.engines.duckdb import Relation
from chicle.sources.engines.polars import LazyFrame
from chicle.sources.files import Files, are_files, find_files
from chicle.sources.frames import Form, table_kind
from chicle.sources.people import Kept, People
from chicle.sources.readers import Batch, Batches, Frame, Reader, dropped
from chicle.sources.source import IN_MEMORY, Source
from chicle.sources.tasks import Task

__all__ = ["CodedSource", "LocalSource", "ahead", "go_over", "is_coded", "reader_of"]

_BATCH_ROWS = 2**17

_Task = TypeVar("_Task", bound=Task[Any])
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

_MOST_THREADS = 8  # more would wait for the one that reads


class LocalSource(Source):
    """A private table that this process can read; `chicle.sources.open_source` lists the accepted kinds.

    Parameters
    ----------
    given, schema, threads, in_memory, progress
        As for `chicle.sources.open_source`.
    """

    limits_persons = True

    def __init__(
        self,
        given: Any,  # noqa: ANN401 - any table
        schema: Schema,
        *,
        threads: int | None = None,
        in_memory: int = IN_MEMORY,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        threads = threads_or_all(threads)
        self._reader = reader_of(given, schema)
        # The codes of a frame, and of batches that can be read only once, are always kept.
        super().__init__(schema, room=in_memory if self._reader.streams else inf, threads=threads)
        self._progress = progress
        person, k = schema.person, schema.max_records_per_person
        self._people = None if person is None else (person, People(person, k, keep=schema.keep))
        self._kept: Kept | None = None
        self._form = self._reader.form()
        # Columns of codes are used in place.
        self._whole = isinstance(self._reader, Frame) and is_coded(schema)
        again = self._reader.streams or isinstance(self._reader, Frame)
        self._again = again
        if person is not None and schema.keep == "random" and not again:
            raise SchemaError(
                "max_records has `keep: random`, which reads the table twice, but these batches can be read only once; "
                "give a function that opens them, a list, files or a frame"
            )
        self.once = isinstance(self._reader, Batches) and not self._reader.streams
        for where, names in self._reader.layouts():
            for problem in misfits(schema, names):
                raise SchemaError(_at(where, problem))

    @property
    def form(self) -> Form:
        """The form of a synthetic table of this source."""
        return self._form

    def reduce(self, task: _Task, columns: Sequence[str]) -> _Task:
        """Read all rows in batches, prepare these ahead in threads, and add them in order."""
        read = self._read(columns)
        return go_over(read if self._whole else _in_parts(read), task, self._threads)

    def person_rows(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """Return how many persons have how many rows; None without a person column or another reading."""
        if self._people is None or not self._again:
            return None
        person, people = self._people
        return people.tally(lambda: (batch.columns[person] for batch in self._reader.batches([person])), cells)

    def _read(self, names: Sequence[str]) -> Iterator[Batch]:
        read = self._reader.batches(names) if self._people is None else self._limited(*self._people, names)
        for batch in read:
            if self._progress is not None and batch.part is not None:
                self._progress(batch.part)
            yield batch

    def _limited(self, person: str, people: People, names: Sequence[str]) -> Iterator[Batch]:
        """Yield batches without the rows of a person above the declared maximum."""
        if self._reader.streams or people.random:
            if self._kept is None:
                self._kept = people.kept(lambda: (batch.columns[person] for batch in self._reader.batches([person])))
            keep, end = self._kept.again()
        else:
            keep, end = people.once(), _nothing
        for batch in self._reader.batches(list(dict.fromkeys([*names, person]))):
            try:
                kept = keep(batch.columns[person])
            except SchemaError as error:
                raise SchemaError(_at(batch.where, error)) from None
            columns = {name: batch.columns[name] for name in names}
            if kept.false_count:
                columns = {name: values.filter(kept) for name, values in columns.items()}
            yield Batch(columns, batch.where, batch.part)
        end()


def go_over(batches: Iterator[Batch], task: _Task, threads: int | None) -> _Task:
    """Give batches to a task, prepared ahead and in order; errors say where a batch comes from."""

    def prepare(batch: Batch) -> Any:  # noqa: ANN401 - the task knows
        try:
            return task.prepare(batch.columns)
        except SchemaError as error:
            raise SchemaError(_at(batch.where, error)) from None

    with closing(ahead(batches, prepare, threads)) as prepared:
        for each in prepared:
            task.add(each)
    return task


def reader_of(given: Any, schema: Schema) -> Reader:  # noqa: ANN401
    """Return a reader of a table of any kind."""
    kind = type(given)
    package = kind.__module__.partition(".")[0].strip("_")
    if are_files(given):
        return Files(find_files(given), schema)
    if (package, kind.__name__) in _QUERIES:
        return _QUERIES[package, kind.__name__](given, dropped(schema))
    return _batches_of(given) or Frame(given, dropped(schema))


_QUERIES = {("polars", "LazyFrame"): LazyFrame, ("duckdb", "DuckDBPyRelation"): Relation}


def _batches_of(given: Any) -> Batches | None:  # noqa: ANN401
    """Return a reader of batches; None for a frame."""
    if isinstance(given, pa.RecordBatchReader):
        return Batches(lambda _: given, streams=False)
    if type(given).__module__ == "pyarrow._dataset":
        return Batches(lambda names: given.to_batches(columns=names), streams=True)
    if isinstance(given, Mapping) or table_kind(given) != "records" or hasattr(given, "__arrow_c_stream__"):
        return None
    if callable(given):
        return Batches(lambda _: given(), streams=True)
    return Batches(lambda _: given, streams=not isinstance(given, Iterator)) if isinstance(given, Iterable) else None


def is_coded(schema: Schema) -> bool:
    """Return whether tables of this schema hold only codes, as `Records` do."""
    return schema.person is None and all(
        type(column) is Coded and not column.missing for column in schema.columns.values()
    )


def _in_parts(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches of at most the usual number of rows, so that threads can share the work."""
    for batch in batches:
        for row in range(0, max(batch.rows, 1), _BATCH_ROWS):
            columns = {name: values.slice(row, _BATCH_ROWS) for name, values in batch.columns.items()}
            yield Batch(columns, batch.where)


def _at(where: str | None, problem: object) -> str:
    return str(problem) if where is None else f"{where}: {problem}"


def _nothing() -> None:
    pass


class CodedSource(Source):
    """Records as a source. Their maker guarantees the maximum number of rows of a person.

    Parameters
    ----------
    records
        Records over the schema's domain.
    schema
        Their schema.
    """

    coded = True

    def __init__(self, records: Records, schema: Schema) -> None:
        super().__init__(schema)
        self._records = records

    @property
    def form(self) -> Form:
        """The form of records."""
        return Form("records")

    def reduce(self, task: _Task, columns: Sequence[str]) -> _Task:
        """Give the task all codes as one batch."""
        batch = {name: pa.chunked_array([pa.array(self._records[name])]) for name in columns}
        task.add(task.prepare(batch))
        return task

    def records(self, codec: Codec) -> Records:
        """Return the records; they must be over the schema's domain."""
        self.check_unit(codec.schema)
        return codec.adopt(self._records)

    def countable(self, codec: Codec) -> Records:
        """Return the records over the codec's `base`, after a check of constraints and combinations."""
        records = self.records(codec)
        codec.check_codes({name: records[name] for name in records})
        return codec.extend(records)


_MOST_THREADS = 8  # more would wait for the reader


def ahead(
    items: Iterator[_Item], work: Callable[[_Item], _Made], threads: int | None = None
) -> Generator[_Made, None, None]:
    """Yield the result of `work` for each item, in order, with up to `threads` items in progress.

    Examples
    --------
    >>> list(ahead(iter([3, 1, 2]), lambda number: 10 * number, threads=2))
    [30, 10, 20]
    """
    begun = [item for item in (next(items, None), next(items, None)) if item is not None]
    if len(begun) < 2:  # not worth a thread
        yield from map(work, begun)
        return
    number = min(threads or os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(number) as workers:
        rest = chain(begun, items)
        under_way: deque[Future[_Made]] = deque()
        coming: Future[_Item | None] | None = reader.submit(next, rest, None)
        try:
            while coming is not None or under_way:
                while coming is not None and len(under_way) <= number:
                    item = coming.result()
                    coming = None if item is None else reader.submit(next, rest, None)
                    if item is not None:
                        under_way.append(workers.submit(work, item))
                if under_way:
                    yield under_way.popleft().result()
        finally:
            for left in under_way:
                left.cancel()
