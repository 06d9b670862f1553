"""Shared code of date and datetime columns: bounds, bins of a fixed width or a calendar unit, and Arrow types.

Edges of bins are integers: days for dates, microseconds for datetimes.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.columns.base import Mask, Report, arrow_kind, is_text
from chicle.columns.formats import as_texts, checked_formats, parsed
from chicle.columns.marks import trimmed
from chicle.columns.numeric import check_outside
from chicle.columns.private_bins import Binned, PrivateBins, private_bins
from chicle.errors import SchemaError

__all__ = [
    "DAY",
    "PER_SECOND",
    "Dated",
    "as_type",
    "calendar_edges",
    "day_number",
    "drafted_unit",
    "even_edges",
    "no_time",
    "parse_times",
    "seconds_of",
    "ticks_of",
    "times_in",
    "type_holding",
]

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = 86_400 * 10**6
_MAX_BINS = 2**22
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_UNITS = ("day", "week", "month", "quarter", "year")
_BINS = 'a width or a calendar unit, such as "7 days", "6 hours", "month" or "year"; a list of edges; or "private"'


@dataclass(frozen=True, kw_only=True)
class Dated(Binned):
    """A column of times between two bounds, in bins."""

    min: Any
    max: Any
    bins: str | Sequence[Any] | Mapping[str, int] | PrivateBins
    outside: str = "refuse"
    format: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", private_bins(self.bins))
        if self.format is not None:
            formats = checked_formats(self.format)
            object.__setattr__(self, "format", formats[0] if len(formats) == 1 else formats)
        super().__post_init__()

    @property
    def size(self) -> int:
        """The number of bins."""
        if isinstance(self.bins, PrivateBins):
            return self.bins.most
        return len(self.edges) - 1

    @property
    def reads_texts(self) -> bool:
        """Whether its texts have a declared form, or marks of missing values."""
        return self.format is not None or super().reads_texts

    @property
    def ordered(self) -> bool:
        """Time has an order."""
        return True

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """The starts of bins, and the first moment after the last."""
        raise NotImplementedError

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """The starts of bins, and the first moment after the last."""
        return self.edges

    def unit_starts(self, unit: str) -> npt.NDArray[Any] | None:
        """Return the starts of bins of this unit."""
        return replace(self, bins=unit, coarse=None).edges[:-1]

    def _check(self) -> None:
        check_outside(self.outside)
        if not isinstance(self.bins, (str, tuple, PrivateBins)):
            raise SchemaError(f"bins must be {_BINS}, not {self.bins!r}")
        if not (np.diff(self.edges) > 0).all():
            raise SchemaError("bins must list its edges in rising order, from min to max")

    @property
    def _bins(self) -> object:
        return self.bins

    def _listed(self, start: int, end: int, cuts: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return listed edges; the first must be `min`, the last `max`, which is included."""
        if len(cuts) < 2 or cuts[0] != start or cuts[-1] + 1 != end:
            raise SchemaError(f"bins must list edges from min, {self.min}, to max, {self.max}, both included")
        return np.array([*cuts[:-1], end], dtype=np.int64)

    def _parsed(self, values: pa.Array, dtype: pa.DataType, report: Report) -> pa.Array:
        """Return times; texts, and the integers of declared formats, are parsed as a type."""
        kind = arrow_kind(values.type)
        if self.format is None or kind not in ("text", "integers", "numbers"):
            return parse_times(values, dtype, report)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        values = as_texts(values)
        formats = checked_formats(self.format)
        made = parsed(trimmed(values), formats, pa.timestamp("us"))
        if made.null_count > values.null_count:
            report(f"has a value that is not of the form {' or '.join(formats)}", "add its form to `format`")
        return made.cast(dtype, safe=False)

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return values of declared formats as times, if all are such."""
        return values if self.format is None else times_in(values, self.format)

    def _check_bounds(self, raw: npt.NDArray[Any], low: int, end: int, report: Report) -> None:
        if self.outside == "refuse" and raw.size and (raw.min() < low or raw.max() >= end):
            report("has a time outside its bounds", "widen `min` and `max`, or write `outside: clamp`")


def times_in(values: pa.Array, formats: str | Sequence[str]) -> pa.Array:
    """Return texts, or integers, of declared formats as times, if all are such; other values unchanged."""
    kind = arrow_kind(values.type)
    if kind not in ("text", "integers", "numbers"):
        return values
    plain = as_texts(values.dictionary_decode() if pa.types.is_dictionary(values.type) else values)
    made = parsed(trimmed(plain), checked_formats(formats), pa.timestamp("us"))
    return values if made.null_count > plain.null_count else made


def seconds_of(bins: str) -> int | None:
    """Return the seconds of a width; None for a calendar unit."""
    if bins in _UNITS:
        return None
    match = re.fullmatch(r"(\d{1,9})\s*([a-z]+?)s?", bins.strip())
    if match is None or match[2] not in _SECONDS or int(match[1]) == 0:
        raise SchemaError(f"bins must be {_BINS}, not {bins!r}")
    return int(match[1]) * _SECONDS[match[2]]


def even_edges(start: int, end: int, width: int) -> npt.NDArray[np.int64]:
    """Return the edges of bins of one width from `start` to before `end`; the last may be shorter."""
    if (end - start) // width >= _MAX_BINS:
        raise SchemaError("bins are too many for these bounds; make them wider")
    return np.append(np.arange(start, end, width, dtype=np.int64), end)


def calendar_edges(start: int, end: int, unit: str) -> npt.NDArray[np.int64]:
    """Return the edges of calendar bins over days from `start` to before `end`; the first and last may be shorter."""
    if unit == "day":
        return np.arange(start, end + 1, dtype=np.int64)
    if unit == "week":
        inner = np.arange(start + (4 - start) % 7, end, 7, dtype=np.int64)  # 5 January 1970 was a Monday
    else:
        months = {"month": 1, "quarter": 3, "year": 12}[unit]
        first, last = (np.datetime64(day, "D").astype("M8[M]").astype(np.int64) for day in (start, end))
        begin = -(-int(first) // months) * months
        inner = np.arange(begin, last + 1, months).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return np.array([start, *inner[(inner > start) & (inner < end)], end], dtype=np.int64)


def drafted_unit(days: int) -> str:
    """Return the calendar unit that makes about a hundred bins of a number of days."""
    longest = {"day": 1, "week": 7, "month": 30, "quarter": 91}
    return next((unit for unit, length in longest.items() if days < 128 * length), "year")


def day_number(day: dt.date) -> int:
    """Return a date in days from 1970."""
    return day.toordinal() - 719_163  # the ordinal of 1 January 1970


def type_holding(dtype: pa.DataType | None, edges: npt.NDArray[np.int64]) -> pa.DataType | None:
    """Return a type, with microseconds for nanoseconds if those cannot hold the edges, given in microseconds."""
    if dtype is None or max(-int(edges[0]), int(edges[-1])) <= (2**63 - 1) // 1000:
        return dtype
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, type_holding(dtype.value_type, edges), dtype.ordered)
    return pa.timestamp("us", dtype.tz) if pa.types.is_timestamp(dtype) and dtype.unit == "ns" else dtype


def parse_times(values: pa.Array, dtype: pa.DataType, report: Report) -> pa.Array:
    """Return times; texts are parsed as a type, and those of another form are reported."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not is_text(values.type):
        return values
    try:
        return trimmed(values).cast(dtype)
    except pa.ArrowInvalid:
        pass
    form = (
        "2024-12-31" if dtype == pa.date32() else "2024-12-31T23:59" if dtype.tz is None else "2024-12-31T23:59+01:00"
    )
    report(f"has a text that is not of the form {form}", "bring its texts into that form")
    return pa.nulls(len(values), dtype)


def ticks_of(values: pa.Array, absent: Mask | None, dtype: pa.DataType, fill: int) -> npt.NDArray[Any]:
    """Return times as integers in their own unit, with a harmless value for absent ones."""
    ticks = values.cast(dtype) if values.type == pa.date32() else values.cast(pa.int64())
    if absent is not None or ticks.null_count:
        ticks = ticks.fill_null(fill)
    return np.asarray(ticks.to_numpy(zero_copy_only=False))


def no_time(values: pa.Array, report: Report, wanted: str) -> npt.NDArray[Any]:
    """Report that values are not times, and return a harmless time for each."""
    if not pa.types.is_null(values.type):
        report(f"holds {arrow_kind(values.type)}, not {wanted}", "turn it into dates first, or declare another type")
    return np.zeros(len(values), np.int64)


def as_type(made: pa.Array, dtype: pa.DataType | None) -> pa.Array:
    """Return dates or datetimes in the type of the table, such as text or a timestamp."""
    if dtype is None or dtype == made.type or pa.types.is_null(dtype):
        return made
    if pa.types.is_dictionary(dtype):
        return as_type(made, dtype.value_type).dictionary_encode()
    if is_text(dtype) and pa.types.is_timestamp(made.type):
        # Fractions of a second only if there are any.
        ticks = made.cast(pa.int64())
        seconds = pa.timestamp("s", made.type.tz)
        whole = not (ticks.fill_null(0).to_numpy(zero_copy_only=False) % 10**6).any()
        return (made.cast(seconds) if whole else made).cast(dtype)
    try:
        return made.cast(dtype, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return made
