"""Columns that are sums of others: not modelled, but computed from the synthetic table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.arithmetic import is_time, parsed, sum_of, typed
from chicle.columns.base import Column, Report, SyntheticRows, Unmodelled
from chicle.columns.declare import unknown
from chicle.columns.registry import register_column
from chicle.errors import ChicleError, SchemaError

__all__ = ["Derived"]

_CLOSE = 1e-6


@register_column
@dataclass(frozen=True, kw_only=True)
class Derived(Unmodelled):
    """A column that is a sum or a difference of other columns, so always consistent with them.

    Parameters
    ----------
    derived
        Columns and numbers with `` + `` and `` - `` between them, with a space on either side. To a date, whole days
        are added; to a datetime, days.

    Examples
    --------
    >>> Derived(derived="admission + days - 1").terms
    (('admission', 1), ('days', 1), (1.0, -1))
    """

    type = "derived"
    implied_by = "derived"

    derived: str

    @property
    def terms(self) -> tuple[tuple[str | float, int], ...]:
        """The columns and numbers, each with its sign."""
        parts = re.split(r"\s([+-])\s", f" + {self.derived.strip()}")[1:]
        return tuple(
            (_term(name), 1 if sign == "+" else -1) for sign, name in zip(parts[::2], parts[1::2], strict=True)
        )

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns of the sum."""
        return tuple(name for name, _ in self.terms if isinstance(name, str))

    def check_among(self, columns: Mapping[str, Column]) -> None:
        """Raise unless the columns are modelled, or computed from such."""
        for name in self.beside:
            other = columns.get(name)
            if other is None or not (other.modelled or (isinstance(other, Derived) and other is not self)):
                known = [key for key, one in columns.items() if one.modelled]
                raise SchemaError(f"derived names {name!r}, which is not a modelled column; {unknown(name, known)}")
            if isinstance(other, Derived):
                raise SchemaError(f"derived names {name!r}, which is derived too; write out its sum")

    def compare(
        self, name: str, table: Mapping[str, pa.ChunkedArray], columns: Mapping[str, Column], report: Report
    ) -> None:
        """Report values that differ from the sum."""
        del columns
        there = table[name].combine_chunks()
        try:
            made = self.computed({other: table[other].combine_chunks() for other in self.beside})
            there = parsed(there)
            made = made.cast(there.type) if is_time(made.type) else made
            if is_time(made.type) or not len(there):
                same = pc.all(pc.fill_null(pc.equal(made, there), True)).as_py()
            else:
                apart = pc.abs(pc.subtract(made.cast(pa.float64()), there.cast(pa.float64())))
                same = not len(apart) or bool(np.nanmax(np.nan_to_num(apart.to_numpy(zero_copy_only=False))) < _CLOSE)
            absent = pc.all(pc.equal(pc.is_null(made), pc.is_null(there))).as_py()
            if (same and absent) or not len(there):
                return
        except (pa.ArrowException, ChicleError):
            pass
        report(
            f"is not {self.derived} in every row", "correct the sum or the table; the synthetic table follows the sum"
        )

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return the sum of the synthetic columns."""
        del name
        return typed(self.computed(rows.made), dtype)

    def computed(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Return the sum of columns."""
        values: list[tuple[Any, int]] = [
            (columns[term] if isinstance(term, str) else term, sign) for term, sign in self.terms
        ]
        (first, sign), *rest = values
        if sign < 0:
            raise SchemaError("derived must begin with a column")

        def add(one: pa.Array, other: tuple[Any, int]) -> pa.Array:
            value, sign = other
            if isinstance(value, float):
                value = pa.array(np.full(len(one), int(value) if value.is_integer() else value))
            return sum_of(one, value, sign)

        return reduce(add, rest, first)

    def _check(self) -> None:
        if not isinstance(self.derived, str) or not self.beside or not isinstance(self.terms[0][0], str):
            raise SchemaError(
                f"derived must be a sum that begins with a column, such as `admission + days`, not {self.derived!r}"
            )


def _term(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text.strip()
