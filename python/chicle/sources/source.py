"""A private table as its owner gives it, read in batches of Arrow columns with the rows of each person limited.

Everything that looks at raw private columns goes through `Source.batches`: what is encoded to be counted, and what a
schema asks to be discovered. So no row above `max_records` of a person gets past it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chicle.errors import SchemaError
from chicle.frames import Form, table_kind
from chicle.people import first_rows
from chicle.records import Records
from chicle.sources.readers import Batch, Frame, Reader

if TYPE_CHECKING:
    from chicle.schema import Schema

__all__ = ["Source"]


class Source:
    """A private table that can be read.

    Parameters
    ----------
    given
        A pandas, polars or pyarrow table, or a mapping of arrays.
    schema
        What is declared about it: whose rows they are, and which columns are not looked at.

    Examples
    --------
    >>> from chicle import Schema
    >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
    >>> source = Source({"smoker": [True, False, True], "patient": [1, 1, 2]}, schema)
    >>> [batch["smoker"].to_pylist() for batch in source.batches(["smoker"])]
    [[True, True]]
    """

    def __init__(self, given: Any, schema: Schema) -> None:  # noqa: ANN401 - any table
        self._person, self._k = schema.person, schema.max_records_per_person
        if schema.coded and table_kind(given) == "records" and not isinstance(given, Records):
            given = Records(given, schema.domain, max_records_per_person=self._k)
        self._records = given if isinstance(given, Records) else None
        if self._records is not None:
            self._person = None
            given = {name: self._records[name] for name in self._records}
        self._reader: Reader = Frame(given, schema.dropped)
        self._form = Form("records") if self._records is not None else self._reader.form()
        if self._records is None:
            self._check_names(schema)

    @property
    def form(self) -> Form:
        """What a synthetic table of this source should look like."""
        return self._form

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, pa.ChunkedArray]]:
        """Give these columns, batch by batch, without rows above the declared number of a person.

        The rows are private, and so is their number. Records give their codes.
        """
        for batch in self._read(names):
            yield batch.columns

    def records(self, schema: Schema) -> Records:
        """Return the whole table as records over a schema's domain; what does not fit is refused."""
        if self._records is not None:
            return schema.adopt(self._records)
        (batch,) = self._read(schema.needed())
        codes = schema.codes(batch.columns)
        return Records(codes, schema.domain, max_records_per_person=schema.max_records_per_person)

    def _check_names(self, schema: Schema) -> None:
        for where, names in self._reader.layouts():
            for problem in schema.misfits(names):
                raise SchemaError(_at(where, problem))

    def _read(self, names: Sequence[str]) -> Iterator[Batch]:
        person = self._person
        if person is None:
            yield from self._reader.batches(names)
            return
        for batch in self._reader.batches([*dict.fromkeys([*names, person])]):
            kept = first_rows(person, batch.columns[person], self._k)
            columns = {name: batch.columns[name] for name in names}
            if kept is not None:
                columns = {name: values.filter(kept) for name, values in columns.items()}
            yield Batch(columns, batch.where, batch.part)


def _at(where: str | None, problem: object) -> str:
    return str(problem) if where is None else f"{where}: {problem}"
