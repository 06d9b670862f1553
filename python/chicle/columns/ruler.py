"""Rulers: where private bins may begin, at round numbers and at calendar units.

A ruler divides a declared range level by level: a number by its next digit, a time into years, months, days and so on.
It depends on the declaration only. It divides cells, the integers from `low` to before `end`, about ten million at
most. The column maps values to cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_CELLS", "CalendarRuler", "DecimalRuler", "Ruler"]

MOST_CELLS = 10**7
_FIRST = 8  # parts of the first division, at least: fewer would cost the same


class Ruler(ABC):
    """A range of cells and its divisions.

    Attributes
    ----------
    low, end
        The first cell, and the one after the last.
    """

    low: int
    end: int

    @property
    @abstractmethod
    def levels(self) -> int:
        """The number of divisions."""

    @abstractmethod
    def cuts(self, level: int, low: int, end: int) -> npt.NDArray[np.int64]:
        """Return the cells at which a level divides a part, above `low` and below `end`."""

    def follows(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which cells are the gap after a single number, and so begin right after it."""
        return np.zeros(len(cells), dtype=np.bool_)


@dataclass(frozen=True)
class DecimalRuler(Ruler):
    """Divides by the digits of a number.

    Parameters
    ----------
    low, end
        The range.
    cells
        The cells of the last digit: 1, or 2 if the first is a single number and the second the gap up to the next.

    Examples
    --------
    >>> ruler = DecimalRuler(17, 235)
    >>> ruler.levels, ruler.cuts(0, 17, 235)[:3].tolist(), ruler.cuts(1, 20, 30)[:3].tolist()
    (2, [20, 30, 40], [21, 22, 23])
    """

    low: int
    end: int
    cells: int = 1

    @cached_property
    def widths(self) -> list[int]:
        """The width of the parts on each level."""
        widths = [1] if self.cells == 1 else [1, self.cells]
        while (self.end - self.low) // (10 * widths[-1]) >= _FIRST:
            widths.append(10 * widths[-1])
        return widths[::-1]

    @property
    def levels(self) -> int:
        """The number of digits."""
        return len(self.widths)

    def cuts(self, level: int, low: int, end: int) -> npt.NDArray[np.int64]:
        """Return the multiples of the level's width."""
        width = self.widths[level]
        return np.arange((low // width + 1) * width, end, width, dtype=np.int64)

    def follows(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which cells are the second cell of their digit."""
        return np.asarray(cells % self.cells != 0)


@dataclass(frozen=True)
class CalendarRuler(Ruler):
    """Divides by the calendar: years, months, days, hours, minutes, seconds.

    Parameters
    ----------
    low, end
        The range, in days or seconds from 1970.
    unit
        The unit of a cell: ``"D"`` or ``"s"``.
    units
        The units that divide the range, by numpy's names, the longest first.

    Examples
    --------
    >>> ruler = CalendarRuler(0, 3_000, "D", ("Y", "M", "D"))
    >>> ruler.levels, ruler.cuts(0, 0, 3_000)[:2].tolist(), ruler.cuts(1, 0, 365)[:2].tolist()
    (3, [365, 730], [31, 59])
    """

    low: int
    end: int
    unit: str
    units: Sequence[str]

    @cached_property
    def _used(self) -> list[str]:
        for place, unit in enumerate(self.units):
            if len(self._cuts(unit, self.low, self.end)) + 1 >= _FIRST:
                return list(self.units[place:])
        return list(self.units[-1:])

    @property
    def levels(self) -> int:
        """The number of calendar units in use."""
        return len(self._used)

    def cuts(self, level: int, low: int, end: int) -> npt.NDArray[np.int64]:
        """Return the starts of the level's unit: years, months, days and so on."""
        return self._cuts(self._used[level], low, end)

    def _cuts(self, unit: str, low: int, end: int) -> npt.NDArray[np.int64]:
        own, wanted = f"M8[{self.unit}]", f"M8[{unit}]"
        first, last = np.array([low, end]).astype(own).astype(wanted)
        starts = np.arange(first, last + 1).astype(own).astype(np.int64)
        return starts[(starts > low) & (starts < end)]
