"""A slot: one column of one of several linked rows, seen from the row that they belong to.

It has the codes of the column, and where the row may be absent one more, the last: nobody. Slots are made by a schema
of linked tables; they are never declared, encoded or decoded by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codes import Codes
from chicle.columns.base import Column, Mask, Report
from chicle.errors import SchemaError

__all__ = ["Slot"]

_NO_VALUES = "a column of children has no values of its own in a wide row; name a column of the parents"


@dataclass(frozen=True, kw_only=True)
class Slot(Column):
    """A column of a linked row.

    Parameters
    ----------
    of
        The column.
    optional
        Whether there may be nobody.

    Examples
    --------
    >>> from chicle.columns import Integer
    >>> Slot(of=Integer(min=0, max=2), optional=True).texts
    ['0', '1', '2', 'nobody']
    """

    type = "slot"

    of: Column
    optional: bool

    @property
    def size(self) -> int:
        """The codes of the column, and nobody."""
        return self.of.cardinality + self.optional

    @property
    def ordered(self) -> bool:
        """Whether adjacent codes, apart from the last, are adjacent values."""
        return self.of.ordered

    @property
    def starts(self) -> npt.NDArray[Any]:
        """The starts of the column's values, and the end of the last; missing and nobody are beyond it."""
        return np.arange(self.of.size + 1) if self.of.starts is None else self.of.starts

    @property
    def amounts(self) -> npt.NDArray[np.float64] | None:
        """The number that each code stands for; not a number for missing and for nobody."""
        known = np.arange(self.of.size, dtype=np.float64) if self.of.amounts is None else self.of.amounts
        return np.append(known, np.full(self.size - self.of.size, np.nan))

    def _check(self) -> None:
        pass

    def _texts(self) -> list[str]:
        return [*self.of.texts, "nobody"][: self.size]

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        del values, absent, report
        raise SchemaError(_NO_VALUES)

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del codes, absent, dtype, rng
        raise SchemaError(_NO_VALUES)
