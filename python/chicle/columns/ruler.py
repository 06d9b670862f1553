"""Where bins may begin that are discovered privately: at round numbers, and at turns of the calendar.

A ruler divides a declared range again and again: a number by its next digit, a time into years, months, days and so on.
It is made from the declaration alone. What it divides are cells, integers from `low` to before `end`, of which there
are some ten millions at most; a value's cell is a matter of the column.
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
_FIRST = 8  # the first division has so many parts at least: to ask for fewer would cost as much


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
        """How often the range is divided."""

    @abstractmethod
    def cuts(self, level: int, low: int, end: int) -> npt.NDArray[np.int64]:
        """Return where a part is divided: cells above `low` and below `end`."""

    def follows(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which cells are what follows a number alone: they begin where it does."""
        return np.zeros(len(cells), dtype=np.bool_)


@dataclass(frozen=True)
class DecimalRuler(Ruler):
    """Divides by the digits of a number.

    Parameters
    ----------
    low, end
        The range.
    cells
        How many cells the last digit has: 1, or 2 where the first of them is a number alone and the second what lies
        between it and the next.

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
        """How wide the parts of each level are."""
        widths = [1] if self.cells == 1 else [1, self.cells]
        while (self.end - self.low) // (10 * widths[-1]) >= _FIRST:
            widths.append(10 * widths[-1])
        return widths[::-1]

    @property
    def levels(self) -> int:
        """How many digits there are."""
        return len(self.widths)

    def cuts(self, level: int, low: int, end: int) -> npt.NDArray[np.int64]:
        """Return the multiples of the level's width."""
        width = self.widths[level]
        return np.arange((low // width + 1) * width, end, width, dtype=np.int64)

    def follows(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which cells are the second of their digit."""
        return np.asarray(cells % self.cells != 0)


@dataclass(frozen=True)
class CalendarRuler(Ruler):
    """Divides by the calendar: years, months, days, hours, minutes, seconds.

    Parameters
    ----------
    low, end
        The range, in days or seconds from 1970.
    unit
        What a cell is: ``"D"`` or ``"s"``.
    units
        Into what it is divided, as numpy calls it, the longest first.

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
        """How many units of the calendar are used."""
        return len(self._used)

    def cuts(self, level: int, low: int, end: int) -> npt.NDArray[np.int64]:
        """Return where years, months, days and so on begin."""
        return self._cuts(self._used[level], low, end)

    def _cuts(self, unit: str, low: int, end: int) -> npt.NDArray[np.int64]:
        own, wanted = f"M8[{self.unit}]", f"M8[{unit}]"
        first, last = np.array([low, end]).astype(own).astype(wanted)
        starts = np.arange(first, last + 1).astype(own).astype(np.int64)
        return starts[(starts > low) & (starts < end)]
