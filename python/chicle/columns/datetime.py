"""Columns of datetimes. With a time zone, values are instants, so daylight saving neither skips nor repeats any."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codes import Codes
from chicle.columns.base import Mask, Report
from chicle.columns.drafting import Draft, RawColumn, and_missing
from chicle.columns.inside import Floats, pick
from chicle.columns.numeric import between
from chicle.columns.private_bins import PrivateBins
from chicle.columns.registry import register_column
from chicle.columns.ruler import MOST_CELLS, CalendarRuler
from chicle.columns.times import (
    DAY,
    PER_SECOND,
    Dated,
    as_type,
    calendar_edges,
    day_number,
    drafted_unit,
    even_edges,
    no_time,
    seconds_of,
    ticks_of,
    type_holding,
)
from chicle.errors import SchemaError

__all__ = ["DateTime"]

_FINE = {"h": 3_600, "m": 60, "s": 1}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local time
_UTC_EPOCH = _EPOCH.replace(tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)


@register_column
@dataclass(frozen=True, kw_only=True)
class DateTime(Dated):
    """A column of datetimes, or of texts such as 2024-12-31T23:59.

    Parameters
    ----------
    min, max
        The first and last moment, both included; a date without a time means that whole day.
    bins
        A width, such as ``"6 hours"`` or ``"30 minutes"``, counted from `min`; or a unit of the calendar: ``"day"``,
        ``"week"`` (from Monday), ``"month"``, ``"quarter"``, ``"year"``. A list of moments from `min` to `max`: each
        begins a bin, which ends before the next; the last moment is included. ``"private"`` or ``{"private": 20}``:
        at most 32 or 20 bins, discovered with budget (`chicle.discovery`).
    format
        How texts write them, such as ``DD/MM/YYYY``, or several: see `chicle.columns.formats`. ISO by default.
    outside
        The rule for moments outside the bounds: ``"refuse"``, or ``"clamp"`` to the nearest bound.
    timezone
        The time zone of the bounds and of calendar bins. Declare it exactly for columns that have a time zone.

    Examples
    --------
    >>> DateTime(min="2024-03-31", max="2024-03-31", bins="1 hour", timezone="Europe/Paris").cardinality
    23
    """

    type = "datetime"
    also = ("timestamp", "time")
    draft_order = 30

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
        seconds = seconds_of(self.bins)
        if seconds is not None:
            return even_edges(start, end, seconds * 10**6)
        days = calendar_edges(day_number(first.date()), day_number(last.date()) + 1, self.bins)[1:-1]
        midnights = [self._instant(_EPOCH + dt.timedelta(days=int(day))) for day in days]
        return np.unique(np.array([start, *(moment for moment in midnights if start < moment < end), end]))

    @property
    def ruler(self) -> CalendarRuler:
        """Seconds of local time, divided by years, months, days, hours and minutes, as far as cells allow."""
        first, last = (dt.datetime.fromisoformat(moment) for moment in (self.min, self.max))
        low, high = ((moment - _EPOCH) // dt.timedelta(seconds=1) for moment in (first, last))
        units = [unit for unit, seconds in _FINE.items() if (high - low) // seconds < MOST_CELLS]
        return CalendarRuler(low, high + 1, "s", ("Y", "M", "D", *units))

    def places(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the instants of local times. Where clocks go forward, several local times are one instant."""
        if self.timezone is None:
            return cuts
        moments = [_EPOCH + dt.timedelta(seconds=cut) for cut in cuts.tolist()]
        return np.maximum.accumulate(np.array([self._instant(moment) // 10**6 for moment in moments], dtype=np.int64))

    def discovered(self, starts: npt.NDArray[np.int64]) -> DateTime:
        """Return the column with bins that begin at these local times."""
        _, first = np.unique(self.places(starts), return_index=True)
        moments = np.datetime_as_string(starts[first][1:].astype("M8[s]")).tolist()
        return replace(self, bins=(self.min, *moments, self.max))

    @property
    def arrow_type(self) -> pa.DataType | None:
        """Datetimes of the declared time zone."""
        return pa.timestamp("us", self.timezone)

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose bins whose width suits the span of the datetimes."""
        if raw.times is None or raw.span is None or pa.types.is_date(raw.times.type):
            return None
        (low, high), zone = raw.span, raw.times.type.tz
        if zone is not None and not _is_named(zone):
            zone, low, high = "UTC", low.astimezone(dt.timezone.utc), high.astimezone(dt.timezone.utc)
        first, last = (dt.datetime.fromisoformat(value.isoformat()[:19]) for value in (low, high))
        days = (last - first).days
        bins = drafted_unit(days) if days > 7 else "1 hour"
        bounds = {"min": first.date().isoformat(), "max": last.date().isoformat()}
        made = cls(**bounds, bins=bins, outside="clamp", timezone=zone, missing=raw.missing)
        return Draft(replace(made, format=raw.formats), and_missing("bounds", raw.missing))

    def _texts(self) -> list[str] | None:
        return [between(first, end) for first, end in pairwise(self.edges.astype("datetime64[us]"))]

    def start_of(self, value: object, *, after: bool) -> int:
        """Return a moment, or the next one, in microseconds from 1970; a date without a time is that whole day."""
        return self._instant(_moment("max" if after else "a bound", value)) + after

    def said_start(self, start: Any) -> str:  # noqa: ANN401
        """Return a moment in local time."""
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
        """Return instants in seconds, rounded down to the resolution of the ruler."""
        raw, unit = self._raw(values, absent, report)
        edges = _in_unit(self.edges, unit)
        seconds = np.clip(raw, edges[0], edges[-1] - 1) // PER_SECOND[unit]
        cells: npt.NDArray[np.int64] = seconds - seconds % _FINE.get(self.ruler.units[-1], 3_600)
        return np.maximum(cells, int(self.edges[0]) // 10**6)

    def _raw(self, values: pa.Array, absent: Mask | None, report: Report) -> tuple[npt.NDArray[np.int64], str]:
        """Return instants, and their unit."""
        values = self._parsed(values, pa.timestamp("us", None if self.timezone is None else "UTC"), report)
        if pa.types.is_date(values.type) and self.timezone is None:
            if (self.edges[:-1] % DAY).any():
                report("holds dates, but its bins begin at other times than midnight", "declare it as `date`")
            values = values.cast(pa.timestamp("s"))
        if not pa.types.is_timestamp(values.type):
            return no_time(values, report, "datetimes"), "us"
        if (values.type.tz is None) != (self.timezone is None):
            if self.timezone is None:
                report("has a time zone that is not declared", "write `timezone: ...`, such as Europe/Paris or UTC")
            else:
                report("has no time zone, but one is declared", "leave `timezone` out, or give the column its zone")
        edges = _in_unit(self.edges, values.type.unit)
        raw = ticks_of(values, absent, pa.int64(), int(edges[0]))
        self._check_bounds(raw, int(edges[0]), int(edges[-1]), report)
        return raw, values.type.unit

    def _inside(self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, inside: Floats) -> pa.Array:
        dtype = type_holding(dtype, self.edges)
        unit = dtype.unit if dtype is not None and pa.types.is_timestamp(dtype) else "us"
        edges = _in_unit(self.edges, unit)
        low, end = edges[codes], edges[1:][codes]
        # Whole seconds where the bin has any: a drawn nanosecond would be false precision.
        tick = PER_SECOND[unit]
        low_second, end_second = -(-low // tick), -(-end // tick)
        whole = end_second > low_second
        step = np.where(whole, tick, 1)
        least = np.where(whole, low_second, low)
        most = np.maximum(np.where(whole, end_second, end), least + 1)
        ticks = np.clip(pick(least, most, inside) * step, edges[0], edges[-1])
        zone = None if self.timezone is None else self.timezone
        if dtype is not None and pa.types.is_timestamp(dtype):
            zone = dtype.tz
        made = pa.array(ticks, mask=absent).cast(pa.timestamp(unit, zone))
        return as_type(made, dtype)


def _moment(name: str, value: object) -> dt.datetime:
    """Return a bound in local time; a date without a time is its first or, for `max`, its last moment."""
    whole_day = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    if not isinstance(value, (dt.date, dt.datetime)):
        try:
            whole_day = re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)) is not None
            value = dt.datetime.fromisoformat(str(value))
        except ValueError:
            raise SchemaError(
                f"{name} must be a datetime such as 2024-12-31 or 2024-12-31T23:59, not {value!r}"
            ) from None
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    if moment.tzinfo is not None:
        raise SchemaError(f"{name} is in the column's own time zone; leave its offset out and write `timezone: ...`")
    if whole_day and name == "max":
        moment = dt.datetime.combine(moment.date(), dt.time.max)
    return moment


def _zone(timezone: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(timezone))
    except (KeyError, ValueError, OSError):
        raise SchemaError(f"timezone must be a name such as Europe/Paris or UTC, not {timezone!r}") from None


def _is_named(zone: str) -> bool:
    """Whether a time zone has a name, not only an offset."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _in_unit(edges: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    """Return microseconds in another unit, rounded up."""
    if unit == "ns":
        limit = (2**63 - 1) // 1000
        return np.clip(edges, -limit, limit) * 1000
    per_tick = 10**6 // PER_SECOND[unit]
    return -(-edges // per_tick)
