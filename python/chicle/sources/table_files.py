"""Read and write tables in files, whole or in batches: CSV (also gzipped), Parquet and Arrow, by the file's ending.

A CSV file has no types. With a schema, each column is read as its declared type: a code such as ``06`` does not become
a number, and the type of a synthetic column does not depend on private values. A column that cannot be read as declared
is read as text, and encoding then reports the problem. Arrow's own messages quote values, so they are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from chicle._write import replacing
from chicle.columns.base import is_text
from chicle.columns.marks import NO_VALUE, is_mark
from chicle.errors import ArtefactError, ChicleError, ParameterError
from chicle.schema import Schema
from chicle.sources.csv_header import NOT_UTF8, check_header
from chicle.sources.dialect import dialect_of, fields_differ
from chicle.sources.sheets import read_sheet
from chicle.sources.unpacked import Unpacked, is_gzipped

__all__ = ["check_ending", "layout", "read_batches", "read_table", "write_explained", "write_table"]

_Table = TypeVar("_Table", pa.Table, pa.RecordBatch)

_WRITTEN = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_NULLS = list(NO_VALUE)
_WHERE = re.compile(r"In CSV column #(\d+)")
# The type to try next if a column cannot be read as a type; otherwise text.
_WIDER = {pa.null(): pa.int64(), pa.int64(): pa.float64()}

_BATCH_ROWS = 2**17
_BLOCK_BYTES = 2**23  # of CSV that make a batch


def check_ending(path: str | Path, *, written: bool = False) -> str:
    """Return the kind of a file by its name: ``".csv"``, ``".tsv"``, ``".xlsx"``, ``"parquet"`` or ``"arrow"``."""
    name = Path(path).name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in _WRITTEN:
        return ending
    if not name.endswith(".gz"):
        if ending in _PARQUET:
            return "parquet"
        if ending in _ARROW:
            return "arrow"
        if ending == ".xlsx" and not written:
            return ending
    known = "*.csv, *.csv.gz, *.tsv, *.parquet, *.arrow, *.feather" + ("" if written else ", *.xlsx")
    raise ParameterError(f"{path} has an unknown ending; a table is one of {known}")


def read_table(path: str | Path, schema: Schema | None = None, *, as_text: bool = False) -> pa.Table:
    r"""Return the table in a file.

    Parameters
    ----------
    path
        A file that ends in .csv, .tsv (or these and .gz), .parquet, .arrow or .feather.
    schema
        Declares the types of a CSV file; without it, types are guessed.
    as_text
        Read every column of a CSV file as text instead, so that 007 is not 7.

    Examples
    --------
    >>> import tempfile
    >>> schema = Schema({"zip": {"type": "categorical", "values": ["06", "10"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("zip\n06\n", encoding="utf-8")
    ...     read_table(f"{folder}/a.csv", schema)["zip"].to_pylist()
    ['06']
    """
    kind = check_ending(path)
    with _explained(path):
        if kind == "parquet":
            with pq.ParquetFile(path) as file:
                return file.read()
        if kind == "arrow":
            return _read_arrow(path)
        return read_sheet(path) if kind == ".xlsx" else _read_csv(path, schema, as_text=as_text)


def layout(path: str | Path, schema: Schema | None = None) -> pa.Schema:
    """Return the columns of the table in a file, and their types.

    The types of a CSV file are the declared ones. A type that only the values decide is null; then the declared column
    decides. Without a schema, the first rows decide.
    """
    kind = check_ending(path)
    with _explained(path):
        if kind == "parquet":
            return pq.read_schema(path)
        if kind == "arrow":
            with _open_arrow(path) as reader:
                return reader.schema
        if kind == ".xlsx":
            begins = read_sheet(path).schema
        else:
            with closing(_CsvBatches(path, schema)) as batches:
                begins = batches.open()
        if schema is None:
            return begins
        asked = _asked(schema, declared=True)
        return pa.schema([(name, asked.get(name, pa.null())) for name in begins.names])


def read_batches(
    path: str | Path, names: Sequence[str], schema: Schema | None = None
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield some columns of the table in a file, batch by batch, each with the share of the file read so far.

    Texts of a Parquet file are kept as it stores them, mostly as a dictionary, which is faster to encode.
    """
    kind = check_ending(path)
    with _explained(path):
        if kind == "parquet":
            yield from _parquet_batches(path, names, schema)
        elif kind == "arrow":
            yield from _arrow_batches(path, names)
        elif kind == ".xlsx":
            for batch in read_sheet(path).select(names).to_batches(_BATCH_ROWS):
                yield batch, 1.0
        else:
            with closing(_CsvBatches(path, schema)) as batches:
                yield from batches.read(names)


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Replace errors of reading a file by messages that quote nothing of it."""
    try:
        yield
    except (pa.ArrowException, EOFError, UnicodeError, ValueError) as error:
        if isinstance(error, ChicleError):
            raise
        if "UTF8" in str(error):
            raise ArtefactError(f"{path} cannot be read: {NOT_UTF8}") from None
        if "columns, got" in str(error) and (where := fields_differ(path, dialect_of(path))) is not None:
            raise ArtefactError(
                f"{path} cannot be read: {where}; quote fields that hold the separator, or correct the line"
            ) from None
        raise ArtefactError(
            f"{path} cannot be read as the kind of file that its ending says: it is empty, cut short, of another kind, "
            "or its rows differ in length"
        ) from None
    except OSError as error:
        # Arrow adds the path and more to the message.
        why = error.strerror if error.strerror and "\n" not in error.strerror else "the file is damaged"
        why = "there is no such file" if isinstance(error, FileNotFoundError) else why
        raise ArtefactError(f"{path} cannot be read: {why}; is the path right?") from None


def write_table(table: pa.Table | Iterable[pa.Table], path: str | Path) -> int:
    """Write a table, whole or in parts, in the format of the file's ending; return its number of rows.

    The file is written whole or not at all.
    """
    check_ending(path, written=True)
    with replacing(path) as beside:
        return write_explained(table, beside, path)


def _write(table: pa.Table | Iterable[pa.Table], path: str | Path) -> int:
    kind = check_ending(path, written=True)
    parts = iter([table] if isinstance(table, pa.Table) else table)
    first = next(parts)
    if kind == "arrow" and any(pa.types.is_dictionary(dtype) for dtype in first.schema.types):
        # An Arrow file has one dictionary for each column, which needs the whole column.
        first, parts = pa.concat_tables([first, *parts]).unify_dictionaries().combine_chunks(), iter(())
    if kind.startswith("."):
        first, parts = _without_dictionaries(first), map(_without_dictionaries, parts)
    rows = 0
    with _writer(path, kind, first.schema) as writer:
        for part in chain([first], parts):
            writer.write_table(part)
            rows += len(part)
    return rows


def write_explained(table: pa.Table | Iterable[pa.Table], beside: Path, output: str | Path) -> int:
    """Write a table to a place beside `output`, for the caller to rename; errors say what to do, and name `output`."""
    try:
        return _write(table, beside)
    except (OSError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)
        why = "a column has a type that this format cannot hold; try .parquet"
        if number is not None:
            why = f"{os.strerror(number)}; make room, or choose another place"
        raise ArtefactError(f"{output} cannot be written: {why}") from None


@contextmanager
def _writer(path: str | Path, kind: str, schema: pa.Schema) -> Iterator[Any]:
    if kind == "parquet":
        with pq.ParquetWriter(path, schema) as writer:
            yield writer
        return
    gzipped = kind.startswith(".") and str(path).lower().endswith(".gz")
    with pa.output_stream(str(path), compression="gzip" if gzipped else None) as file:
        if kind == "arrow":
            made = pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        else:
            made = pcsv.CSVWriter(file, schema, write_options=pcsv.WriteOptions(delimiter=_WRITTEN[kind]))
        with made as writer:
            yield writer


def _read_arrow(path: str | Path) -> pa.Table:
    with _open_arrow(path) as reader:
        return reader.read_all()


@contextmanager
def _open_arrow(path: str | Path, columns: Sequence[int] | None = None) -> Iterator[Any]:
    """Open a file of either of Arrow's formats."""
    options = pa.ipc.IpcReadOptions(included_fields=None if columns is None else list(columns))
    with pa.OSFile(str(path)) as file:
        try:
            reader = pa.ipc.open_file(file, options=options)
        except pa.ArrowInvalid:
            file.seek(0)
            reader = pa.ipc.open_stream(file, options=options)
        with reader:
            yield reader


def _arrow_batches(path: str | Path, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
    with _open_arrow(path) as reader:
        places = sorted(reader.schema.get_field_index(name) for name in names)
    with _open_arrow(path, places) as reader:
        if isinstance(reader, pa.RecordBatchFileReader):
            number = reader.num_record_batches
            for i in range(number):
                yield from _in_parts(reader.get_batch(i), i / number, 1 / number)
        else:
            for batch in reader:
                yield from _in_parts(batch, 0.0, 0.0)


def _in_parts(batch: pa.RecordBatch, begin: float, share: float) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield a batch, which may be very large, in batches of the usual size."""
    for row in range(0, len(batch), _BATCH_ROWS):
        yield batch.slice(row, _BATCH_ROWS), begin + share * min(1.0, (row + _BATCH_ROWS) / len(batch))


def _parquet_batches(
    path: str | Path, names: Sequence[str], schema: Schema | None
) -> Iterator[tuple[pa.RecordBatch, float]]:
    types = pq.read_schema(path)
    person = None if schema is None else schema.person
    texts = [name for name in names if is_text(types.field(name).type) and name != person]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        rows, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(names)):
            rows += len(batch)
            yield batch, rows / total


class _Csv:
    """How a CSV file is read: its dialect, its names, its types."""

    def __init__(self, path: str | Path, schema: Schema | None) -> None:
        self.path, self.schema = path, schema
        self.dialect = dialect_of(path)
        self.names = check_header(path, self.dialect, () if schema is None else schema.columns)
        self.types = _asked(schema)
        self.parse = pcsv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=True)
        # In a table of one column, an empty line is a row.
        self.parse.ignore_empty_lines = len(self.names) > 1

    def options(self, names: Sequence[str] | None = None, block: int | None = None) -> dict[str, Any]:
        """Return the options of pyarrow to read some columns."""
        read = pcsv.ReadOptions(
            block_size=block, encoding=self.dialect.encoding, column_names=self.names, skip_rows_after_names=1
        )
        convert = pcsv.ConvertOptions(
            column_types=self.types,
            null_values=_NULLS,
            include_columns=None if names is None else list(names),
            decimal_point=self.dialect.decimal,
        )
        return {"read_options": read, "parse_options": self.parse, "convert_options": convert}

    def widen(self, error: pa.ArrowInvalid) -> None:
        """Take a wider type for the column that could not be read; raise any other error."""
        found = _WHERE.search(str(error))
        if found is None:
            raise error
        name = self.names[int(found[1])]
        if self.types.get(name) == pa.string():
            raise error
        self.types[name] = _WIDER.get(self.types.get(name), pa.string())

    def cleaned(self, table: _Table) -> _Table:
        """Return a table with trimmed texts, decimal points in those that are numbers, and null for empty ones.

        Declared values that begin or end with a space, and a declared empty text, stay.
        """
        columns = {} if self.schema is None else self.schema.columns
        for i, field in enumerate(table.schema):
            if not is_text(field.type):
                continue
            column, values = columns.get(field.name), table.column(i)
            declared = () if column is None else column.declared_values
            if not any(isinstance(value, str) and value != value.strip() for value in declared):
                values = pc.utf8_trim_whitespace(values)
            if "" not in declared:
                values = pc.if_else(pc.equal(values, ""), None, values)
            if self.dialect.decimal == "," and (column is None or column.arrow_type in (pa.int64(), pa.float64())):
                values = _with_points(values)
            table = table.set_column(i, field.name, values)
        return table


def _with_points(values: Any) -> Any:  # noqa: ANN401 - an array, chunked or not
    """Return texts with decimal points, if they are numbers with decimal commas, and marks of missing values."""
    distinct = values.unique().drop_null()
    numbers = pc.match_substring_regex(distinct, r"^[+-]?\d+(,\d+)?([eE][+-]?\d+)?$")
    if not all(is_mark(text) for text in distinct.filter(pc.invert(numbers)).to_pylist()):
        return values
    return pc.replace_substring(values, ",", ".")


def _read_csv(path: str | Path, schema: Schema | None, *, as_text: bool) -> pa.Table:
    csv = _Csv(path, schema)
    if as_text:
        csv.types = dict.fromkeys(csv.names, pa.string())
    while True:
        try:
            with pa.OSFile(str(path)) as file:
                table = pcsv.read_csv(Unpacked(path, file) if is_gzipped(path) else file, **csv.options())
        except pa.ArrowInvalid as error:  # noqa: PERF203 - once for each column that is not as declared
            csv.widen(error)
        else:
            break
    _check_texts(path, table.schema)
    table = _as_integers(table, [name for name, dtype in _asked(schema).items() if dtype == pa.int64()])
    return csv.cleaned(table)


class _CsvBatches:
    """A CSV file in batches; a column that cannot be read as declared is read as text from there on."""

    def __init__(self, path: str | Path, schema: Schema | None) -> None:
        self._path, self._csv = path, _Csv(path, schema)
        self._size = max(Path(path).stat().st_size, 1)
        self._file = pa.OSFile(str(path))

    def close(self) -> None:
        self._file.close()

    def open(self) -> pa.Schema:
        """Return the columns and their types, by the first rows."""
        return self._reader(self._csv.names).schema

    def read(self, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Yield batches of some columns."""
        done = 0
        while True:
            skip = done
            try:
                for batch in self._reader(names):
                    fresh = batch.slice(min(skip, len(batch)))
                    skip -= len(batch) - len(fresh)
                    done += len(fresh)
                    yield self._csv.cleaned(fresh), min(self._file.tell() / self._size, 1.0)
            except pa.ArrowInvalid as error:
                self._csv.widen(error)
            else:
                return

    def _reader(self, names: Sequence[str]) -> Any:  # noqa: ANN401 - pyarrow has no types
        while True:
            # Opened again: an abandoned reader may still be reading ahead from its file.
            self._file = pa.OSFile(str(self._path))
            stream = Unpacked(self._path, self._file) if is_gzipped(self._path) else self._file
            try:
                reader = pcsv.open_csv(stream, **self._csv.options(names, _BLOCK_BYTES))
            except pa.ArrowInvalid as error:
                self._csv.widen(error)
                continue
            _check_texts(self._path, reader.schema)
            return reader


def _asked(schema: Schema | None, *, declared: bool = False) -> dict[str, pa.DataType]:
    """Return the types with which to read a file: the declared ones, or text where columns themselves read texts."""
    columns = {} if schema is None else schema.columns
    types = {}
    for name, column in columns.items():
        dtype = column.arrow_type if declared or not column.reads_texts else pa.string()
        if dtype is not None:
            types[name] = dtype
    if schema is not None and schema.person is not None:
        types[schema.person] = pa.string()  # 007 is not 7
    return types


def _check_texts(path: str | Path, types: pa.Schema) -> None:
    """Raise if Arrow returns bytes because a text is not UTF-8."""
    if any(pa.types.is_binary(field.type) for field in types):
        raise ArtefactError(f"{path} cannot be read: {NOT_UTF8}")


def _as_integers(table: pa.Table, names: list[str]) -> pa.Table:
    """Return declared integers that are written as 31.0 as integers, if all values are whole."""
    for name in names:
        if name in table.column_names and pa.types.is_floating(table.column(name).type):
            try:
                whole = table.column(name).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(table.column_names.index(name), name, whole)
    return table


def _without_dictionaries(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table
