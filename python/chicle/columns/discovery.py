"""What a column needs discovered with budget, and the exact counts that discovery starts from.

A column describes what it needs; `chicle.discovery` buys it. Two things can be bought: the frequent values of a column,
and the edges of its bins. Both start from a `Tally` of the private rows. Tallies can be pickled and merged, so that
several processes can tally parts of a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.columns.ruler import Ruler

if TYPE_CHECKING:
    from chicle.columns.base import Column, Report

__all__ = ["BinEdges", "FrequentValues", "Histogram", "Tally"]

Integers = npt.NDArray[np.int64]

_PENDING = 2**20  # distinct values of new batches that are held before they are merged


class _Sized(Protocol):
    def __len__(self) -> int: ...


_Counts = TypeVar("_Counts", bound=_Sized)


class Tally(ABC, Generic[_Counts]):
    """Exact counts of one column: private, never shown.

    The counts of new batches are merged whenever they are as many as the counts before, so memory grows with the
    distinct values, not with the rows. The result does not depend on the batches, their order or the merging.
    """

    def __init__(self) -> None:
        self._parts: list[_Counts] = []

    def add(self, values: pa.ChunkedArray, report: Report) -> None:
        """Count more rows; report those that do not fit the column."""
        self._keep(self._count(values, report))

    def merge(self, other: Tally[_Counts]) -> None:
        """Add the counts of another tally of the same column."""
        self._keep(other.counts())

    def counts(self) -> _Counts:
        """Return the counts of all rows, ordered by value."""
        return self._sum(self._parts)

    def _keep(self, part: _Counts) -> None:
        self._parts.append(part)
        first, *rest = map(len, self._parts)
        if sum(rest) > max(first, _PENDING):
            self._parts = [self.counts()]

    @abstractmethod
    def _count(self, values: pa.ChunkedArray, report: Report) -> _Counts:
        """Return the counts of one batch."""

    @abstractmethod
    def _sum(self, parts: Sequence[_Counts]) -> _Counts:
        """Return the sum of several parts; there may be none."""


@dataclass(frozen=True, repr=False)
class Histogram:
    """The exact number of rows of each cell: private.

    Attributes
    ----------
    cells
        Cells that have rows, in rising order.
    counts
        The number of rows of each.
    """

    cells: Integers
    counts: Integers

    @classmethod
    def of(cls, cells: Integers) -> Histogram:
        """Return the histogram of the cells of rows."""
        return cls(*np.unique(cells, return_counts=True))

    @classmethod
    def merged(cls, parts: Sequence[Histogram]) -> Histogram:
        """Return the sum of several histograms."""
        if not parts:
            return cls.of(np.empty(0, dtype=np.int64))
        cells, place = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([part.counts for part in parts]))
        return cls(cells, counts)

    def __len__(self) -> int:
        return len(self.cells)

    def between(self, starts: Integers, ends: Integers) -> Integers:
        """Return the number of rows in each range of cells, from a start to before an end."""
        below = np.concatenate([[0], np.cumsum(self.counts)])
        return np.asarray(below[np.searchsorted(self.cells, ends)] - below[np.searchsorted(self.cells, starts)])


@dataclass(frozen=True)
class FrequentValues:
    """A request for the frequent values of a column; a purchase costs rho and delta.

    Parameters
    ----------
    most
        How many values are kept at most.
    other
        The label for all other values.
    tally
        Returns an empty tally, whose counts are a table of columns ``value`` and ``count``.
    declare
        Returns the column with these values declared.
    """

    most: int
    other: Any
    tally: Callable[[], Tally[pa.Table]]
    declare: Callable[[Sequence[Any]], Column]


@dataclass(frozen=True)
class BinEdges:
    """A request for the edges of a column's bins; a purchase costs rho.

    Parameters
    ----------
    most
        How many bins there are at most.
    ruler
        The cells at which bins may begin.
    places
        Returns the first cell of values at or after each cut; see `Binned.places`.
    tally
        Returns an empty tally, whose counts are a histogram of cells.
    declare
        Returns the column with bins that begin at these cells; the first one is the first cell of the ruler.
    """

    most: int
    ruler: Ruler
    places: Callable[[Integers], Integers]
    tally: Callable[[], Tally[Histogram]]
    declare: Callable[[Integers], Column]
