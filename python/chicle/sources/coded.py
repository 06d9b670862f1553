"""Records as a source: rows in memory that are encoded already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pyarrow as pa

from chicle.codecs import Codec
from chicle.counting.records import Records
from chicle.schema import Schema
from chicle.sources.frames import Form
from chicle.sources.source import Source
from chicle.sources.task import Task

__all__ = ["CodedSource"]

_Task = TypeVar("_Task", bound=Task[Any])


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
