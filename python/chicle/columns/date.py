"""Columns of dates."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
from chicle.columns.ruler import CalendarRuler
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

__all__ = ["Date"]


@register_column
@dataclass(frozen=True, kw_only=True)
class Date(Dated):
    """A column of dates, of datetimes whose time of day is ignored, or of texts such as 2024-12-31.

    Parameters
    ----------
    min, max
        The first and last date, both included.
    bins
        A width, such as ``"7 days"``, counted from `min`; or a unit of the calendar: ``"day"``, ``"week"`` (from
        Monday), ``"month"``, ``"quarter"``, ``"year"``. A list of dates from `min` to `max`: each begins a bin, which
        ends before the next; the last date is included. ``"private"`` or ``{"private": 20}``: at most 32 or 20 bins,
        discovered with budget (`chicle.discovery`).
    format
        How texts write them, such as ``DD/MM/YYYY``, or several: see `chicle.columns.formats`. ISO by default.
    outside
        The rule for dates outside the bounds: ``"refuse"``, or ``"clamp"`` to the nearest bound.

    Examples
    --------
    >>> Date(min="2020-01-15", max="2021-12-31", bins="quarter").cardinality
    8
    """

    type = "date"
    draft_order = 20

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """The first day of each bin, and the day after the last, in days from 1970."""
        first, last = (day_number(_date(name, getattr(self, name))) for name in ("min", "max"))
        if first > last:
            raise SchemaError(f"min {self.min} is after max {self.max}; swap them")
        if isinstance(self.bins, PrivateBins):
            return np.array([first, last + 1], dtype=np.int64)
        if not isinstance(self.bins, str):
            return self._listed(first, last + 1, [day_number(_date("an edge of bins", edge)) for edge in self.bins])
        seconds = seconds_of(self.bins)
        if seconds is None:
            return calendar_edges(first, last + 1, self.bins)
        if seconds % 86_400:
            raise SchemaError(
                f'bins of dates must be whole days, such as "7 days", not {self.bins!r}; or declare it as datetime'
            )
        return even_edges(first, last + 1, seconds // 86_400)

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            object.__setattr__(self, name, _date(name, getattr(self, name)).isoformat())
        if isinstance(self.bins, (list, tuple)):
            days = tuple(_date("an edge of bins", edge).isoformat() for edge in self.bins)
            object.__setattr__(self, "bins", days)
        super().__post_init__()

    @property
    def ruler(self) -> CalendarRuler:
        """Days, divided by years and months."""
        return CalendarRuler(int(self.edges[0]), int(self.edges[-1]), "D", ("Y", "M", "D"))

    def discovered(self, starts: npt.NDArray[np.int64]) -> Date:
        """Return the column with bins that begin on these days."""
        days = np.datetime_as_string(starts.astype("M8[D]")).tolist()
        return replace(self, bins=(*days, self.max))

    @property
    def arrow_type(self) -> pa.DataType | None:
        """Dates."""
        return pa.date32()

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose calendar bins whose width suits the span of the dates."""
        if raw.times is None or raw.span is None or not pa.types.is_date(raw.times.type):
            return None
        low, high = raw.span
        made = cls(min=low, max=high, bins=drafted_unit((high - low).days), outside="clamp", missing=raw.missing)
        return Draft(replace(made, format=raw.formats), and_missing("bounds", raw.missing))

    def _texts(self) -> list[str] | None:
        days = self.edges.astype("datetime64[D]")
        return [between(first, end) for first, end in zip(days[:-1], days[1:] - 1, strict=True)]

    def start_of(self, value: object, *, after: bool) -> int:
        """Return a day, or the next one, in days from 1970."""
        return day_number(_date("a bound", value)) + after

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
        values = self._parsed(values, pa.date32(), report)
        fill = int(self.edges[0])
        if pa.types.is_timestamp(values.type) and values.type.tz is not None:
            report("holds datetimes with a time zone, not dates", "declare it as datetime with a `timezone`")
        if pa.types.is_timestamp(values.type) or values.type == pa.date64():
            per_day = 86_400 * PER_SECOND[getattr(values.type, "unit", "ms")]
            raw = ticks_of(values, absent, pa.int64(), 0) // per_day
        elif values.type == pa.date32():
            raw = ticks_of(values, absent, pa.int32(), fill)
        else:
            no_time(values, report, "dates")
            return np.full(len(values), fill)
        if absent is not None:
            raw = np.where(absent, fill, raw)
        self._check_bounds(raw, int(self.edges[0]), int(self.edges[-1]), report)
        return raw

    def _inside(self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, inside: Floats) -> pa.Array:
        drawn = pick(self.edges[codes], self.edges[1:][codes], inside)
        days = pa.array(drawn.astype(np.int32), mask=absent).cast(pa.date32())
        return as_type(days, type_holding(dtype, self.edges * DAY))


def _date(name: str, value: object) -> dt.date:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        raise SchemaError(f"{name} must be a date such as 2024-12-31, not {value!r}") from None
