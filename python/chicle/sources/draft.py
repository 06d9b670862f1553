"""Draft a schema from a table of any kind: **not private**."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from chicle.columns.base import arrow_kind
from chicle.errors import SchemaError
from chicle.schema import Schema
from chicle.schema.draft import draft_columns
from chicle.sources.files import are_files, find_files
from chicle.sources.frames import arrow_columns
from chicle.sources.table_files import read_table

__all__ = ["draft_schema"]


def draft_schema(source: Any) -> Schema:  # noqa: ANN401 - any data frame
    """Propose a schema for a table. NOT PRIVATE: it is read from the data.

    The draft is marked ``reviewed: false`` and `fit` refuses it. Its `flags` say what to look at in each column. Save
    it, replace what came from the data by public knowledge, say in ``source:`` where that stands, and set
    ``reviewed: true``.

    Parameters
    ----------
    source
        A pandas, polars or pyarrow table, or files of one: a path, a pattern, or several. It is read into memory.

    Examples
    --------
    >>> schema = draft_schema({"age": [31, 4, 77], "smoker": [True, None, False]})
    >>> schema.reviewed
    False
    >>> print(schema)  # doctest: +ELLIPSIS
    DRAFT, NOT PRIVATE: this schema was read from the data. ...
    Schema of 2 columns, rows: 1 a person
      age     integer, 74 codes
      smoker  boolean, 3 codes with missing
    """
    if not are_files(source):
        return draft_columns(arrow_columns(source))
    paths = find_files(source)
    return draft_columns(_read_files(paths), paths[0].name)


def _read_files(paths: Sequence[Path]) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table that is split into files."""
    parts = [arrow_columns(read_table(path, as_text=True)) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if part.keys() != parts[0].keys():
            raise SchemaError(f"{path} has other columns than {paths[0]}; draft from files of the same columns")
    return {name: _joined(name, [part[name] for part in parts]) for name in parts[0]}


def _joined(name: str, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    tables = [pa.table({name: part}) for part in parts]
    try:
        return pa.concat_tables(tables, promote_options="permissive")[name]
    except pa.ArrowException:
        kinds = " and ".join(dict.fromkeys(arrow_kind(part.type) for part in parts))
        raise SchemaError(
            f"column {name!r} has {kinds} in different files; draft from one file, and declare a type for all of them"
        ) from None
