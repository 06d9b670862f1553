"""Columns that come after another one: the distance is modelled, so the order is never violated.

``discharge: {type: date, after: admission, by: {min: 0, max: 60}}`` models the days from admission to discharge. The
code of a row is that of its distance; a synthetic value is the other column's synthetic value plus a drawn distance.
Encoding looks at two values of one row, so each row is still encoded by itself, and no sensitivity changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes
from chicle.columns.arithmetic import as_days, as_moments, sum_of, typed
from chicle.columns.base import Column, Mask, Report, SyntheticRows
from chicle.columns.declare import unknown
from chicle.columns.formats import checked_formats
from chicle.columns.integer import Integer
from chicle.columns.number import Number
from chicle.columns.numeric import numbers_in
from chicle.columns.private_bins import Binned
from chicle.columns.registry import register_column
from chicle.columns.times import times_in
from chicle.errors import SchemaError

__all__ = ["Following"]

_KINDS = ("date", "datetime", "integer", "number")
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400}
_FEW = 10_000  # distances that have a code each by default


@register_column
@dataclass(frozen=True, kw_only=True)
class Following(Column):
    """A column whose values come at or above those of another column, by a distance that is modelled.

    Parameters
    ----------
    kind
        ``"date"``, ``"datetime"``, ``"integer"`` or ``"number"``; a declaration writes it as its `type`.
    after
        The other column.
    format
        How texts write its dates, as for `Date`.
    by
        The distance: `min`, `max`, and `bins`, `outside`, `decimals` as for numbers. Dates are apart in days;
        datetimes in `unit`: ``"seconds"``, ``"minutes"``, ``"hours"`` (the default) or ``"days"``.

    Examples
    --------
    >>> left = Following(kind="date", after="admission", by={"min": 0, "max": 60})
    >>> left.cardinality, left.to_dict()
    (61, {'type': 'date', 'after': 'admission', 'by': {'min': 0, 'max': 60}})
    """

    type = "following"
    implied_by = "after"

    kind: str
    after: str
    by: Any
    format: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise SchemaError(f"`after` is for {', '.join(_KINDS)}, not for {self.kind!r}")
        if not isinstance(self.after, str):
            raise SchemaError(f"after must be the name of a column, not {self.after!r}")
        if self.format is not None:
            formats = checked_formats(self.format)
            object.__setattr__(self, "format", formats[0] if len(formats) == 1 else formats)
        object.__setattr__(self, "_distance", self._declared())
        super().__post_init__()

    def _declared(self) -> Binned:
        """Return the column of distances."""
        if not isinstance(self.by, Mapping):
            raise SchemaError(f"by must be a mapping such as {{min: 0, max: 60}}, not {self.by!r}")
        given: dict[str, Any] = dict(self.by)
        unit = given.pop("unit", None)
        if (unit is not None and self.kind != "datetime") or (unit is not None and unit not in _SECONDS):
            raise SchemaError(f"unit is for datetimes: one of {', '.join(_SECONDS)}, not {unit!r}")
        kind: type[Binned] = Number if self.kind == "number" else Integer
        known = [*("min", "max", "bins", "outside"), *(["decimals"] if kind is Number else [])]
        for key in given:
            if key not in known:
                raise SchemaError(f"by has no {key!r}; {unknown(str(key), known)}")
        try:
            made = kind(**given, missing=bool(self.missing))
        except SchemaError as error:
            raise SchemaError(f"by: {error}") from None
        if made.undiscovered:
            raise SchemaError("by: its bins must be declared; write a number of bins or a list of edges")
        if kind is Integer and made.size > _FEW and "bins" not in given:
            raise SchemaError("by: there are many distances; write `bins: 60` or a list of edges")
        return made

    @property
    def distance(self) -> Binned:
        """The column of distances."""
        found: Binned = vars(self)["_distance"]
        return found

    @property
    def size(self) -> int:
        """The number of codes of the distance."""
        return self.distance.size

    @property
    def ordered(self) -> bool:
        """Distances have an order."""
        return True

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The distances, where each has a code."""
        return self.distance.labels

    @property
    def amounts(self) -> npt.NDArray[np.float64] | None:
        """The distances."""
        return self.distance.amounts

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """The start of each bin of distances, and the end of the last."""
        return self.distance.starts

    @property
    def arrow_type(self) -> pa.DataType | None:
        """The type of the values themselves."""
        kinds = {"date": pa.date32(), "datetime": pa.timestamp("us"), "integer": pa.int64(), "number": pa.float64()}
        return kinds[self.kind]

    @property
    def beside(self) -> tuple[str, ...]:
        """The other column."""
        return (self.after,)

    @property
    def reads_texts(self) -> bool:
        """Whether its texts have a declared form, or marks of missing values."""
        return self.format is not None or super().reads_texts

    def start_of(self, value: object, *, after: bool) -> Any:  # noqa: ANN401
        """Return the start of a distance."""
        return self.distance.start_of(value, after=after)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data: `type` is that of the values."""
        plain = super().to_dict()
        return {"type": plain.pop("kind"), **{key: value for key, value in plain.items() if key != "type"}}

    def check_among(self, columns: Mapping[str, Column]) -> None:
        """Raise unless the other column is in the table that is made, and not after this one."""
        seen = [self.after]
        while isinstance(other := columns.get(seen[-1]), Following) and other.after not in seen:
            seen.append(other.after)
        if other is None or not other.modelled:
            names = [name for name, one in columns.items() if one.modelled and one is not self]
            raise SchemaError(f"after names {seen[-1]!r}, which is not a modelled column; {unknown(seen[-1], names)}")
        if isinstance(other, Following):
            raise SchemaError(
                f"after goes in a circle: {' after '.join(map(repr, seen))}; begin with a column that is not"
            )

    def values_in(self, name: str, batch: Mapping[str, pa.ChunkedArray], report: Report) -> pa.ChunkedArray:
        """Return the distances of the rows; missing where either value is."""
        own, other = batch[name].combine_chunks(), batch[self.after].combine_chunks()
        if self.kind in ("integer", "number"):
            try:
                apart = pc.subtract(own.cast(self._number), other.cast(self._number))
                apart = pc.round(apart, 9) if self.kind == "number" else apart  # 0.3 - 0.2 is 0.1
            except pa.ArrowException:
                report(f"or {self.after!r} holds no numbers, or some with a fraction", "turn both into numbers first")
                apart = pa.nulls(len(own), self._number)
        elif self.kind == "date":
            apart = pc.subtract(as_days(own, report), as_days(other, report))
        else:
            away = pc.subtract(as_moments(own, report), as_moments(other, report))
            apart = pa.array(np.floor_divide(*_filled(away, 10**6 * self._unit)), mask=_absent(away))
        return pa.chunked_array([apart])

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return the other column's synthetic values plus the drawn distances."""
        apart = self.distance.make(name, rows, None)
        unit = "days" if self.kind == "date" else self.by.get("unit", "hours")
        return typed(sum_of(rows.made[self.after], apart, 1, _SECONDS[unit]), dtype)

    def _read(self, values: pa.Array) -> pa.Array:
        return values  # distances, not the values that may be marks

    def _typed(self, values: pa.Array) -> pa.Array:
        if self.kind in ("integer", "number"):
            return numbers_in(values)
        return values if self.format is None else times_in(values, self.format)

    @property
    def _number(self) -> pa.DataType:
        return pa.float64() if self.kind == "number" else pa.int64()

    @property
    def _unit(self) -> int:
        return _SECONDS[self.by.get("unit", "hours")]

    def _check(self) -> None:
        pass

    def _texts(self) -> list[str] | None:
        return [f"{text} after {self.after}" for text in self.distance.texts[: self.size]]

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        low, high = vars(self.distance)["min"], vars(self.distance)["max"]

        def said(rule: str, fix: str) -> None:
            del rule, fix
            report(
                f"has a value that is not from {low} to {high} after {self.after!r}",
                "correct such rows, widen `by`, or write `outside: clamp` in it",
            )

        return self.distance._codes(values, absent, said)  # noqa: SLF001 - its own distance

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del dtype  # of the values, not of the distances
        return self.distance._values(codes, absent, None, rng)  # noqa: SLF001 - its own distance


def _absent(values: pa.Array) -> Mask:
    return np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False))


def _filled(values: pa.Array, by: int) -> tuple[npt.NDArray[np.int64], int]:
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False)), by
