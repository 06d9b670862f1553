"""DuckDB relations: each pass runs the query again and streams its rows to this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from chicle.errors import SchemaError
from chicle.sources.frames import Form, arrow_columns
from chicle.sources.readers import Batch, Reader

__all__ = ["Relation"]

_ROWS = 2**17


class Relation(Reader):
    """A relation; only the columns that a pass needs are read. Its connection must stay open and idle.

    Parameters
    ----------
    relation
        The `duckdb.DuckDBPyRelation`.
    skip
        Columns that are not read.
    """

    streams = True

    def __init__(self, relation: Any, skip: Sequence[str] = ()) -> None:  # noqa: ANN401 - DuckDB is optional
        self._relation = relation
        self._names = [name for name in relation.columns if name not in skip]

    def layouts(self) -> Iterator[tuple[str | None, Sequence[str]]]:
        """Yield the names of the columns."""
        yield None, self._names

    def form(self) -> Form:
        """Return the form of an Arrow table with the same types: DuckDB reads it by its name."""
        none = pa.Table.from_batches([], self._reader(self._names, limit=0).schema)
        return Form.of(none, arrow_columns(none))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Run the query and yield its rows."""
        reader = self._reader(names)
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError):
                raise _failed("an error while it runs") from None
            columns = arrow_columns(batch)
            yield Batch({name: columns[name] for name in names})

    def _reader(self, names: Sequence[str], limit: int | None = None) -> pa.RecordBatchReader:
        quoted = ('"' + name.replace('"', '""') + '"' for name in names)
        chosen = self._relation.project(", ".join(quoted))
        try:
            chosen = chosen if limit is None else chosen.limit(limit)
            # The name of this method changed in 2026.
            return (getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader)(_ROWS)
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
                raise
            raise _failed(type(error).__name__) from None


def _failed(kind: str) -> SchemaError:
    # DuckDB's own message may quote values.
    return SchemaError(f"the relation cannot be read: DuckDB raises {kind}; run the query without chicle to see why")
