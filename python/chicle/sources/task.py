"""Tasks: work on all rows of a source, batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa

__all__ = ["Columns", "Task"]

Columns: TypeAlias = Mapping[str, pa.ChunkedArray]
"""Some rows of a table: Arrow columns of one length."""

Prepared = TypeVar("Prepared")
_Self = TypeVar("_Self", bound="Task[Any]")


class Task(ABC, Generic[Prepared]):
    """Work on all rows. Its state is as private as the rows.

    A source passes each batch to `prepare`, on any thread or machine, and the results to `add`, in the order of the
    rows. Copies of a fresh task may also work on parts of a table and be merged, so tasks can be pickled.
    """

    @abstractmethod
    def prepare(self, batch: Columns) -> Prepared:
        """Return what the task needs of a batch, without changing the task; raise a SchemaError if rows do not fit."""

    @abstractmethod
    def add(self, prepared: Prepared) -> None:
        """Add the prepared next batch."""

    @abstractmethod
    def merge(self: _Self, other: _Self) -> None:
        """Add the result of another copy, which worked on the rows that follow."""
