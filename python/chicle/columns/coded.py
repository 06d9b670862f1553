"""Columns that hold codes already."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codes import Codes
from chicle.columns.base import Column, Mask, Report
from chicle.columns.numeric import LOOK_UP, numbers_in, numbers_of, typed_integers, whole
from chicle.columns.registry import register_column
from chicle.domain import MAX_CARDINALITY
from chicle.errors import SchemaError

__all__ = ["Coded"]


@register_column
@dataclass(frozen=True, kw_only=True)
class Coded(Column):
    """A column that holds codes ``0..cardinality-1`` already.

    Parameters
    ----------
    values
        The number of codes, without missing.
    ordinal
        Whether adjacent codes are adjacent values.

    Examples
    --------
    >>> Coded(values=7, missing=True).cardinality
    8
    """

    type = "coded"
    also = ("code",)

    values: int
    ordinal: bool = False

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.values

    @property
    def ordered(self) -> bool:
        """As declared."""
        return self.ordinal

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """The codes themselves."""
        return np.arange(self.values + 1)

    def start_of(self, value: object, *, after: bool) -> int:
        """Return a code, or the next one."""
        return whole("a bound", value) + after

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The codes themselves."""
        return tuple(range(self.values)) if self.values <= LOOK_UP else None

    @property
    def holds_codes(self) -> bool:
        """Unless missing is declared: it has a code, but null in the table."""
        return not self.missing

    @property
    def arrow_type(self) -> pa.DataType | None:
        """Integers."""
        return pa.int64()

    def with_order(self) -> Coded:
        """Return the same column, ordinal."""
        return replace(self, ordinal=True)

    def _check(self) -> None:
        if isinstance(self.values, bool) or not hasattr(self.values, "__index__"):
            raise SchemaError(f"values must be a number of codes, not {self.values!r}; list values as `categorical`")
        object.__setattr__(self, "values", operator.index(self.values))
        if not 1 <= self.values <= MAX_CARDINALITY - bool(self.missing):
            raise SchemaError(f"values must be from 1 to {MAX_CARDINALITY - bool(self.missing)}, not {self.values}")
        if not isinstance(self.ordinal, bool):
            raise SchemaError(f"ordinal must be true or false, not {self.ordinal!r}")

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return texts that all are numbers as numbers."""
        return numbers_in(values)

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raw = numbers_of(values, absent, 0, report, "declare it as categorical and list its values")
        outside = raw.size and (raw.min() < 0 or raw.max() >= self.values)
        if outside or (raw.dtype.kind == "f" and (raw != np.floor(raw)).any()):
            report(f"has a value outside the codes 0..{self.values - 1}", "declare as many `values` as there are codes")
            return np.zeros(len(raw), np.uint8)
        return raw

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del rng
        return typed_integers(codes, absent, dtype, 0, self.values - 1)
