"""Where the batches of a source come from: a frame, which is one batch, or batches that somebody gives.

A reader knows nothing of declarations. Each batch tells where it comes from, so that an error can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from chicle.errors import SchemaError
from chicle.frames import Form, arrow_columns

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
    again
        Whether the batches can be read more than once.
    """

    again: bool = True

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
        Called for every reading: returns the batches.
    again
        Whether it can be called more than once.
    """

    def __init__(self, give: Callable[[], Iterable[Any]], *, again: bool) -> None:
        self._give = give
        self.again = again
        # The first batch tells the columns; where batches come once, it is kept for the reading.
        self._begun: tuple[Any, Iterator[Any]] | None = self._begin()
        first = self._begun[0]
        self._names = list(arrow_columns(first))
        self._form = Form("pyarrow", Form.of(first, arrow_columns(first)).types)

    def layouts(self) -> Iterable[tuple[str | None, Sequence[str]]]:
        """Give the names of the first batch's columns."""
        return [(None, self._names)]

    def form(self) -> Form:
        """Return an Arrow table of the first batch's types."""
        return self._form

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Give the batches as they come."""
        if self._begun is None and not self.again:
            raise SchemaError("these batches can be read once only; give a list of them, or a function that opens them")
        first, rest = self._begin() if self._begun is None else self._begun
        self._begun = None
        yield self._batch(first, names)
        for frame in rest:
            yield self._batch(frame, names)

    def _begin(self) -> tuple[Any, Iterator[Any]]:
        rest = iter(self._give())
        for first in rest:
            return first, rest
        raise SchemaError("there are no batches; give at least one, without rows if need be, for it tells the columns")

    def _batch(self, frame: Any, names: Sequence[str]) -> Batch:  # noqa: ANN401
        columns = arrow_columns(frame)
        for name in names:
            if name not in columns:
                raise SchemaError(f"a batch has no column {name!r}; all batches have the same columns")
        return Batch({name: columns[name] for name in names})
