"""Parquet files behind a Spark frame, for executors to read themselves.

A frame that is nothing but a scan of Parquet files gives the same rows as its files, and reading them in Python spares
the way through the JVM, where each text is copied several times. Only local or mounted files (`file:`) are read so, at
the same path on every executor as Spark itself needs them; only types that Spark and Arrow read alike. Everything else
goes through Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from chicle.columns.base import is_text
from chicle.errors import SchemaError
from chicle.sources.tasks import Columns

__all__ = ["FilePart", "file_parts", "read_parts"]

_PART = 2**27
"""Bytes of a file that one task reads at most, as in Spark's own scans."""


@dataclass(frozen=True)
class FilePart:
    """A range of bytes of a file: the row groups that begin in it.

    Attributes
    ----------
    path
        The file.
    begin, end
        The range.
    """

    path: str
    begin: int
    end: int


def file_parts(frame: Any, types: pa.Schema) -> list[list[FilePart]] | None:  # noqa: ANN401 - pyspark is optional
    """Return for each task the parts of files that it reads, in a plain Parquet scan; None for any other frame."""
    if not all(map(_read_alike, types.types)) or not _is_plain_scan(frame):
        return None
    urls = [urlsplit(url) for url in frame.inputFiles()]
    if any(url.scheme != "file" for url in urls):
        return None
    paths = [Path(unquote(url.path)) for url in urls]
    if not all(path.is_file() for path in paths):
        return None
    workers = frame.sparkSession.sparkContext.defaultParallelism
    sizes = [path.stat().st_size for path in paths]
    most = max(min(_PART, -(-sum(sizes) // workers)), 1)
    tasks: list[list[FilePart]] = []
    room = 0
    for path, size in zip(paths, sizes, strict=True):
        for begin in range(0, size, most):
            if room <= 0:
                tasks.append([])
                room = most
            tasks[-1].append(FilePart(str(path), begin, begin + most))
            room -= min(most, size - begin)
    return tasks


def read_parts(parts: Iterable[FilePart], types: dict[str, pa.DataType], rows: int) -> Iterator[Columns]:
    """Yield some columns of the row groups that begin in ranges of bytes, so many rows at a time."""
    for part in parts:
        yield from _read_part(part, types, rows)


def _read_part(part: FilePart, types: dict[str, pa.DataType], rows: int) -> Iterator[Columns]:
    name = Path(part.path).name
    try:
        there = pq.read_schema(part.path)
        if any(
            column not in there.names or _kind(there.field(column).type) != _kind(types[column]) for column in types
        ):
            raise SchemaError(f"{name}: its columns or their types are not those of the frame; write it again")
        texts = [column for column, dtype in types.items() if is_text(dtype)]
        with pq.ParquetFile(part.path, read_dictionary=texts) as file:
            groups = [i for i in range(file.num_row_groups) if part.begin <= _begin(file, i) < part.end]
            if not groups:
                return
            for batch in file.iter_batches(rows, row_groups=groups, columns=list(types), use_threads=False):
                yield {column: pa.chunked_array([batch.column(column)]) for column in types}
    except (OSError, pa.ArrowException):
        # Arrow's own message may quote values.
        raise SchemaError(f"{name} cannot be read as Parquet on an executor; is it there, and whole?") from None


def _begin(file: pq.ParquetFile, group: int) -> int:
    column = file.metadata.row_group(group).column(0)
    found: int = column.dictionary_page_offset or column.data_page_offset
    return found


def _kind(dtype: pa.DataType) -> pa.DataType:
    """Return a type without what Spark and Arrow call differently."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.string() if is_text(dtype) else dtype


def _read_alike(dtype: pa.DataType) -> bool:
    """Return whether Spark and Arrow read a type alike: no timestamps, whose zone may differ, and nothing nested."""
    of = pa.types
    return bool(
        is_text(dtype)
        or of.is_signed_integer(dtype)
        or of.is_floating(dtype)
        or of.is_boolean(dtype)
        or of.is_date(dtype)
    )


def _is_plain_scan(frame: Any) -> bool:  # noqa: ANN401
    """Return whether a frame is one relation of Parquet files without partition columns, filters or joins."""
    java = getattr(frame, "_jdf", None)
    if java is None:  # Spark Connect keeps its plans to itself
        return False
    plan = java.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return False
    relation = plan.relation()
    return bool(
        relation.getClass().getSimpleName() == "HadoopFsRelation"
        and relation.fileFormat().getClass().getSimpleName() == "ParquetFileFormat"
        and relation.partitionSchema().isEmpty()
    )
