"""Sums and differences of columns: dates and days, datetimes and times, numbers and numbers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import Report, is_text
from chicle.columns.times import as_type, parse_times

__all__ = ["as_days", "as_moments", "is_time", "parsed", "sum_of", "typed"]

_DAY = 86_400


def is_time(dtype: pa.DataType) -> bool:
    """Return whether values are dates or datetimes."""
    return bool(pa.types.is_date(dtype) or pa.types.is_timestamp(dtype))


def as_days(values: pa.Array, report: Report) -> pa.Array:
    """Return dates as days from 1970; the time of day is left out."""
    values = parse_times(values, pa.date32(), report)
    if not is_time(values.type):
        if not pa.types.is_null(values.type):
            report("is compared with a date, but one of both holds none", "turn both into dates first")
        return pa.nulls(len(values), pa.int64())
    return values.cast(pa.date32(), safe=False).cast(pa.int32()).cast(pa.int64())


def as_moments(values: pa.Array, report: Report) -> pa.Array:
    """Return datetimes as microseconds from 1970."""
    values = parse_times(values, pa.timestamp("us"), report)
    if not is_time(values.type):
        if not pa.types.is_null(values.type):
            report("is compared with a datetime, but one of both holds none", "turn both into datetimes first")
        return pa.nulls(len(values), pa.int64())
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    return values.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())


def sum_of(first: pa.Array, second: pa.Array, sign: int, seconds: int = _DAY) -> pa.Array:
    """Return first plus, or minus, second; second counts units of `seconds` where first is a time.

    Examples
    --------
    >>> days = pa.array(["2024-02-28", None]).cast(pa.date32())
    >>> [str(day) for day in sum_of(days, pa.array([2, 1]), 1).to_pylist()]
    ['2024-03-01', 'None']
    >>> sum_of(pa.array([3, 4]), pa.array([0.5, None]), -1).to_pylist()
    [2.5, None]
    """
    first = parsed(first)
    if not is_time(first.type):
        return pc.add(first, second) if sign > 0 else pc.subtract(first, second)
    units = pc.multiply(second, sign) if sign < 0 else second
    if pa.types.is_date(first.type) and seconds == _DAY:
        days = pc.add(first.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), units.cast(pa.int64(), safe=False))
        return days.cast(pa.int32()).cast(pa.date32())
    zone = first.type.tz if pa.types.is_timestamp(first.type) else None
    ticks = pc.multiply(units.cast(pa.float64()), 1e6 * seconds).cast(pa.int64(), safe=False)
    return pc.add(first.cast(pa.timestamp("us", zone)).cast(pa.int64()), ticks).cast(pa.timestamp("us", zone))


def typed(made: pa.Array, dtype: pa.DataType | None) -> pa.Array:
    """Return values in the type of the table, where that holds them."""
    if dtype is None or dtype == made.type or pa.types.is_null(dtype):
        return made
    if is_time(made.type):
        return as_type(made, dtype)
    try:
        return made.cast(dtype)
    except pa.ArrowException:
        return made


def parsed(values: pa.Array) -> pa.Array:
    """Return texts as dates, or as datetimes if they have a time."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not is_text(values.type):
        return values
    try:
        return values.cast(pa.date32())
    except pa.ArrowInvalid:
        pass
    try:
        return values.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return values.cast(pa.float64())
