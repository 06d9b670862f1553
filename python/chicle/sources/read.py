"""Open, read and check a table of any kind by a schema, and decode synthetic records to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codecs import Codec
from chicle.codecs.check import Check
from chicle.codecs.codec import with_person
from chicle.counting.records import Records
from chicle.errors import ParameterError, SchemaError
from chicle.linked.remarks import remarks
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema
from chicle.sources.engines.dask import DaskSource, is_dask
from chicle.sources.engines.spark import SparkSource, is_spark
from chicle.sources.files import Files, find_files
from chicle.sources.frames import Form
from chicle.sources.linked import LinkedSource, check_named, decode_linked
from chicle.sources.local import CodedSource, LocalSource, go_over, is_coded, reader_of
from chicle.sources.readers import Batch, Reader
from chicle.sources.source import IN_MEMORY, Source
from chicle.sources.tasks import CheckTable

__all__ = ["check_table", "decode_parts", "decode_table", "limit_remarks", "open_source", "read_records"]

_MOST_ROWS = 4_096  # rows a person that are told apart


def open_source(
    given: Any,  # noqa: ANN401 - any table
    schema: Schema,
    *,
    threads: int | None = None,
    in_memory: int = IN_MEMORY,
    progress: Callable[[float], None] | None = None,
) -> Source:
    """Return a private table as a source; its columns must be those of the schema.

    Parameters
    ----------
    given
        A pandas, polars or pyarrow table, or a mapping of arrays; a path, a pattern such as ``part-*.parquet``, or a
        list of either (CSV, Parquet, Arrow); batches of tables: a list, a function that returns them anew, a pyarrow
        dataset, or a reader or generator, which is read once; a Polars lazy frame or a DuckDB relation, which is run
        again for each pass; a Spark or Dask frame, which is encoded and counted where it is; or `Records`.
    schema
        The schema: it names the person column, the dropped columns, and the types of a CSV file.
    threads
        How many threads encode; ``None`` uses all.
    in_memory
        Bytes of codes, mostly one for each value, that files and batches may keep in memory; larger tables are read
        again for each pass. Batches that can be read only once are always kept.
    progress
        Called during reading with the share of the table that has been read, from 0 to 1, if known.

    Examples
    --------
    >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
    >>> halves = [{"smoker": [True, False], "patient": [1, 1]}, {"smoker": [True], "patient": [2]}]
    >>> open_source(halves, schema).records(Codec(schema))["smoker"]
    array([1, 1], dtype=uint8)
    """
    if isinstance(schema, LinkedSchema) and not isinstance(given, Records):
        return LinkedSource(given, schema, threads=threads)
    if is_coded(schema) and isinstance(given, Mapping):
        given = Records(given, schema.domain, max_records_per_person=schema.max_records_per_person)
    if isinstance(given, Records):
        return CodedSource(given, schema)
    if is_spark(given):
        return SparkSource(given, schema)
    if is_dask(given):
        return DaskSource(given, schema)
    return LocalSource(given, schema, threads=threads, in_memory=in_memory, progress=progress)


def read_records(given: Any, schema: Schema, *, synthetic: bool = False) -> Records:  # noqa: ANN401
    """Return a whole table as records over a schema's domain.

    Parameters
    ----------
    given
        As for `open_source`.
    schema
        Its schema.
    synthetic
        Whether the table is synthetic, so that the rows of a person are not limited.

    Examples
    --------
    >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 20}, "smoker": {"type": "boolean"}})
    >>> records = read_records({"age": [31, 4, 77], "smoker": [True, False, False]}, schema)
    >>> records["age"], records["smoker"]
    (array([ 6,  0, 15], dtype=uint8), array([1, 0, 0], dtype=uint8))
    """
    declared = _of_nobody(schema) if synthetic else schema
    return open_source(given, declared).records(Codec(declared))


def check_table(given: Any, schema: Schema, *, synthetic: bool = False, show: int = 0) -> Check:  # noqa: ANN401
    """Check a table against a schema: problems by column and rule, without any value.

    Files and batches are checked one after the other.

    Parameters
    ----------
    given, schema, synthetic
        As for `read_records`. Linked tables are checked each by itself, and then together.
    show
        How many values that do not fit to return for each column: NOT PRIVATE.

    Examples
    --------
    >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99}, "smoker": {"type": "boolean"}})
    >>> print(check_table({"age": [31, None, 177], "note": ["a", "b", "c"]}, schema))
    The table does not fit the schema:
      column 'smoker' is declared but not in the table; leave it out of the schema, or add it to the table
      column 'note' is not declared; declare it, or write `note: {type: drop}`
      column 'age' has missing values; write `missing: true` to make missing a value of its own, or fill them first
      column 'age' has a number outside its bounds; widen `min` and `max`, or write `outside: clamp`
    """
    if isinstance(schema, LinkedSchema):
        return _check_linked(given, schema, synthetic=synthetic, show=show)
    declared = _of_nobody(schema) if synthetic else schema
    task = CheckTable(Codec(declared), show=show)
    readers = [reader_of(given, declared)]
    if isinstance(readers[0], Files):
        readers = [Files([path], declared) for path in find_files(given)]
    for reader in readers:
        task = go_over(_all_columns(reader), task, None)
    return Check(tuple(task.problems), {name: tuple(values) for name, values in task.values.items()})


def _check_linked(given: Any, schema: LinkedSchema, *, synthetic: bool, show: int) -> Check:  # noqa: ANN401
    """Check linked tables each by itself; where all fit, also their keys, and the rules across them."""
    check_named(given, schema)
    problems: list[str] = []
    values: dict[str, tuple[str, ...]] = {}
    for name, one in schema.tables.items():
        found = check_table(given[name], one, synthetic=synthetic, show=show)
        problems += [f"table {name!r}: {problem}" for problem in found.problems]
        values.update({f"{name}.{column}": some for column, some in found.values.items()})
    if not problems:
        try:
            LinkedSource(given, schema).records(Codec(schema))
        except SchemaError as error:
            problems.append(str(error))
    return Check(tuple(problems), values)


def limit_remarks(given: Any, schema: Schema) -> tuple[str, ...]:  # noqa: ANN401 - any table
    """Return sentences on the rows that `max_records` leaves out, and what other limits would: NOT PRIVATE.

    Of linked tables, on the children without a parent, or beyond `max_per_parent`. Empty without a person column, for
    records, and for batches that can be read only once.

    Examples
    --------
    >>> schema = Schema({"x": 2}, person="id")
    >>> limit_remarks({"x": [0, 1, 1, 0], "id": [7, 7, 7, 8]}, schema)[0]
    "Of each value of 'id' at most 1 row is kept: 50.0% of the rows are left out, of 50.0% of the persons."
    """
    if isinstance(given, (Records, Iterator, pa.RecordBatchReader)):
        return ()
    if isinstance(schema, LinkedSchema):
        return remarks(schema.layout, LinkedSource(given, schema).joined()[1])
    if schema.person is None:
        return ()
    cells = np.arange(1, _MOST_ROWS + 1, dtype=np.int64)
    opened = given if isinstance(given, Source) else open_source(given, schema)
    persons = opened.person_rows(cells)
    if persons is None or not persons.sum():
        return ()

    def left_out(k: int) -> float:
        return float((np.maximum(cells - k, 0) * persons).sum() / (cells * persons).sum())

    k = schema.max_records_per_person
    rows = "1 row is" if k == 1 else f"{k} rows are"
    over = persons[k:].sum() / persons.sum()
    others = ", ".join(f"{left_out(other):.1%} at {other}" for other in (1, 2, 3, 5, 10, 20))
    kept = (
        f"Of each value of {schema.person!r} at most {rows} kept: {left_out(k):.1%} of the rows are left out, of "
        f"{over:.1%} of the persons."
    )
    choice = (
        f"Other limits would leave out {others}. Noise grows with the limit; rows that are left out change the "
        "population. Choose it by what is known without the data, such as how often people come; with a small one, "
        "write `keep: random`."
    )
    return kept, choice


def decode_table(
    records: Records,
    codec: Codec,
    form: Form | None = None,
    *,
    rng: np.random.Generator | None = None,
    persons: npt.NDArray[np.int64] | None = None,
    known: Mapping[str, pa.Array] | None = None,
) -> Any:  # noqa: ANN401 - the kind of table that the form names
    """Return records as a table.

    Parameters
    ----------
    records
        Records over the schema's domain; they must be synthetic if anyone else sees the table.
    codec
        The codec that decodes them.
    form
        The form of the table, as a source has it; a pyarrow table by default.
    rng
        Draws numbers and dates inside their bins.
    persons
        The person of each row; by default each row has its own.
    known
        Columns whose values are known, not only their codes.

    Examples
    --------
    >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 20}})
    >>> records = read_records({"age": [31, 4, 77]}, schema)
    >>> decode_table(records, Codec(schema), rng=np.random.default_rng(0))["age"].to_pylist()
    [33, 0, 75]
    """
    if form is not None and form.kind == "records":
        return records
    form = Form("pyarrow") if form is None else form
    rng = np.random.default_rng() if rng is None else rng
    if isinstance(codec.schema, LinkedSchema):
        return decode_linked(records, codec.schema, form, rng, known)
    columns = codec.decode(records, form.types, rng, persons=persons, known=known)
    nullable = [name for name, column in codec.schema.columns.items() if column.missing]
    return form.frame(columns, nullable=nullable)


def decode_parts(
    records: Records,
    codec: Codec,
    form: Form,
    *,
    rows: int,
    rng: np.random.Generator,
    persons: npt.NDArray[np.int64] | None = None,
    known: Mapping[str, pa.Array] | None = None,
    first: int = 0,
    total: int | None = None,
) -> Iterator[pa.Table]:
    """Yield records as Arrow tables of a given number of rows; at least one table.

    Parameters
    ----------
    records, codec, rng, persons, known
        As for `decode_table`.
    form
        The form of the table, for its types.
    rows
        The maximum number of rows of a part.
    first, total
        The position of the first record in the whole table, and its number of rows, if these are some of them.
    """
    if isinstance(codec.schema, LinkedSchema):
        raise ParameterError("linked tables are not made in parts, for children stand with their parents; use `sample`")
    plain = Form("pyarrow", form.types)
    counts = codec.counts_of(records)
    total = len(records) if total is None else total
    for i, part in enumerate(records.pieces(rows)):
        here = slice(i * rows, i * rows + len(part))
        columns = codec.decode(
            part,
            form.types,
            rng,
            first=first + here.start,
            total=total,
            counts=counts,
            persons=None if persons is None else persons[here],
            known={name: values.slice(here.start, len(part)) for name, values in (known or {}).items()},
        )
        yield plain.frame(columns)


def _all_columns(reader: Reader) -> Iterator[Batch]:
    """Yield batches of all columns of a reader; one empty batch if there are no rows."""
    ((_, names),) = reader.layouts()
    there = False
    for batch in reader.batches(names):
        there = True
        yield Batch(batch.columns)
    if not there:
        yield Batch({name: pa.chunked_array([], reader.form().types.get(name) or pa.null()) for name in names})


def _of_nobody(schema: Schema) -> Schema:
    """Return the schema of synthetic tables, which does not limit the rows of a person."""
    if schema.person is None:
        return schema
    declaration = {key: value for key, value in schema.to_dict().items() if key not in ("person", "columns")}
    return Schema.from_dict({**declaration, "columns": with_person(schema.columns, schema.person)})
