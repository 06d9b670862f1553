"""Bins that are discovered privately, with budget: ``bins: private``, or ``bins: {private: 30}`` for up to 30 bins.

The bounds are declared. A fit finds edges that suit the data: bins have about equal numbers of rows, frequent values
and gaps get bins of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codes import Codes
from chicle.columns.base import Column, Mask, Report, SyntheticRows
from chicle.columns.discovery import BinEdges, Histogram, Tally
from chicle.columns.inside import Floats, fractions
from chicle.columns.ruler import Ruler
from chicle.errors import SchemaError

__all__ = ["Binned", "CellTally", "PrivateBins", "private_bins"]

_MOST_BINS = 256
_HOW = "write `bins: {private: 20}` for at most 20 bins that are discovered with budget"


@dataclass(frozen=True)
class PrivateBins:
    """Bins that are yet to be discovered.

    Parameters
    ----------
    most
        The maximum number of bins.
    """

    most: int = 32

    def to_plain(self) -> dict[str, int]:
        """Return the declaration as plain data."""
        return {"private": self.most}

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 2 <= self.most <= _MOST_BINS:
            raise SchemaError(f"the number of private bins must be from 2 to {_MOST_BINS}, not {self.most!r}; {_HOW}")


def private_bins(bins: object) -> Any:  # noqa: ANN401 - bins of any form
    """Return ``bins: private`` and ``bins: {private: 20}`` as `PrivateBins`, and other bins unchanged."""
    if bins == "private":
        return PrivateBins()
    if not isinstance(bins, Mapping):
        return bins
    if set(bins) != {"private"}:
        raise SchemaError(f"bins has no {', '.join(map(repr, bins))}; {_HOW}")
    return PrivateBins(bins["private"])


class Binned(Column):
    """A column in bins, which are declared or left to discovery."""

    @property
    @abstractmethod
    def ruler(self) -> Ruler:
        """The cells at which bins may begin."""

    @property
    def undiscovered(self) -> bool:
        """Whether a fit discovers its bins."""
        return isinstance(self._bins, PrivateBins)

    @property
    def discovery(self) -> BinEdges | None:
        """The edges of its bins, if a fit discovers them."""
        if not self.undiscovered:
            return None
        return BinEdges(self.size, self.ruler, self.places, partial(CellTally, self), self.discovered)

    def cells(self, values: pa.ChunkedArray, report: Report) -> npt.NDArray[np.int64]:
        """Return the cell on the ruler of each value that is not missing."""
        parts = [np.empty(0, dtype=np.int64)]
        for chunk in values.chunks:
            present, absent = self._present(chunk, report)
            cells = self._cells(present, absent, report)
            parts.append(cells if absent is None else cells[~absent])
        return np.concatenate(parts)

    def _numbers(
        self,
        values: pa.ChunkedArray,
        report: Report,
        read: Callable[[pa.Array, Mask | None, Report], npt.NDArray[Any]],
    ) -> npt.NDArray[np.float64]:
        """Return raw values as floats, by a function that reads a chunk of them; NaN where missing."""
        parts = [np.empty(0, dtype=np.float64)]
        for chunk in values.chunks:
            present, absent = self._present(chunk, report)
            found = read(present, absent, report).astype(np.float64)
            parts.append(found if absent is None else np.where(absent, np.nan, found))
        return np.concatenate(parts)

    def places(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the first cell of values at or after each cut."""
        return cuts

    @abstractmethod
    def discovered(self, starts: npt.NDArray[np.int64]) -> Column:
        """Return the column with bins that begin at these cells; the first one is the first cell of the ruler."""

    def examine(self, values: pa.ChunkedArray, report: Report) -> None:
        """Report values that do not fit."""
        if self.undiscovered:
            self.cells(values, report)
        else:
            super().examine(values, report)

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array:
        """Return this column of a synthetic table; inside bins, values follow the density of the neighbouring bins."""
        codes, absent = self._without_absent(rows.codes[name])
        counts = rows.counts.get(name)
        starts = np.asarray(self.starts)
        inside = fractions(codes, starts, None if counts is None else counts[: self.size], rows.rng)
        return self._inside(codes, absent, dtype, inside)

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        return self._inside(codes, absent, dtype, rng.random(len(codes)))

    @abstractmethod
    def _inside(self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, inside: Floats) -> pa.Array:
        """Return values of codes, each at a fraction of the way through its bin."""

    @property
    @abstractmethod
    def _bins(self) -> object:
        """The declared bins."""

    @abstractmethod
    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        """Return the cell of each value; any cell for absent values."""


class CellTally(Tally[Histogram]):
    """The number of rows of each cell of a column's ruler.

    Parameters
    ----------
    column
        The column whose bins are discovered.
    """

    def __init__(self, column: Binned) -> None:
        super().__init__()
        self._column = column

    def _count(self, values: pa.ChunkedArray, report: Report) -> Histogram:
        return Histogram.of(self._column.cells(values, report))

    def _sum(self, parts: Sequence[Histogram]) -> Histogram:
        return Histogram.merged(parts)
