"""Bins that are discovered privately, with budget: ``bins: private``, or ``bins: {private: 30}`` for up to 30 of them.

The bounds are declared. A fit finds edges that suit the data: bins of about as many rows each, values that are frequent
in bins of their own, and gaps apart from what lies around them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.columns.base import Column, Mask, Report
from chicle.columns.ruler import Ruler
from chicle.errors import SchemaError

__all__ = ["Binned", "PrivateBins", "private_bins"]

_MOST_BINS = 256
_HOW = "write `bins: {private: 20}` for at most 20 bins that are discovered with budget"


@dataclass(frozen=True)
class PrivateBins:
    """Bins that are yet to be discovered.

    Parameters
    ----------
    most
        How many there may be.
    """

    most: int = 32

    def to_plain(self) -> dict[str, int]:
        """Return the declaration as plain data."""
        return {"private": self.most}

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 2 <= self.most <= _MOST_BINS:
            raise SchemaError(f"a number of private bins is from 2 to {_MOST_BINS}, not {self.most!r}; {_HOW}")


def private_bins(bins: object) -> Any:  # noqa: ANN401 - whatever else bins may be
    """Return what ``bins: private`` and ``bins: {private: 20}`` ask for; other bins as they are."""
    if bins == "private":
        return PrivateBins()
    if not isinstance(bins, Mapping):
        return bins
    if set(bins) != {"private"}:
        raise SchemaError(f"bins has no {', '.join(map(repr, bins))}; {_HOW}")
    return PrivateBins(bins["private"])


class Binned(Column):
    """A column whose values are cut into bins, which may be left to be discovered."""

    @property
    @abstractmethod
    def ruler(self) -> Ruler:
        """Where bins may begin."""

    @property
    def undiscovered(self) -> bool:
        """Its bins may be."""
        return isinstance(self._bins, PrivateBins)

    def cells(self, values: pa.ChunkedArray, report: Report) -> npt.NDArray[np.int64]:
        """Return the cell of each value that is there, on the ruler."""
        parts = [np.empty(0, dtype=np.int64)]
        for chunk in values.chunks:
            present, absent = self._present(chunk, report)
            cells = self._cells(present, absent, report)
            parts.append(cells if absent is None else cells[~absent])
        return np.concatenate(parts)

    def places(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return which cells of values lie at or after a cut: those from here on."""
        return cuts

    @abstractmethod
    def discovered(self, starts: npt.NDArray[np.int64]) -> Column:
        """Return the column with bins that begin at these cells, of which the first is the first of all."""

    def examine(self, values: pa.ChunkedArray, report: Report) -> None:
        """Report what does not fit."""
        if self.undiscovered:
            self.cells(values, report)
        else:
            super().examine(values, report)

    @property
    @abstractmethod
    def _bins(self) -> object:
        """What is declared as bins."""

    @abstractmethod
    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        """Return the cell of each value; any where it is absent."""
