"""Columns whose values nobody can list beforehand: they are discovered privately, with budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import Column, Mask, Report, arrow_kind
from chicle.columns.categorical import Categorical, labelled, listed
from chicle.counting.records import Codes
from chicle.domain import MAX_CARDINALITY
from chicle.errors import SchemaError

__all__ = ["Open"]


@dataclass(frozen=True, kw_only=True)
class Open(Column):
    """A column whose values are not declared. A fit discovers the frequent ones; all others become `other`.

    A value becomes public only if so many rows have it that nobody's part in that can be told. What a fit found stands
    in the schema of its release, as a `Categorical`.

    Parameters
    ----------
    other
        What stands for every value that is not discovered: a text for a column of texts, an integer for one of
        integers.
    most
        How many values are kept at most: the most frequent ones, by their noisy counts.

    Examples
    --------
    >>> Open(other="another job", most=50).cardinality
    51
    """

    type = "open"

    other: Any = "other"
    most: int = 100

    @property
    def size(self) -> int:
        """How many values there may be at most, `other` among them."""
        return self.most + 1

    @property
    def undiscovered(self) -> bool:
        """Its values are."""
        return True

    def tally(self, values: pa.ChunkedArray, report: Report) -> pa.Table:
        """Return how often each value occurs, as columns ``value`` and ``count``; `other` and missing are left out."""
        for chunk in values.chunks:
            self._present(chunk, report)
        present = self._like_other(values, report).drop_null()
        counted = pc.value_counts(present.filter(pc.not_equal(present, self._other())))
        value, count = counted.flatten() if len(counted) else (pa.array([], present.type), pa.array([], pa.int64()))
        try:
            value.validate(full=True)
        except pa.ArrowInvalid:
            report("holds text that is not UTF-8", "save it as such")
            value, count = value[:0], count[:0]
        return pa.table({"value": value, "count": count})

    def merged(self, tallies: Sequence[pa.Table]) -> pa.Table:
        """Return several tallies as one, in the order of the values."""
        added = pa.concat_tables(tallies).group_by("value").aggregate([("count", "sum")])
        return pa.table({"value": added["value"], "count": added["count_sum"]}).sort_by("value")

    def discovered(self, values: Iterable[Any]) -> Categorical:
        """Return the column with these values listed."""
        return Categorical(values=(*values, self.other), other=self.other, missing=self.missing)

    def examine(self, values: pa.ChunkedArray, report: Report) -> None:
        """Report what does not fit."""
        self.tally(values, report)

    def _other(self) -> pa.Scalar:
        return pa.scalar(self.other, pa.large_string() if isinstance(self.other, str) else pa.int64())

    def _like_other(self, values: pa.ChunkedArray, report: Report) -> pa.ChunkedArray:
        """Return values as texts, or as integers, whichever `other` is."""
        own = self._other().type
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        kind = arrow_kind(values.type)
        if pa.types.is_null(values.type):
            return values.cast(own)
        if kind == "text" and pa.types.is_large_string(own):
            return values.cast(own)
        if kind == "integers" and pa.types.is_int64(own):
            most = pa.scalar(2**63 - 1, pa.uint64())
            return (pc.min_element_wise(values, most) if values.type == pa.uint64() else values).cast(own)
        if kind == "numbers" and pa.types.is_int64(own):
            numbers = values.cast(pa.float64())
            numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
            try:
                return numbers.cast(own)
            except pa.ArrowInvalid:
                report("has a number with a fraction", "declare it as number, or round it first")
                return pa.chunked_array([pa.nulls(len(values), own)])
        said = "a text" if isinstance(self.other, str) else "an integer"
        report(f"holds {kind}, but its `other` is {said}", "open columns hold texts or integers, and `other` is one")
        return pa.chunked_array([pa.nulls(len(values), own)])

    def _check(self) -> None:
        (other,) = listed("other", [self.other])
        if not isinstance(other, (str, int)) or isinstance(other, bool):
            raise SchemaError(f"other must be a text or an integer, as the column's values are, not {other!r}")
        object.__setattr__(self, "other", other)
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 1 <= self.most < MAX_CARDINALITY - 1:
            raise SchemaError(f"most must be a number of values from 1 on, not {self.most!r}")

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del rng
        return labelled(codes, absent, (self.other,), dtype)
