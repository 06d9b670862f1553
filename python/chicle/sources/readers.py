"""Readers of batches: a frame, which is one batch, or a sequence of batches.

Each batch says where it comes from, for error messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from chicle.columns import Drop
from chicle.errors import SchemaError
from chicle.schema import Schema
from chicle.sources.frames import Form, arrow_columns

__all__ = ["Batch", "Batches", "Frame", "Reader", "dropped"]


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    Attributes
    ----------
    columns
        Arrow columns of one length.
    where
        The name of their origin, such as a file.
    part
        The share of the source that has been read with this batch, if known.
    """

    columns: dict[str, pa.ChunkedArray]
    where: str | None = None
    part: float | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))


class Reader(ABC):
    """Reads a table in batches.

    Attributes
    ----------
    streams
        Whether the batches can be read several times. If not, their codes are kept in memory.
    """

    streams: bool = False

    @abstractmethod
    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Yield the name and the column names of each part of the table."""

    @abstractmethod
    def form(self) -> Form:
        """Return the form of a synthetic table."""

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield these columns batch by batch, with the rows in the same order each time."""


class Frame(Reader):
    """A data frame, or a mapping of arrays: one batch."""

    def __init__(self, frame: Any, skip: Sequence[str] = ()) -> None:  # noqa: ANN401 - any frame
        self._columns = arrow_columns(frame, skip)
        self._form = Form.of(frame, self._columns)

    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Return the names of the frame's columns."""
        return [(None, list(self._columns))]

    def form(self) -> Form:
        """Return the form of the frame."""
        return self._form

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the whole frame."""
        yield Batch({name: self._columns[name] for name in names}, part=1.0)


class Batches(Reader):
    """A sequence of frames with the same columns.

    Parameters
    ----------
    give
        Called for each reading with the names of columns; returns the batches, which may have further columns.
    streams
        Whether it can be called several times.
    """

    def __init__(self, give: Callable[[Sequence[str] | None], Iterable[Any]], *, streams: bool) -> None:
        self._give = give
        self.streams = streams
        first, rest = self._begin(None)
        # If batches can be read only once, the first one is kept for that reading.
        self._begun = None if streams else (first, rest)
        columns = arrow_columns(first)
        self._names = list(columns)
        self._form = Form("pyarrow", Form.of(first, columns).types)

    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Return the names of the first batch's columns."""
        return [(None, self._names)]

    def form(self) -> Form:
        """Return the form of an Arrow table with the first batch's types."""
        return self._form

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the batches in order."""
        if self.streams:
            first, rest = self._begin(names)
        elif self._begun is not None:
            first, rest = self._begun
            self._begun = None
        else:
            raise SchemaError("these batches can be read only once; give a list of them, or a function that opens them")
        for number, frame in enumerate(chain([first], rest), 1):
            columns = arrow_columns(frame)
            for name in names:
                if name not in columns:
                    raise SchemaError(f"batch {number} has no column {name!r}; all batches must have the same columns")
            yield Batch({name: columns[name] for name in names})

    def _given(self, names: Sequence[str] | None) -> Iterator[Any]:
        """Yield the batches. Arrow's errors quote values, so they are replaced."""
        try:
            yield from self._give(names)
        except pa.ArrowException:
            raise SchemaError("the batches cannot be read: Arrow refuses one; test them without chicle first") from None

    def _begin(self, names: Sequence[str] | None) -> tuple[Any, Iterator[Any]]:
        rest = self._given(names)
        for first in rest:
            return first, rest
        raise SchemaError("there are no batches; give at least one, even without rows, because it has the columns")


def dropped(schema: Schema) -> list[str]:
    """Return the dropped columns: they are not read, so nothing in them can fail."""
    return [name for name, column in schema.columns.items() if isinstance(column, Drop) and name != schema.person]
