"""Convert any data frame to Arrow columns, and Arrow columns back to the same kind of frame.

All frames use the Arrow C data interface, which shares memory with libraries that store Arrow data. Only pandas is read
column by column, because its own export adds the index and its errors quote values.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from chicle.errors import SchemaError

__all__ = ["Form", "arrow_columns", "table_kind"]

_KINDS = ("records", "pandas", "polars", "pyarrow", "batch", "tables")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(u?int\d+), ordered=([01])>")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns), tz=([\w/+:-]+)\]")
_DECIMAL = re.compile(r"decimal(128|256)\((\d+), (-?\d+)\)")
_OBJECT = np.dtype(object)


def table_kind(source: object) -> str:
    """Return the kind of a table: ``"pandas"``, ``"polars"``, ``"pyarrow"`` or ``"records"``."""
    package = type(source).__module__.partition(".")[0]
    return package if package in ("pandas", "polars", "pyarrow") else "records"


def arrow_columns(source: Any, skip: Collection[str] = ()) -> dict[str, pa.ChunkedArray]:  # noqa: ANN401 - any frame
    """Return the columns of a frame, or of a mapping of arrays, except those to skip, without copies if possible."""
    if table_kind(source) == "pandas" and hasattr(source, "columns"):
        _check_names(list(source.columns))
        return {name: _column(name, source[name]) for name in source.columns if name not in skip}
    if isinstance(source, Mapping):
        _check_names(list(source))
        columns = {name: _column(name, values) for name, values in source.items() if name not in skip}
        if len({len(values) for values in columns.values()}) > 1:
            raise SchemaError("the columns differ in length; each must have a value for every row")
        return columns
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif not isinstance(source, pa.Table):
        framed = table_kind(source) == "polars" and type(source).__name__ == "DataFrame"
        source = _streamed(source.drop(skip, strict=False) if framed and skip else source)
    _check_names(source.column_names)
    return {name: _plain_text(source.column(name)) for name in source.column_names if name not in skip}


def _streamed(source: Any) -> pa.Table:  # noqa: ANN401
    hint = "; call collect() first" if type(source).__name__ == "LazyFrame" else ""
    refusal = SchemaError(f"a table is a pandas, polars or pyarrow frame, not a {type(source).__name__}{hint}")
    if not hasattr(source, "__arrow_c_stream__"):
        raise refusal
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):
        raise refusal from None


@dataclass(frozen=True)
class Form:
    """The form of a synthetic table: the kind of frame, its columns in order, and their types.

    It has types only. Categories, the index and metadata come from the data, so they are left out. A type that only the
    values would decide, as for a list, is null; then the declared column decides.
    """

    kind: str
    types: Mapping[str, pa.DataType | None] = field(default_factory=dict)
    native: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Form] = field(default_factory=dict)
    """The forms of linked tables, by name."""

    @classmethod
    def of(cls, source: Any, columns: Mapping[str, pa.ChunkedArray]) -> Form:  # noqa: ANN401
        """Return the form of a source that was read as these columns."""
        kind = table_kind(source)
        typed = kind != "pandas" and not isinstance(source, Mapping)
        types = {
            name: _public(values.type, "typed" if typed else _dtype_of(source[name]))
            for name, values in columns.items()
        }
        if kind == "pandas":
            return cls(kind, types, {name: _pandas_dtype(source[name].dtype) for name in columns})
        if kind == "polars":
            native = {name: str(dtype).partition("(")[0] for name, dtype in source.schema.items() if name in columns}
            texts = {name: pa.large_string() for name in columns if native[name] == "String"}
            return cls(kind, {**types, **texts}, native)
        if isinstance(source, (pa.Table, pa.RecordBatch)):
            native = {field.name: field.type for field in source.schema if pa.types.is_string_view(field.type)}
            types.update(dict.fromkeys(native, pa.large_string()))
            return cls("batch" if isinstance(source, pa.RecordBatch) else kind, types, native)
        return cls("pyarrow", types)

    def to_dict(self) -> dict[str, Any]:
        """Return the form as plain data, with types by name; a type without a plain name is None."""
        types = {name: None if (said := _type_name(dtype)) is None else said for name, dtype in self.types.items()}
        native = {name: None if dtype is None else _native_name(dtype) for name, dtype in self.native.items()}
        tables = {"tables": {name: one.to_dict() for name, one in self.tables.items()}} if self.tables else {}
        return {"kind": self.kind, "types": types, "native": native, **tables}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Form:
        """Return the form from the plain data of `to_dict`."""
        kind = saved["kind"]
        if kind not in _KINDS:
            raise SchemaError(f"the kind of a table must be one of {', '.join(_KINDS)}, not {kind!r}")
        types = {name: None if said is None else _type_of(said) for name, said in saved["types"].items()}
        native = {name: None if said is None else _native_of(said, kind) for name, said in saved["native"].items()}
        tables = {name: cls.from_dict(one) for name, one in saved.get("tables", {}).items()}
        return cls(kind, types, {name: dtype for name, dtype in native.items() if dtype is not None}, tables)

    def frame(self, columns: Mapping[str, pa.Array], nullable: Collection[str] = ()) -> Any:  # noqa: ANN401
        """Return Arrow columns as a frame of this form; columns that it does not have come last.

        `nullable` names the columns that may have missing values. pandas has other types for these, even if no value is
        missing.
        """
        names = [*(name for name in self.types if name in columns), *(n for n in columns if n not in self.types)]
        if self.kind == "pandas":
            pandas = importlib.import_module("pandas")
            series = {name: self._series(pandas, name, columns[name], name in nullable) for name in names}
            return pandas.DataFrame(series, copy=False)
        table = pa.table({name: self._array(name, columns[name]) for name in names})
        if self.kind == "polars":
            polars = importlib.import_module("polars")
            frame = polars.DataFrame(table)
            enums = {name: columns[name].dictionary.to_pylist() for name in names if self.native.get(name) == "Enum"}
            return frame.cast({name: polars.Enum(labels) for name, labels in enums.items()}) if enums else frame
        if self.kind == "batch":
            return (
                table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], table.schema)
            )
        return table

    def _array(self, name: str, values: pa.Array) -> pa.Array:
        wanted = self.native.get(name)
        return values.cast(wanted) if isinstance(wanted, pa.DataType) else values

    def _series(self, pandas: Any, name: str, values: pa.Array, nullable: bool) -> Any:  # noqa: ANN401
        dtype = self.native.get(name)
        if isinstance(dtype, np.dtype):
            if nullable and dtype.kind in "iu":
                floats = values.cast(pa.float64(), safe=False).to_pandas()
                # Integers that a float cannot hold.
                large = (floats.abs() >= 2.0**53).any()
                return pandas.Series(pandas.Int64Dtype().__from_arrow__(values)) if large else floats
            if dtype == _OBJECT or (nullable and dtype.kind == "b"):
                return pandas.Series(_objects(values), dtype=object)
        elif dtype is not None and hasattr(dtype, "__from_arrow__") and values.type == self.types[name]:
            return pandas.Series(dtype.__from_arrow__(pa.chunked_array([values])))
        return values.to_pandas()


def _check_names(names: list[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(f"a column's name must be text, not of type {type(name).__name__}; rename it")
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise SchemaError(f"column {twice!r} occurs twice; names must differ")


def _column(name: str, values: Any) -> pa.ChunkedArray:  # noqa: ANN401
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError):
        # Arrow's own message quotes values.
        raise SchemaError(
            f"column {name!r} holds values of several types, or of an unknown type; "
            "turn it into text, numbers or dates first"
        ) from None
    return _plain_text(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return string views as a dictionary of texts: few Arrow functions accept views, and copying them is slow."""
    if pa.types.is_string_view(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:  # older pyarrow
            return column.cast(pa.large_string())
    if not pa.types.is_dictionary(column.type) or not pa.types.is_string_view(column.type.value_type):
        return column
    ordered = column.type.ordered
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()), ordered=ordered)
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.large_string(), ordered))


def _dtype_of(values: Any) -> Any:  # noqa: ANN401
    """Return the dtype that the source itself gives a column; None if only the values decide it."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return "typed"
    if not isinstance(values, np.ndarray) and table_kind(values) != "pandas":
        return None
    return getattr(values, "dtype", None)


def _public(inferred: pa.DataType, dtype: Any) -> pa.DataType:  # noqa: ANN401
    """Return the public part of an Arrow type; null if only the values decide the type."""
    if dtype is None or _OBJECT in (dtype, getattr(dtype, "subtype", None)):
        return pa.null()
    if pa.types.is_dictionary(inferred):
        categories = getattr(dtype, "categories", None)
        value_type = pa.null() if getattr(categories, "dtype", None) == _OBJECT else inferred.value_type
        # The width of the indices would reveal how many categories there are.
        return pa.dictionary(pa.int32(), value_type, inferred.ordered)
    return inferred


def _pandas_dtype(dtype: Any) -> Any:  # noqa: ANN401
    """Return a pandas dtype, or None for categories, which must be declared, not read from the data."""
    return None if type(dtype).__name__ == "CategoricalDtype" else dtype


def _objects(values: pa.Array) -> Any:  # noqa: ANN401
    if pa.types.is_integer(values.type) and values.null_count:
        return values.to_pandas(integer_object_nulls=True)
    return values.to_numpy(zero_copy_only=False).astype(object)


def _type_name(dtype: pa.DataType | None) -> str | None:
    """Return the name of an Arrow type, if `_type_of` knows it."""
    name = str(dtype)
    try:
        return name if _type_of(name) == dtype else None
    except ValueError:
        return None


def _type_of(name: str) -> pa.DataType:
    """Return the Arrow type of a name; raise a ValueError if there is none."""
    if found := _DICTIONARY.fullmatch(name):
        return pa.dictionary(_type_of(found[2]), _type_of(found[1]), found[3] == "1")
    if found := _TIMESTAMP.fullmatch(name):
        return pa.timestamp(found[1], found[2])
    if found := _DECIMAL.fullmatch(name):
        make = pa.decimal128 if found[1] == "128" else pa.decimal256
        return make(int(found[2]), int(found[3]))
    return pa.string_view() if name == "string_view" else pa.type_for_alias(name)


def _native_name(dtype: Any) -> str:  # noqa: ANN401 - a type of pandas, polars or Arrow
    name, storage = str(dtype), getattr(dtype, "storage", None)
    return f"string[{storage}]" if name == "string" and storage else name


def _native_of(name: str, kind: str) -> Any:  # noqa: ANN401
    if kind == "polars":
        return name
    if kind != "pandas":
        return _type_of(name)
    try:
        return importlib.import_module("pandas").api.types.pandas_dtype(name)
    except (ImportError, TypeError, ValueError):
        return None  # then Arrow's own conversion decides
