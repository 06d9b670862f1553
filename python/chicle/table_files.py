"""Tables in files: CSV (also gzipped), Parquet and Arrow, by the ending of their name, through pyarrow.

A CSV file has no types. With a schema each column is read as what it was declared to be, so that neither a code such as
``06`` becomes a number nor the type of a synthetic column depends on the private values. What can not be read as
declared is read as text, and the schema then says what is wrong. Arrow's own messages quote values: none is passed on.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.feather as pf
import pyarrow.parquet as pq

from chicle.columns import Categorical, Coded, Column, Date, DateTime, Determined, Integer, Number, Open, Ordinal
from chicle.columns.base import is_text
from chicle.csv_header import NOT_UTF8, check_header
from chicle.errors import ArtefactError, ParameterError
from chicle.schema import Schema

__all__ = ["check_ending", "read_table", "write_table"]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None"]
_WHERE = re.compile(r"In CSV column #(\d+)")
# What to try where a column can not be read as a type, before text.
_WIDER = {pa.int64(): pa.float64()}


def check_ending(path: str | Path) -> str:
    """Return the kind of a file by its name: ``".csv"``, ``".tsv"``, ``"parquet"`` or ``"arrow"``."""
    name = Path(path).name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending in _DELIMITERS:
        return ending
    if not name.endswith(".gz"):
        if ending in _PARQUET:
            return "parquet"
        if ending in _ARROW:
            return "arrow"
    known = "*.csv, *.csv.gz, *.tsv, *.parquet, *.arrow, *.feather"
    raise ParameterError(f"{path} has an ending that is not known; a table is one of {known}")


def read_table(path: str | Path, schema: Schema | None = None) -> pa.Table:
    r"""Return the table in a file.

    Parameters
    ----------
    path
        A file that ends in .csv, .tsv (or these and .gz), .parquet, .arrow or .feather.
    schema
        What the columns of a CSV file are; without one they are guessed.

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
    try:
        if kind == "parquet":
            with pq.ParquetFile(path) as file:
                return file.read()
        if kind == "arrow":
            return _read_arrow(path)
        return _read_csv(path, _DELIMITERS[kind], schema)
    except (pa.ArrowException, EOFError, UnicodeError, ValueError) as error:
        if "UTF8" in str(error):
            raise ArtefactError(f"{path} can not be read: {NOT_UTF8}") from None
        raise ArtefactError(
            f"{path} can not be read as what its ending says: it is empty, cut short, of another kind, or its "
            "rows differ in length"
        ) from None
    except OSError as error:
        # Arrow adds the path and more to the text.
        why = error.strerror if error.strerror and "\n" not in error.strerror else "the file is damaged"
        why = "there is no such file" if isinstance(error, FileNotFoundError) else why
        raise ArtefactError(f"{path} can not be read: {why}; is the path right?") from None


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a table in the format that the ending of the file says."""
    kind = check_ending(path)
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        # A feather file of version 2 is an Arrow file.
        pf.write_feather(table, path, compression="zstd")
    else:
        options = pcsv.WriteOptions(delimiter=_DELIMITERS[kind])
        with pa.output_stream(str(path), compression="gzip" if str(path).lower().endswith(".gz") else None) as file:
            pcsv.write_csv(_without_dictionaries(table), file, options)


def _read_arrow(path: str | Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        try:
            return pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file).read_all()


def _read_csv(path: str | Path, delimiter: str, schema: Schema | None) -> pa.Table:
    columns = {} if schema is None else schema.columns
    types = {name: dtype for name, column in columns.items() if (dtype := _declared(column)) is not None}
    if schema is not None and schema.person is not None:
        types[schema.person] = pa.string()  # 007 is not 7
    asked = dict(types)
    parse = pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = _names(path, parse)
    # In a table of one column an empty line is a row.
    parse.ignore_empty_lines = len(names) > 1
    while True:
        try:
            table = pcsv.read_csv(
                path, parse_options=parse, convert_options=pcsv.ConvertOptions(column_types=types, null_values=_NULLS)
            )
        except pa.ArrowInvalid as error:  # noqa: PERF203 - a turn for each column that is not as declared
            found = _WHERE.search(str(error))
            if found is None:
                raise
            name = names[int(found[1])]
            if types.get(name) == pa.string():
                raise
            types[name] = _WIDER.get(types.get(name), pa.string())
        else:
            break
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise ArtefactError(f"{path} can not be read: {NOT_UTF8}")
    table = _as_integers(table, [name for name, dtype in asked.items() if dtype == pa.int64()])
    kept = [name for name, column in columns.items() if "" in _listed(column)]
    for i, (name, values) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if is_text(values.type) and name not in kept:
            # An empty field is a missing value, unless it was declared as a value.
            table = table.set_column(i, name, pc.if_else(pc.equal(values, ""), None, values))
    return table


def _as_integers(table: pa.Table, names: list[str]) -> pa.Table:
    """Return declared integers that are written as 31.0 as integers, where all are."""
    for name in names:
        if name in table.column_names and pa.types.is_floating(table.column(name).type):
            try:
                whole = table.column(name).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(table.column_names.index(name), name, whole)
    return table


def _names(path: str | Path, parse: pcsv.ParseOptions) -> list[str]:
    check_header(path, parse.delimiter)
    with pcsv.open_csv(path, parse_options=parse) as reader:
        names: list[str] = reader.schema.names
    return names


def _declared(column: Column) -> pa.DataType | None:
    """Return the type that a declaration tells; ``None`` leaves it to the file."""
    listed = _listed(column)
    if listed and all(isinstance(value, str) for value in listed):
        return pa.string()
    if isinstance(column, (Integer, Coded)) or (listed and all(type(value) is int for value in listed)):
        return pa.int64()
    if isinstance(column, Number):
        return pa.float64()
    if isinstance(column, Date):
        return pa.date32()
    if isinstance(column, DateTime):
        return pa.timestamp("us", column.timezone)
    return None


def _listed(column: Column) -> tuple[object, ...]:
    """Return the values that a declaration lists, if it does."""
    if isinstance(column, Determined):
        told = column.to_dict()["map"]
        return tuple(told.values()) if isinstance(told, dict) else tuple(value for _, value in told)
    if isinstance(column, Open):
        return (column.other,)
    return tuple(column.values) if isinstance(column, (Categorical, Ordinal)) else ()


def _without_dictionaries(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table
