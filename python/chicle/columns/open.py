"""Columns whose values cannot be listed in advance: a fit discovers them privately, with budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes
from chicle.columns.base import Column, Mask, Report, arrow_kind
from chicle.columns.categorical import MOST_TEXTS, Categorical, labelled, listed
from chicle.columns.discovery import FrequentValues, Tally
from chicle.columns.drafting import MOST_VALUES, Draft, RawColumn, and_missing
from chicle.columns.marks import trimmed
from chicle.columns.numeric import numbers_in
from chicle.columns.registry import register_column
from chicle.domain import MAX_CARDINALITY
from chicle.errors import SchemaError

__all__ = ["Open", "ValueTally"]


@register_column
@dataclass(frozen=True, kw_only=True)
class Open(Column):
    """A column whose values are not declared. A fit discovers the frequent ones; all others become `other`.

    A value is released only if its noisy count reaches a threshold, which the rows of one person alone reach with
    probability delta at most. The schema of the release lists the discovered values, as a `Categorical`.

    Parameters
    ----------
    other
        The label for every value that is not discovered: a text in a column of texts, an integer in one of integers.
    most
        How many values are kept at most: those with the largest noisy counts.

    Examples
    --------
    >>> Open(other="another job", most=50).cardinality
    51
    """

    type = "open"
    draft_order = 80

    other: Any = "other"
    most: int = 100

    @property
    def size(self) -> int:
        """The maximum number of values, including `other`."""
        return self.most + 1

    @property
    def discovery(self) -> FrequentValues:
        """Its frequent values."""
        return FrequentValues(self.most, self.other, partial(ValueTally, self), self.discovered)

    @property
    def declared_values(self) -> tuple[Any, ...]:
        """The label for all other values."""
        return (self.other,)

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose to discover texts, if there are many and most of them are not unique."""
        if raw.words is None or len(raw.words) <= MOST_TEXTS or 2 * len(raw.words) > len(raw.present):
            return None
        read = and_missing(f"that it has more than {MOST_TEXTS} different texts", raw.missing)
        return Draft(
            cls(most=MOST_VALUES, missing=raw.missing),
            f"{read}; they may be private, so a fit discovers the frequent ones, with budget. "
            "List them if they are public",
        )

    def discovered(self, values: Iterable[Any]) -> Categorical:
        """Return the column with these values listed."""
        return Categorical(values=(*values, self.other), other=self.other, missing=self.missing)

    def examine(self, values: pa.ChunkedArray, report: Report) -> None:
        """Report values that do not fit."""
        ValueTally(self).add(values, report)

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow type of its values: texts or integers, like `other`."""
        return pa.large_string() if isinstance(self.other, str) else pa.int64()

    def present(self, values: pa.ChunkedArray, report: Report) -> pa.ChunkedArray:
        """Return the values to discover, in its type: neither `other` nor missing."""
        chunks = [self._present(chunk, report)[0] for chunk in values.chunks]
        present = self._like_other(pa.chunked_array(chunks) if chunks else values, report).drop_null()
        return present.filter(pc.not_equal(present, pa.scalar(self.other, self.value_type)))

    def _like_other(self, values: pa.ChunkedArray, report: Report) -> pa.ChunkedArray:
        """Return values as texts or integers, like `other`."""
        own = self.value_type
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        kind = arrow_kind(values.type)
        if pa.types.is_null(values.type):
            return values.cast(own)
        if kind == "text" and pa.types.is_large_string(own):
            return trimmed(values.cast(own))
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
        label = "a text" if isinstance(self.other, str) else "an integer"
        report(f"holds {kind}, but its `other` is {label}", "an open column holds texts or integers, like its `other`")
        return pa.chunked_array([pa.nulls(len(values), own)])

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return texts that all are numbers as numbers, if `other` is one."""
        return values if isinstance(self.other, str) else numbers_in(values)

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


class ValueTally(Tally[pa.Table]):
    """The number of rows of each value of an open column, without `other` and missing, as columns ``value``, ``count``.

    Parameters
    ----------
    column
        The open column.
    """

    def __init__(self, column: Open) -> None:
        super().__init__()
        self._column = column

    def _count(self, values: pa.ChunkedArray, report: Report) -> pa.Table:
        present = self._column.present(values, report)
        counted = pc.value_counts(present)
        value, count = counted.flatten() if len(counted) else (pa.array([], present.type), pa.array([], pa.int64()))
        try:
            value.validate(full=True)
        except pa.ArrowInvalid:
            report("holds text that is not UTF-8", "save it as UTF-8")
            value, count = value[:0], count[:0]
        return pa.table({"value": value, "count": count})

    def _sum(self, parts: Sequence[pa.Table]) -> pa.Table:
        none = pa.table({"value": pa.array([], self._column.value_type), "count": pa.array([], pa.int64())})
        added = pa.concat_tables([none, *parts]).group_by("value").aggregate([("count", "sum")])
        return pa.table({"value": added["value"], "count": added["count_sum"]}).sort_by("value")
