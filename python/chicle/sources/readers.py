"""Where the batches of a source come from: a frame, which is one batch, or batches that somebody gives.

A reader knows nothing of declarations. Each batch tells where it comes from, so that an error can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from chicle.errors import SchemaError
from chicle.sources.frames import Form, arrow_columns

__all__ = ["Batch", "Batches", "Frame", "Reader"]


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    Attributes
    ----------
    columns
        Arrow columns of one length.
    where
        What to call the place that they come from, such as a file.
    part
        Which part of the source has been read with this batch, as far as that is known.
    """

    columns: dict[str, pa.ChunkedArray]
    where: str | None = None
    part: float | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))


class Reader(ABC):
    """What gives the batches of a table.

    Attributes
    ----------
    streams
        Whether the batches can be read again and again, from where they are; else their codes are kept in memory.
    """

    streams: bool = False

    @abstractmethod
    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Give the column names of each part of the table, and what to call that part."""

    @abstractmethod
    def form(self) -> Form:
        """Return what a synthetic table should look like."""

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Give the rows, batch by batch, in the same order each time; only these columns."""


class Frame(Reader):
    """A data frame, or a mapping of arrays: one batch."""

    def __init__(self, frame: Any, skip: Sequence[str] = ()) -> None:  # noqa: ANN401 - any frame
        self._columns = arrow_columns(frame, skip)
        self._form = Form.of(frame, self._columns)

    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Give the names of the frame's columns."""
        return [(None, list(self._columns))]

    def form(self) -> Form:
        """Return the kind of frame, and its types."""
        return self._form

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Give the whole frame."""
        yield Batch({name: self._columns[name] for name in names}, part=1.0)


class Batches(Reader):
    """Frames that come one after the other, all with the same columns.

    Parameters
    ----------
    give
        Called for every reading with the names of columns: returns the batches, which may have others too.
    streams
        Whether it can be called more than once.
    """

    def __init__(self, give: Callable[[Sequence[str] | None], Iterable[Any]], *, streams: bool) -> None:
        self._give = give
        self.streams = streams
        first, rest = self._begin(None)
        # Where batches come once, the first one is kept for the only reading.
        self._begun = None if streams else (first, rest)
        columns = arrow_columns(first)
        self._names = list(columns)
        self._form = Form("pyarrow", Form.of(first, columns).types)

    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Give the names of the first batch's columns."""
        return [(None, self._names)]

    def form(self) -> Form:
        """Return an Arrow table of the first batch's types."""
        return self._form

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Give the batches as they come."""
        if self.streams:
            first, rest = self._begin(names)
        elif self._begun is not None:
            first, rest = self._begun
            self._begun = None
        else:
            raise SchemaError("these batches can be read once only; give a list of them, or a function that opens them")
        for number, frame in enumerate(chain([first], rest), 1):
            columns = arrow_columns(frame)
            for name in names:
                if name not in columns:
                    raise SchemaError(f"batch {number} has no column {name!r}; all batches have the same columns")
            yield Batch({name: columns[name] for name in names})

    def _given(self, names: Sequence[str] | None) -> Iterator[Any]:
        """Give the batches; what Arrow says of those that it can not read quotes values, and is not passed on."""
        try:
            yield from self._give(names)
        except pa.ArrowException:
            raise SchemaError("the batches can not be read: Arrow refuses one; read them by themselves first") from None

    def _begin(self, names: Sequence[str] | None) -> tuple[Any, Iterator[Any]]:
        rest = self._given(names)
        for first in rest:
            return first, rest
        raise SchemaError("there are no batches; give at least one, without rows if need be, for it tells the columns")
