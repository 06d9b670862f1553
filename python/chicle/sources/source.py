"""A private table as its owner gives it, read in batches of Arrow columns with the rows of each person limited.

Everything that looks at raw private columns goes through `Source.batches`: what is encoded to be counted, and what a
schema asks to be discovered. So no row above `max_records` of a person gets past it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chicle._checks import threads_or_all
from chicle.counting.counter import Counter
from chicle.counting.records import Countable, Records
from chicle.errors import SchemaError
from chicle.sources.ahead import ahead
from chicle.sources.files import Files, are_files, find_files
from chicle.sources.frames import Form, table_kind
from chicle.sources.people import Kept, People
from chicle.sources.readers import Batch, Batches, Frame, Reader
from chicle.sources.stream import Stream, join

if TYPE_CHECKING:
    from chicle.schema import Schema

__all__ = ["Source", "unread"]

_BATCH_ROWS = 2**17
_IN_MEMORY = 2**28


class Source:
    """A private table that can be read.

    Parameters
    ----------
    given
        A pandas, polars or pyarrow table, or a mapping of arrays; a path, a pattern such as ``part-*.parquet``, or a
        list of either (CSV, Parquet, Arrow); batches of tables: a list of them, a function that returns them anew, a
        pyarrow dataset, or a reader or generator, which is read once. `Records`, too, and another source.
    schema
        What is declared about it: whose rows they are, which columns are not looked at, what those of a CSV file are.
    threads
        How many threads encode; all there are, if ``None``.
    in_memory
        Up to so many bytes the codes of files and batches, mostly one byte each, are kept; above it they are read again
        for each pass. What can be read once only is kept in any case.
    progress
        Called while the table is read with the part that has been, from 0 to 1, where that is known.

    Examples
    --------
    >>> from chicle import Schema
    >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
    >>> halves = [{"smoker": [True, False], "patient": [1, 1]}, {"smoker": [True], "patient": [2]}]
    >>> source = Source(halves, schema)
    >>> [batch["smoker"].to_pylist() for batch in source.batches(["smoker"])]
    [[True], [True]]
    """

    def __init__(
        self,
        given: Any,  # noqa: ANN401 - any table
        schema: Schema,
        *,
        threads: int | None = None,
        in_memory: int = _IN_MEMORY,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._threads = threads_or_all(threads)
        self._in_memory, self._progress = in_memory, progress
        self._unit = schema.person, schema.max_records_per_person
        k = schema.max_records_per_person
        if schema.coded and isinstance(given, Mapping):
            given = Records(given, schema.domain, max_records_per_person=k)
        self._records = given if isinstance(given, Records) else None
        if self._records is not None:
            self._reader: Reader = Frame({name: self._records[name] for name in self._records})
            self._people, self._form = None, Form("records")
            return
        self._reader = _reader(given, schema)
        self._people = None if schema.person is None else (schema.person, People(schema.person, k))
        self._kept: Kept | None = None
        self._form = self._reader.form()
        for where, names in self._reader.layouts():
            for problem in schema.misfits(names):
                raise SchemaError(_at(where, problem))

    @property
    def form(self) -> Form:
        """What a synthetic table of this source should look like."""
        return self._form

    @property
    def coded(self) -> bool:
        """Whether it was given as codes already, which do not tell whose rows they are."""
        return self._records is not None

    @property
    def promise(self) -> str:
        """What the privacy unit of a fit on this source is: how many rows of a person, and what sees to it.

        Examples
        --------
        >>> from chicle import Schema
        >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
        >>> Source({"smoker": [True, False], "patient": [1, 2]}, schema).promise
        "Protects every person: of each value of 'patient' at most one row was kept."
        """
        person, k = self._unit
        rows, kept = ("one row", "was kept") if k == 1 else (f"{k} rows", "were kept")
        if person is None:
            return f"Protects a person with {rows} at most: an assumption, for no column tells whose row it is."
        if self.coded:
            return f"Protects a person with {rows} at most: an assumption, for records do not tell whose row it is."
        return f"Protects every person: of each value of {person!r} at most {rows} {kept}."

    @property
    def once(self) -> bool:
        """Whether it can be read once only."""
        return isinstance(self._reader, Batches) and not self._reader.streams

    def check_unit(self, schema: Schema) -> None:
        """Raise unless a schema limits the rows of a person as the source does."""
        if (schema.person, schema.max_records_per_person) != self._unit:
            raise SchemaError(
                "the source was opened with a schema of another `person` or `max_records`; open it with this one"
            )

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, pa.ChunkedArray]]:
        """Give these columns, batch by batch, without rows above the declared number of a person.

        The rows are private, and so is their number. Records give their codes.
        """
        for batch in self._read(names):
            yield batch.columns

    def records(self, schema: Schema) -> Records:
        """Return the whole table as records over a schema's domain; what does not fit is refused."""
        self.check_unit(schema)
        if self._records is not None:
            return schema.adopt(self._records)
        with closing(self._encoded(schema, list(schema.domain))) as batches:
            return join(list(batches), schema.domain, schema.max_records_per_person)

    def countable(self, schema: Schema) -> Countable:
        """Return the table as something to count: records if they fit memory, else a stream.

        All of it is checked, also what is declared of several columns.
        """
        if self._records is not None or not self._reader.streams:
            records = self.records(schema)
            schema.check_rows(records)
            return records
        self.check_unit(schema)
        domain, k = schema.domain, schema.max_records_per_person
        held: list[Records] = []
        counter: Counter | None = None
        room = self._in_memory
        with closing(self._encoded(schema, list(domain))) as batches:
            for batch in batches:
                schema.check_rows(batch)
                if counter is not None:
                    counter.update(batch)
                    continue
                held.append(batch)
                room -= sum(batch[name].nbytes for name in batch)
                if room < 0:
                    counter = Stream.first(domain, self._threads)
                    while held:
                        counter.update(held.pop())
        if counter is None:
            return join(held, domain, k)
        counted = dict(zip(counter.cliques, counter.result(), strict=True))
        return Stream(lambda names: self._encoded(schema, names), domain, k, counted)

    def _encoded(self, schema: Schema, attributes: Sequence[str]) -> Generator[Records, None, None]:
        domain = {name: schema.domain[name] for name in attributes}
        k = schema.max_records_per_person

        def encode(batch: Batch) -> Records:
            try:
                codes = schema.codes(batch.columns, attributes)
            except SchemaError as error:
                raise SchemaError(_at(batch.where, error)) from None
            return Records(codes, domain, max_records_per_person=k)

        # Columns of codes are used where they lie.
        whole = schema.coded and isinstance(self._reader, Frame)
        read = self._read(attributes)
        return ahead(read if whole else _in_parts(read), encode, self._threads)

    def _read(self, names: Sequence[str]) -> Iterator[Batch]:
        read = self._reader.batches(names) if self._people is None else self._limited(*self._people, names)
        for batch in read:
            if self._progress is not None and batch.part is not None:
                self._progress(batch.part)
            yield batch

    def _limited(self, person: str, people: People, names: Sequence[str]) -> Iterator[Batch]:
        """Give batches without rows above the declared number of a person."""
        if self._reader.streams:
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


def _reader(given: Any, schema: Schema) -> Reader:  # noqa: ANN401
    if are_files(given):
        return Files(find_files(given), schema)
    if isinstance(given, pa.RecordBatchReader):
        return Batches(lambda _: given, streams=False)
    if type(given).__module__ == "pyarrow._dataset":
        return Batches(lambda names: given.to_batches(columns=names), streams=True)
    framed = isinstance(given, Mapping) or table_kind(given) != "records" or hasattr(given, "__arrow_c_stream__")
    if not framed and callable(given):
        return Batches(lambda _: given(), streams=True)
    if not framed and isinstance(given, Iterable):
        return Batches(lambda _: given, streams=not isinstance(given, Iterator))
    return Frame(given, schema.dropped)


def unread(given: Any, schema: Schema) -> Iterator[Mapping[str, pa.ChunkedArray]]:  # noqa: ANN401
    """Give all columns of a table but those that are dropped, batch by batch, whatever they are and whoever's rows.

    For checks: a table that does not fit a schema is no `Source`. Where there are no rows, there still is a batch.
    """
    readers = [_reader(given, schema)]
    if isinstance(readers[0], Files):
        readers = [Files([path], schema) for path in find_files(given)]
    for reader in readers:
        ((_, names),) = reader.layouts()
        there = False
        for batch in reader.batches(names):
            there = True
            yield batch.columns
        if not there:
            yield {name: pa.chunked_array([], reader.form().types.get(name) or pa.null()) for name in names}


def _in_parts(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Give batches of at most the usual number of rows, so that several can be worked on at once."""
    for batch in batches:
        for row in range(0, max(batch.rows, 1), _BATCH_ROWS):
            columns = {name: values.slice(row, _BATCH_ROWS) for name, values in batch.columns.items()}
            yield Batch(columns, batch.where)


def _at(where: str | None, problem: object) -> str:
    return str(problem) if where is None else f"{where}: {problem}"


def _nothing() -> None:
    pass
