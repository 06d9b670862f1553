"""A first proposal of a schema, read from the data, and therefore **not private**: to be reviewed by a person.

What only the data tells (bounds, lists of values, edges) must be replaced by what is public knowledge, or be known to
be public, before a fit may use it. Every column's comment in the saved file says what was read.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns import Boolean, Categorical, Column, Date, DateTime, Drop, Identifier, Integer, Number, Open
from chicle.columns.base import arrow_kind, is_text
from chicle.errors import SchemaError
from chicle.schema import Schema
from chicle.sources.files import are_files, find_files
from chicle.sources.frames import arrow_columns
from chicle.sources.table_files import read_table

__all__ = ["draft_schema"]

_MOST_VALUES = 256
_MOST_TEXTS = 64
_BINS = 32
_CUTS = (
    "bounds, edges by quantiles, and frequent values, which have a bin of their own (an edge listed twice); "
    "`bins: private` would find such edges with budget"
)
_MARKS = {"?", "", "NA", "N/A", "na", "n/a", "nan", "NaN", "null", "NULL", "None", "none", "-", "unknown", "Unknown"}


def draft_schema(source: Any) -> Schema:  # noqa: ANN401 - any data frame
    """Propose a schema for a table. NOT PRIVATE: it is read from the data.

    The draft is marked ``reviewed: false`` and `fit` refuses it. Save it, replace what only the data told by what is
    public knowledge, and set ``reviewed: true``.

    Parameters
    ----------
    source
        A pandas, polars or pyarrow table, or files of one: a path, a pattern, or several. It is read into memory.

    Examples
    --------
    >>> schema = draft_schema({"age": [31, 4, 77], "smoker": [True, None, False]})
    >>> schema.reviewed
    False
    >>> print(schema)  # doctest: +ELLIPSIS
    DRAFT, NOT PRIVATE: this schema was read from the data. ...
    Schema of 2 columns, rows: 1 a person
      age     integer, 74 codes
      smoker  boolean, 3 codes, missing is one
    """
    table = _read_files(find_files(source)) if are_files(source) else arrow_columns(source)
    if not any(len(values) for values in table.values()):
        raise SchemaError("the table has no rows to draft a schema from; write it by hand, from what is public")
    drafts = {name: _draft(values) for name, values in table.items()}
    columns = {name: column for name, (column, _) in drafts.items()}
    comments = {name: f"read from the data: {comment}" for name, (_, comment) in drafts.items()}
    return Schema(columns, reviewed=False, comments=comments)


def _read_files(paths: Sequence[Path]) -> dict[str, pa.ChunkedArray]:
    """Return the columns of files that together are one table."""
    parts = [arrow_columns(read_table(path)) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if part.keys() != parts[0].keys():
            raise SchemaError(f"{path} has other columns than {paths[0]}; draft from files of the same columns")
    return {name: _joined(name, [part[name] for part in parts]) for name in parts[0]}


def _joined(name: str, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    tables = [pa.table({name: part}) for part in parts]
    try:
        return pa.concat_tables(tables, promote_options="permissive")[name]
    except pa.ArrowException:
        kinds = " and ".join(dict.fromkeys(arrow_kind(part.type) for part in parts))
        raise SchemaError(
            f"column {name!r} has {kinds}, each in other files; draft from one file, and declare what all of them have"
        ) from None


def _draft(values: pa.ChunkedArray) -> tuple[Column, str]:
    """Return a column for these values, and what was read from the data to make it."""
    dtype = values.type
    if pa.types.is_dictionary(dtype):
        values = values.cast(dtype.value_type)
        dtype = dtype.value_type
    there = values.drop_null()
    if pa.types.is_floating(dtype):
        there = there.filter(pc.is_finite(there))
    missing = len(there) < len(values)
    kind = arrow_kind(dtype)
    if not len(there):
        return Drop(), "it has no values"
    if kind == "booleans":
        return Boolean(missing=missing), _and_missing("", missing)
    if kind in ("integers", "numbers", "decimals"):
        return _draft_numbers(there.cast(pa.float64(), safe=False).to_numpy(), kind, missing)
    if kind in ("dates", "datetimes"):
        return _draft_times(there.combine_chunks(), missing)
    if is_text(dtype):
        return _draft_text(there, missing)
    return Drop(), f"it holds {kind}, which can not be modelled"


def _draft_text(there: pa.ChunkedArray, missing: bool) -> tuple[Column, str]:
    distinct = there.unique()
    dates = _as_dates(distinct)
    if dates is not None:
        return _draft_times(dates, missing)
    if len(distinct) == len(there) and len(there) > 20:
        return Identifier(), "every value occurs once, so it looks like an identifier"
    if len(distinct) > _MOST_TEXTS:
        said = f"that it has more than {_MOST_TEXTS} different texts"
        if 2 * len(distinct) > len(there):
            return Drop(), f"{said}, most of them once, so it is dropped; to keep it, group them and list the groups"
        return Open(most=_MOST_VALUES, missing=missing), (
            _and_missing(said, missing)
            + "; they may be private, so a fit discovers the frequent ones, with budget. List them if they are public"
        )
    listed = sorted(distinct.to_pylist())
    marks = [value for value in listed if value in _MARKS]
    mark = f"; {marks[0]!r} looks like a mark of missing values: it is kept as a value" if marks else ""
    return Categorical(values=tuple(listed), missing=missing), _and_missing("all values", missing) + mark


def _draft_numbers(raw: npt.NDArray[np.float64], kind: str, missing: bool) -> tuple[Column, str]:
    low, high = float(raw.min()), float(raw.max())
    if not math.isfinite(high - low):
        return Drop(), "its numbers are too far apart for bins"
    whole = bool((raw == np.floor(raw)).all())
    if kind == "integers" and max(-low, high) >= 2**53:
        return Drop(), "its integers are very large, so it may be an identifier"
    if whole and max(-low, high) < 2**53:
        if high - low < _MOST_VALUES:
            column = Integer(min=int(low), max=int(high), outside="clamp", missing=missing)
            return column, _and_missing("bounds", missing)
        if len(np.unique(raw)) == len(raw) and len(raw) > 20 and high - low < 2 * len(raw):
            return Identifier(), "every integer occurs once and few are left out, so it looks like an identifier"
        edges = tuple(int(edge) for edge in _edges(raw, 1.0))
        return Integer(bins=edges, outside="clamp", missing=missing), _and_missing(_CUTS, missing)
    return Number(bins=_edges(raw, 0.0), outside="clamp", missing=missing), _and_missing(_CUTS, missing)


def _edges(raw: npt.NDArray[np.float64], unit: float) -> tuple[float, ...]:
    """Return edges with about as many rows in each bin, finer in the tails, and bins of frequent values alone."""
    values, counts = np.unique(raw, return_counts=True)
    if len(values) == 1:
        return float(values[0]), float(values[0])
    often = np.zeros(len(values), dtype=np.bool_)
    for _ in range(3):  # what is frequent among the rest, once the most frequent are out
        often |= counts > max(counts[~often].sum() / _BINS, 10)
    frequent, rest = values[often].tolist(), np.repeat(values[~often], counts[~often])
    low, high = _rounded(float(values[0]), float(values[-1]))
    low, high = values[0] if often[0] else low, values[-1] if often[-1] else high
    shares = np.concatenate([[0.001, 0.01], np.arange(1, _BINS) / _BINS, [0.99, 0.999]])
    cuts = {_short(cut, high - low, unit) for cut in np.quantile(rest, shares)} if len(rest) else set()
    # Nothing lies between a frequent integer and the next one.
    near = {value + unit for value in frequent} if unit else set()
    inner = {cut for cut in cuts if low < cut < high} - near - set(frequent)
    return tuple(float(edge) for edge in sorted([*({low, high, *inner} - set(frequent)), *frequent, *frequent]))


def _draft_times(there: pa.Array, missing: bool) -> tuple[Column, str]:
    said = _and_missing("bounds", missing)
    try:
        low, high = (value.as_py() for value in pc.min_max(there).values())
    except (OverflowError, ValueError):
        return Drop(), "it has times outside the years 1 to 9999"
    if pa.types.is_date(there.type):
        return Date(min=low, max=high, bins=_unit((high - low).days), outside="clamp", missing=missing), said
    zone = there.type.tz
    if zone is not None and not _is_named(zone):
        zone, low, high = "UTC", low.astimezone(dt.timezone.utc), high.astimezone(dt.timezone.utc)
    first, last = (dt.datetime.fromisoformat(value.isoformat()[:19]) for value in (low, high))
    days = (last - first).days
    bins = _unit(days) if days > 7 else "1 hour"
    bounds = {"min": first.date().isoformat(), "max": last.date().isoformat()}
    return DateTime(**bounds, bins=bins, outside="clamp", timezone=zone, missing=missing), said


def _as_dates(texts: pa.Array) -> pa.Array | None:
    for dtype in (pa.date32(), pa.timestamp("us")):
        try:
            return texts.cast(dtype)
        except pa.ArrowInvalid:  # noqa: PERF203 - two turns
            continue
    return None


def _unit(days: int) -> str:
    longest = {"day": 1, "week": 7, "month": 30, "quarter": 91}
    return next((unit for unit, length in longest.items() if days < 128 * length), "year")


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Return bounds rounded outwards to about two digits of their span."""
    step = 10.0 ** math.floor(math.log10(high - low) - 1)
    if step == 0:
        return low, high
    least, most = math.floor(low / step) * step, math.ceil(high / step) * step
    return (least, most) if math.isfinite(most - least) else (low, high)


def _short(cut: float, span: float, unit: float) -> float:
    """Return a cut with no more digits than it needs."""
    size = max(abs(cut), span / 1000)
    step = max(unit, 10.0 ** math.floor(math.log10(size) - 1) if size else 0.0)
    return round(cut / step) * step if step else cut


def _is_named(zone: str) -> bool:
    """Whether a time zone has a name, not just an offset."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _and_missing(what: str, missing: bool) -> str:
    return " and ".join(part for part in (what, "that values are missing" if missing else "") if part) or "its type"
