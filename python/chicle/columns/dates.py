"""Columns of dates and of datetimes, cut into bins of a fixed width or of a calendar unit.

Bins are kept as integers: days of dates, microseconds of datetimes. Those of a time zone are instants, so that clocks
put forward or back neither lose nor repeat any.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.columns.base import Mask, Report, arrow_kind, is_text
from chicle.columns.numeric import check_outside
from chicle.columns.private_bins import Binned, PrivateBins, private_bins
from chicle.columns.ruler import MOST_CELLS, CalendarRuler
from chicle.counting.records import Codes
from chicle.errors import SchemaError

__all__ = ["Date", "DateTime"]

_MAX_BINS = 2**22
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_UNITS = ("day", "week", "month", "quarter", "year")
_FINE = {"h": 3_600, "m": 60, "s": 1}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a clock on the wall
_UTC_EPOCH = _EPOCH.replace(tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400 * 10**6


@dataclass(frozen=True, kw_only=True)
class _Dated(Binned):
    min: Any
    max: Any
    bins: str | Sequence[Any] | Mapping[str, int] | PrivateBins
    outside: str = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", private_bins(self.bins))
        super().__post_init__()

    @property
    def size(self) -> int:
        """How many bins there are."""
        if isinstance(self.bins, PrivateBins):
            return self.bins.most
        return len(self.edges) - 1

    @property
    def ordered(self) -> bool:
        """Time has an order."""
        return True

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """Where bins begin, and the first moment after the last."""
        raise NotImplementedError

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """Where bins begin, and the first moment after the last."""
        return self.edges

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
        """Return the edges of bins that are listed: the first is `min`, the last is `max` and included."""
        if len(cuts) < 2 or cuts[0] != start or cuts[-1] + 1 != end:
            raise SchemaError(f"bins must list edges from min, {self.min}, to max, {self.max}, both among them")
        return np.array([*cuts[:-1], end], dtype=np.int64)

    def _check_bounds(self, raw: npt.NDArray[Any], low: int, end: int, report: Report) -> None:
        if self.outside == "refuse" and raw.size and (raw.min() < low or raw.max() >= end):
            report("has a time outside its bounds", "widen `min` and `max`, or write `outside: clamp`")


@dataclass(frozen=True, kw_only=True)
class Date(_Dated):
    """A column of dates, of datetimes whose time of day is of no interest, or of texts such as 2024-12-31.

    Parameters
    ----------
    min, max
        The first and last date, both included.
    bins
        A width, such as ``"7 days"``, counted from `min`; or a unit of the calendar: ``"day"``, ``"week"`` (from
        Monday), ``"month"``, ``"quarter"``, ``"year"``. A list of dates from `min` to `max`: a bin from each to before
        the next; the last is included. ``"private"`` or ``{"private": 20}``: at most so many bins, discovered with
        budget (`chicle.discovery`).
    outside
        What becomes of dates outside the bounds: ``"refuse"`` or ``"clamp"``, which takes the nearest bound.

    Examples
    --------
    >>> Date(min="2020-01-15", max="2021-12-31", bins="quarter").cardinality
    8
    """

    type = "date"

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """The first day of each bin, and the day after the last, in days from 1970."""
        first, last = (_days(_date(name, getattr(self, name))) for name in ("min", "max"))
        if first > last:
            raise SchemaError(f"min {self.min} is after max {self.max}; swap them")
        if isinstance(self.bins, PrivateBins):
            return np.array([first, last + 1], dtype=np.int64)
        if not isinstance(self.bins, str):
            return self._listed(first, last + 1, [_days(_date("an edge of bins", edge)) for edge in self.bins])
        seconds = _width(self.bins)
        if seconds is None:
            return _calendar(first, last + 1, self.bins)
        if seconds % 86_400:
            raise SchemaError(
                f'bins of dates are whole days, such as "7 days", not {self.bins!r}; or declare a datetime'
            )
        return _even(first, last + 1, seconds // 86_400)

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            object.__setattr__(self, name, _date(name, getattr(self, name)).isoformat())
        if isinstance(self.bins, (list, tuple)):
            days = tuple(_date("an edge of bins", edge).isoformat() for edge in self.bins)
            object.__setattr__(self, "bins", days)
        super().__post_init__()

    @property
    def ruler(self) -> CalendarRuler:
        """Days, by years and months."""
        return CalendarRuler(int(self.edges[0]), int(self.edges[-1]), "D", ("Y", "M", "D"))

    def discovered(self, starts: npt.NDArray[np.int64]) -> Date:
        """Return the column with bins that begin on these days."""
        days = np.datetime_as_string(starts.astype("M8[D]")).tolist()
        return replace(self, bins=(*days, self.max))

    def start_of(self, value: object, *, after: bool) -> int:
        """Return a day, or the next one, in days from 1970."""
        return _days(_date("a bound", value)) + after

    def said_start(self, start: Any) -> str:  # noqa: ANN401
        """Return a day as a date."""
        return str(np.datetime64(int(start), "D"))

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        return np.searchsorted(self.edges[1:-1], self._raw(values, absent, report), side="right")

    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        raw = self._raw(values, absent, report).astype(np.int64, copy=False)
        return np.clip(raw, self.edges[0], self.edges[-1] - 1)

    def _raw(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        """Return days from 1970."""
        values = _parsed(values, pa.date32(), report)
        fill = int(self.edges[0])
        if pa.types.is_timestamp(values.type) and values.type.tz is not None:
            report("holds datetimes with a time zone, not dates", "declare it as datetime with a `timezone`")
        if pa.types.is_timestamp(values.type) or values.type == pa.date64():
            per_day = 86_400 * _PER_SECOND[getattr(values.type, "unit", "ms")]
            raw = _ticks(values, absent, pa.int64(), 0) // per_day
        elif values.type == pa.date32():
            raw = _ticks(values, absent, pa.int32(), fill)
        else:
            _no_time(values, report, "dates")
            return np.full(len(values), fill)
        if absent is not None:
            raw = np.where(absent, fill, raw)
        self._check_bounds(raw, int(self.edges[0]), int(self.edges[-1]), report)
        return raw

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        drawn = rng.integers(self.edges[codes], self.edges[1:][codes])
        days = pa.array(drawn.astype(np.int32), mask=absent).cast(pa.date32())
        return _of_type(days, _holding(dtype, self.edges * _DAY))


@dataclass(frozen=True, kw_only=True)
class DateTime(_Dated):
    """A column of datetimes, or of texts such as 2024-12-31T23:59.

    Parameters
    ----------
    min, max
        The first and last moment, both included; a date without a time means that whole day.
    bins
        A width, such as ``"6 hours"`` or ``"30 minutes"``, counted from `min`; or a unit of the calendar: ``"day"``,
        ``"week"`` (from Monday), ``"month"``, ``"quarter"``, ``"year"``. A list of moments from `min` to `max`: a bin
        from each to before the next; the last is included. ``"private"`` or ``{"private": 20}``: at most so many bins,
        discovered with budget (`chicle.discovery`).
    outside
        What becomes of moments outside the bounds: ``"refuse"`` or ``"clamp"``, which takes the nearest bound.
    timezone
        Where the clock hangs that bounds and calendar go by. Declared for columns that have a time zone, and only then.

    Examples
    --------
    >>> DateTime(min="2024-03-31", max="2024-03-31", bins="1 hour", timezone="Europe/Paris").cardinality
    23
    """

    type = "datetime"

    timezone: str | None = None

    def __post_init__(self) -> None:
        if self.timezone is not None:
            _zone(self.timezone)
        for name in ("min", "max"):
            moment = _moment(name, getattr(self, name))
            object.__setattr__(self, name, moment.isoformat())
        if isinstance(self.bins, (list, tuple)):
            names = ["an edge of bins"] * (len(self.bins) - 1) + ["max"]
            moments = tuple(_moment(name, edge).isoformat() for name, edge in zip(names, self.bins, strict=False))
            object.__setattr__(self, "bins", moments)
        super().__post_init__()

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """The first moment of each bin, and the one after the last, in microseconds from 1970."""
        first, last = dt.datetime.fromisoformat(self.min), dt.datetime.fromisoformat(self.max)
        start, end = self._instant(first), self._instant(last) + 1
        if start >= end:
            raise SchemaError(f"min {self.min} is after max {self.max}; swap them")
        if isinstance(self.bins, PrivateBins):
            return np.array([start, end], dtype=np.int64)
        if not isinstance(self.bins, str):
            return self._listed(start, end, [self._instant(dt.datetime.fromisoformat(edge)) for edge in self.bins])
        seconds = _width(self.bins)
        if seconds is not None:
            return _even(start, end, seconds * 10**6)
        days = _calendar(_days(first.date()), _days(last.date()) + 1, self.bins)[1:-1]
        midnights = [self._instant(_EPOCH + dt.timedelta(days=int(day))) for day in days]
        return np.unique(np.array([start, *(moment for moment in midnights if start < moment < end), end]))

    @property
    def ruler(self) -> CalendarRuler:
        """Seconds on the clock of the column, by years, months, days, hours and minutes, as far as there is room."""
        first, last = (dt.datetime.fromisoformat(moment) for moment in (self.min, self.max))
        low, high = ((moment - _EPOCH) // dt.timedelta(seconds=1) for moment in (first, last))
        units = [unit for unit, seconds in _FINE.items() if (high - low) // seconds < MOST_CELLS]
        return CalendarRuler(low, high + 1, "s", ("Y", "M", "D", *units))

    def places(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the instants of times on the clock; where clocks are put forward, some times are one instant."""
        if self.timezone is None:
            return cuts
        moments = [_EPOCH + dt.timedelta(seconds=cut) for cut in cuts.tolist()]
        return np.maximum.accumulate(np.array([self._instant(moment) // 10**6 for moment in moments], dtype=np.int64))

    def discovered(self, starts: npt.NDArray[np.int64]) -> DateTime:
        """Return the column with bins that begin at these times on the clock."""
        _, first = np.unique(self.places(starts), return_index=True)
        moments = np.datetime_as_string(starts[first][1:].astype("M8[s]")).tolist()
        return replace(self, bins=(self.min, *moments, self.max))

    def start_of(self, value: object, *, after: bool) -> int:
        """Return a moment, or the next one, in microseconds from 1970; a date without a time is that whole day."""
        return self._instant(_moment("max" if after else "a bound", value)) + after

    def said_start(self, start: Any) -> str:  # noqa: ANN401
        """Return a moment on the column's own clock."""
        moment = _UTC_EPOCH + int(start) * _MICROSECOND
        there = moment if self.timezone is None else moment.astimezone(_zone(self.timezone))
        return there.replace(tzinfo=None).isoformat()

    def _instant(self, moment: dt.datetime) -> int:
        if self.timezone is None:
            return (moment - _EPOCH) // _MICROSECOND
        return (moment.replace(tzinfo=_zone(self.timezone)) - _UTC_EPOCH) // _MICROSECOND

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raw, unit = self._raw(values, absent, report)
        return np.searchsorted(_in_unit(self.edges, unit)[1:-1], raw, side="right")

    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        """Return instants in seconds, rounded down to what the ruler tells apart."""
        raw, unit = self._raw(values, absent, report)
        edges = _in_unit(self.edges, unit)
        seconds = np.clip(raw, edges[0], edges[-1] - 1) // _PER_SECOND[unit]
        cells: npt.NDArray[np.int64] = seconds - seconds % _FINE.get(self.ruler.units[-1], 3_600)
        return np.maximum(cells, int(self.edges[0]) // 10**6)

    def _raw(self, values: pa.Array, absent: Mask | None, report: Report) -> tuple[npt.NDArray[np.int64], str]:
        """Return instants, and in which unit."""
        values = _parsed(values, pa.timestamp("us", None if self.timezone is None else "UTC"), report)
        if pa.types.is_date(values.type) and self.timezone is None:
            if (self.edges[:-1] % _DAY).any():
                report("holds dates, but its bins begin at other times than midnight", "declare it as `date`")
            values = values.cast(pa.timestamp("s"))
        if not pa.types.is_timestamp(values.type):
            return _no_time(values, report, "datetimes"), "us"
        if (values.type.tz is None) != (self.timezone is None):
            if self.timezone is None:
                report("has a time zone that is not declared", "write `timezone: ...`, such as Europe/Paris or UTC")
            else:
                report("has no time zone, but one is declared", "leave `timezone` out, or give the column its zone")
        edges = _in_unit(self.edges, values.type.unit)
        raw = _ticks(values, absent, pa.int64(), int(edges[0]))
        self._check_bounds(raw, int(edges[0]), int(edges[-1]), report)
        return raw, values.type.unit

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        dtype = _holding(dtype, self.edges)
        unit = dtype.unit if dtype is not None and pa.types.is_timestamp(dtype) else "us"
        edges = _in_unit(self.edges, unit)
        low, end = edges[codes], edges[1:][codes]
        # Whole seconds where the bin has any: nobody expects a made-up moment to the nanosecond.
        tick = _PER_SECOND[unit]
        low_second, end_second = -(-low // tick), -(-end // tick)
        whole = end_second > low_second
        step = np.where(whole, tick, 1)
        least = np.where(whole, low_second, low)
        most = np.maximum(np.where(whole, end_second, end), least + 1)
        ticks = np.clip(rng.integers(least, most) * step, edges[0], edges[-1])
        zone = None if self.timezone is None else self.timezone
        if dtype is not None and pa.types.is_timestamp(dtype):
            zone = dtype.tz
        made = pa.array(ticks, mask=absent).cast(pa.timestamp(unit, zone))
        return _of_type(made, dtype)


_BINS = 'a width or a calendar unit, such as "7 days", "6 hours", "month" or "year"; a list of edges; or "private"'


def _width(bins: str) -> int | None:
    """Return the seconds of a width; None for a unit of the calendar."""
    if bins in _UNITS:
        return None
    match = re.fullmatch(r"(\d{1,9})\s*([a-z]+?)s?", bins.strip())
    if match is None or match[2] not in _SECONDS or int(match[1]) == 0:
        raise SchemaError(f"bins must be {_BINS}, not {bins!r}")
    return int(match[1]) * _SECONDS[match[2]]


def _even(start: int, end: int, width: int) -> npt.NDArray[np.int64]:
    if (end - start) // width >= _MAX_BINS:
        raise SchemaError("bins are too many for these bounds; make them wider")
    return np.append(np.arange(start, end, width, dtype=np.int64), end)


def _calendar(start: int, end: int, unit: str) -> npt.NDArray[np.int64]:
    """Return bins of a unit of the calendar over days from `start` to before `end`, the first and last maybe cut."""
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


def _days(day: dt.date) -> int:
    return day.toordinal() - 719_163  # the ordinal of 1 January 1970


def _date(name: str, value: object) -> dt.date:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        raise SchemaError(f"{name} must be a date such as 2024-12-31, not {value!r}") from None


def _moment(name: str, value: object) -> dt.datetime:
    """Return a bound on the clock of the column; a date without a time is its first or its last moment."""
    whole_day = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    if not isinstance(value, (dt.date, dt.datetime)):
        try:
            whole_day = re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)) is not None
            value = dt.datetime.fromisoformat(str(value))
        except ValueError:
            raise SchemaError(f"{name} must be such as 2024-12-31 or 2024-12-31T23:59, not {value!r}") from None
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    if moment.tzinfo is not None:
        raise SchemaError(f"{name} goes by the column's own clock; leave its offset out and write `timezone: ...`")
    if whole_day and name == "max":
        moment = dt.datetime.combine(moment.date(), dt.time.max)
    return moment


def _zone(timezone: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(timezone))
    except (KeyError, ValueError, OSError):
        raise SchemaError(f"timezone must be a name such as Europe/Paris or UTC, not {timezone!r}") from None


def _in_unit(edges: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    """Return microseconds in another unit: the first tick that is not before them."""
    if unit == "ns":
        limit = (2**63 - 1) // 1000
        return np.clip(edges, -limit, limit) * 1000
    per_tick = 10**6 // _PER_SECOND[unit]
    return -(-edges // per_tick)


def _holding(dtype: pa.DataType | None, edges: npt.NDArray[np.int64]) -> pa.DataType | None:
    """Return a type, in microseconds where nanoseconds do not reach as far as the bins, which are in microseconds."""
    if dtype is None or max(-int(edges[0]), int(edges[-1])) <= (2**63 - 1) // 1000:
        return dtype
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, _holding(dtype.value_type, edges), dtype.ordered)
    return pa.timestamp("us", dtype.tz) if pa.types.is_timestamp(dtype) and dtype.unit == "ns" else dtype


def _parsed(values: pa.Array, dtype: pa.DataType, report: Report) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not is_text(values.type):
        return values
    try:
        return values.cast(dtype)
    except pa.ArrowInvalid:
        pass
    form = (
        "2024-12-31" if dtype == pa.date32() else "2024-12-31T23:59" if dtype.tz is None else "2024-12-31T23:59+01:00"
    )
    report(f"has a text that is not of the form {form}", "bring its texts into that form")
    return pa.nulls(len(values), dtype)


def _ticks(values: pa.Array, absent: Mask | None, dtype: pa.DataType, fill: int) -> npt.NDArray[Any]:
    ticks = values.cast(dtype) if values.type == pa.date32() else values.cast(pa.int64())
    if absent is not None or ticks.null_count:
        ticks = ticks.fill_null(fill)
    return np.asarray(ticks.to_numpy(zero_copy_only=False))


def _no_time(values: pa.Array, report: Report, wanted: str) -> npt.NDArray[Any]:
    if not pa.types.is_null(values.type):
        report(f"holds {arrow_kind(values.type)}, not {wanted}", "turn it into dates first, or declare another type")
    return np.zeros(len(values), np.int64)


def _of_type(made: pa.Array, dtype: pa.DataType | None) -> pa.Array:
    """Return dates or datetimes as the type that the table had: text, say, or a timestamp."""
    if dtype is None or dtype == made.type or pa.types.is_null(dtype):
        return made
    if pa.types.is_dictionary(dtype):
        return _of_type(made, dtype.value_type).dictionary_encode()
    if is_text(dtype) and pa.types.is_timestamp(made.type):
        # Fractions of a second only where there are any.
        ticks = made.cast(pa.int64())
        seconds = pa.timestamp("s", made.type.tz)
        whole = not (ticks.fill_null(0).to_numpy(zero_copy_only=False) % 10**6).any()
        return (made.cast(seconds) if whole else made).cast(dtype)
    try:
        return made.cast(dtype, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return made
